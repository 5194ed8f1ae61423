"""Unmodified programs on the simulated disk: paths below a root are routed to it."""
