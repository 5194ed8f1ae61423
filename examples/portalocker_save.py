"""``portalocker.open_atomic`` is atomic, but the file that it saved may be lost.

The documentation says so: "The destination *content* is synchronized to disk before publication,
but the directory entry is not [...]. After a power loss the name may be missing".
"""

from portalocker.utils import open_atomic


def save(ack):
    for name in ("one", "two"):
        ack.attempt({name: b"saved"})
        with open_atomic(name) as file:
            file.write(b"saved")
        ack({name: b"saved"})
