"""File systems in user space: the protocol, and a simulated disk behind it for any program."""
