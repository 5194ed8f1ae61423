"""Recovery of a runtime's root after a crash."""
