"""Differences between the versions of CPython in the calls of ``os`` and ``io``.

The calls of a process are those of the interpreter that runs it. Their messages are those of
CPython 3.11. A name here has the value of this interpreter, and its comment the versions.
"""

from __future__ import annotations

import io
import sys
from typing import Final

from sim.disk.cache.inode import BLOCK_BYTES

_VERSION: Final = sys.version_info[:2]

# To 3.11, a path may be a ``bytearray`` or a ``memoryview``.
BUFFER_IS_PATH: Final = _VERSION < (3, 12)
# From 3.12 on, ``set_blocking`` and ``closefd`` take any object as a truth value.
TRUTH_IS_ANY_OBJECT: Final = _VERSION >= (3, 12)
# From 3.12 on, as the error of ``pickle`` says it.
CANNOT_PICKLE: Final = "instances" if _VERSION >= (3, 12) else "object"
PICKLED_FILE_IO: Final = "FileIO" if _VERSION >= (3, 12) else "_io.FileIO"
# From 3.13 on, the errors of ``utime`` name the file.
UTIME_NAMES_FILE: Final = _VERSION >= (3, 13)
# From 3.13 on, ``repr`` of a file object shows the name of a derived class.
SHOWS_DERIVED_CLASS: Final = _VERSION >= (3, 13)
# From 3.14 on, ``link`` follows a symbolic link unless ``follow_symlinks`` is False; before, it
# does so only beside a ``dir_fd``, because it calls ``link(2)`` without one.
LINK_FOLLOWS: Final = _VERSION >= (3, 14)
# From 3.14 on, an object with ``__index__`` is the number of a limit of ``pathconf``.
INDEX_IS_LIMIT: Final = _VERSION >= (3, 14)
# The buffer of a file object in bytes: to 3.13 the ``st_blksize`` of the file.
BUFFER_BYTES: Final = (
    BLOCK_BYTES if _VERSION < (3, 14) else max(BLOCK_BYTES, io.DEFAULT_BUFFER_SIZE)
)
# To 3.14, this descriptor in place of a path means that there is none: Linux gets no path.
NO_DESCRIPTOR: Final = -1 if _VERSION < (3, 15) else None
# From 3.15 on, ``utime`` takes an object with ``__float__`` as a time in seconds.
UTIME_TAKES_FLOATS: Final = _VERSION >= (3, 15)
# From 3.15 on, a negative ``count`` of ``sendfile`` raises ``ValueError``.
SENDFILE_CHECKS_COUNT: Final = _VERSION >= (3, 15)
# The ``mode`` of a file that was opened with "wb+".
MODE_OF_WB_PLUS: Final = "wb+" if _VERSION >= (3, 15) else "rb+"
