"""The simulated machine: its disk, its SQLite, and the choices that drive it."""
