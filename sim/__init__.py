"""The simulated machine: its disk, its SQLite, its event loop, and the choices of a run."""
