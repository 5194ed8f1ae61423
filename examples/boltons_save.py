"""``boltons.fileutils.atomic_save`` is atomic, but the file that it saved last may be lost.

The code says: "Ensure data is flushed and synced to disk before closing". The file is synced and
renamed; the directory is never synced, so after a power cut the old file may be back. A kill
loses nothing, and no crash leaves a part of a file.
"""

from boltons.fileutils import atomic_save


def save(ack):
    for text in (b"one", b"two"):
        ack.attempt({"state": text})
        with atomic_save("state") as file:
            file.write(text)
        ack({"state": text})
