"""The front door: crash a program everywhere, and say what it lost."""
