"""``atomicwrites`` is safe under every model.

Its documentation promises: "``fsync`` is invoked on the temporary file after it is written [...],
and on the parent directory after the file is moved".
"""

from atomicwrites import atomic_write


def save(ack):
    for text in ("one", "two"):
        ack.attempt({"state": text.encode()})
        with atomic_write("state", overwrite=True) as file:
            file.write(text)
        ack({"state": text.encode()})
