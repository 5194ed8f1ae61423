"""Recovery of a root after a crash: one file a pass, listed in ``recovery.py``."""
