"""A settings file that is replaced: the usual recipe, with and without the last barrier.

``save`` omits the fsync of the directory. The rename is only in the page cache, so the
acknowledged settings are lost under every persistence model. ``save_durably`` is correct.
"""

import os
from pathlib import Path


def save(ack):
    for text in ("volume=3", "volume=11"):
        temporary = Path("settings.tmp")
        with temporary.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace("settings")
        ack({"settings": text.encode()})


def save_durably(ack):
    for text in ("volume=3", "volume=11"):
        temporary = Path("settings.tmp")
        with temporary.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace("settings")
        directory = os.open(".", os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)
        ack({"settings": text.encode()})
