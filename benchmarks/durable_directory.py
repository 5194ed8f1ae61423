"""A directory for the rows that wait for a disk.

It is made in the directory ``POWERCUT_DISK``, or in ``build/`` if that is not set. The system's
temporary directory may be a tmpfs, whose barriers cost nothing.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_BUILD: Final = Path(__file__).resolve().parent.parent / "build"
_PARENT: Final = Path(os.environ.get("POWERCUT_DISK") or _BUILD)


@contextmanager
def durable_directory() -> Iterator[str]:
    """Give an empty directory on that disk, and remove it afterwards."""
    _BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=_PARENT) as directory:
        os.sync()  # earlier writes of other programs must not be part of the measurement
        yield directory
