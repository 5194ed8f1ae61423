"""The durable agent runtime; it reaches the outside only through ``system.ports``."""
