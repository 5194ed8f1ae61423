"""A log with rotation loses lines that were written, and may lose a file that was rotated.

``RotatingFileHandler`` promises to "ensure all logging output has been flushed", which is true of
Python's buffers only. An fsync of each line repairs most of it. On btrfs a rotated file can then
still be lost, because its rename, and the creation of the next file, are durable in any order.
``DurableHandler`` syncs the directory after both, and is safe under every model.
"""

import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path


def sync_directory():
    directory = os.open(".", os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


class DurableHandler(RotatingFileHandler):
    """Makes each line and each rollover durable."""

    def emit(self, record):
        super().emit(record)
        os.fsync(self.stream.fileno())

    def rotate(self, source, dest):
        super().rotate(source, dest)
        sync_directory()

    def _open(self):
        stream = super()._open()
        sync_directory()
        return stream


def write_orders(ack, handler):
    for number in range(4):
        line = f"order {number}"
        handler.emit(logging.makeLogRecord({"msg": line}))
        ack(line)
    handler.close()


def check(known):
    lines = [line for path in Path().glob("app.log*") for line in path.read_text().splitlines()]
    assert set(known.acknowledged) <= set(lines), f"only {sorted(lines)} are left"


def rotate(ack):
    write_orders(ack, RotatingFileHandler("app.log", maxBytes=20, backupCount=3))


def rotate_durably(ack):
    write_orders(ack, DurableHandler("app.log", maxBytes=20, backupCount=3))


rotate.check = rotate_durably.check = check
