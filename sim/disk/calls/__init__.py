"""The API of ``os`` on the simulated disk, as one process sees it."""
