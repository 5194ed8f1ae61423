"""The machines: what is done to each part of the system, and what must then be true."""
