"""Real SQLite on the simulated disk: an apsw VFS, and the door to it, ``connect``."""

from sim.sqlite.connection import abandon, connect
from sim.sqlite.vfs import SimulatedVFS

__all__ = ["SimulatedVFS", "abandon", "connect"]
