"""Real SQLite on the simulated disk: an apsw VFS, and ``connect``, which opens a database."""
