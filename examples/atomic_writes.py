"""An atomic writer as the package ``atomicwrites`` has it; it is safe under every model.

It writes a temporary file beside the target, syncs it, renames it and syncs the directory.
"""

import os
import tempfile
from contextlib import contextmanager


@contextmanager
def atomic_write(path):
    folder = os.path.dirname(os.path.abspath(path))
    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    os.replace(file.name, path)
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def save(ack):
    for text in ("one", "two"):
        ack.attempt({"state": text.encode()})
        with atomic_write("state") as file:
            file.write(text)
        ack({"state": text.encode()})
