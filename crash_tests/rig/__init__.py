"""The ports of ``system`` on the simulated machine, and simulated providers."""
