"""One suite, two arms: the simulated disk and a directory of Linux."""
