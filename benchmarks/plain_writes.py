"""Atomic writes as an unmodified program makes them."""

from __future__ import annotations

import os
from typing import Final

DATA: Final = b"x" * 200


def write_by_calls(directory: str) -> None:
    """Write a file atomically by functions of ``os``."""
    temporary = f"{directory}/f.tmp"
    descriptor = os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    os.write(descriptor, DATA)
    os.fsync(descriptor)
    os.close(descriptor)
    _publish(directory)


def write_by_open(directory: str) -> None:
    """Write a file atomically by a buffered file object."""
    with open(f"{directory}/f.tmp", "wb") as file:
        file.write(DATA)
        file.flush()
        os.fsync(file.fileno())
    _publish(directory)


def _publish(directory: str) -> None:
    os.replace(f"{directory}/f.tmp", f"{directory}/f")
    opened = os.open(directory, os.O_RDONLY)
    os.fsync(opened)
    os.close(opened)
