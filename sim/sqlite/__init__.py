"""Real SQLite on the simulated disk: an apsw VFS, and ``connect``, which opens a database."""

from sim.sqlite.connection import abandon, connect
from sim.sqlite.vfs import SimulatedVFS

__all__ = ["SimulatedVFS", "abandon", "connect"]
