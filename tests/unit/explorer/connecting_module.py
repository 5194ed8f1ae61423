"""A module that binds a socket when it is imported, as urllib3 does."""

import socket

with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as _tried:
    _tried.bind(("127.0.0.1", 0))
