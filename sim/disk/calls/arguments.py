"""Arguments of system calls, converted to C types as CPython converts them.

Each function does the work of one converter of ``Modules/posixmodule.c`` (Argument Clinic) and
raises its errors: ``TypeError`` for another type, ``OverflowError`` for an integer that the C
type cannot hold, ``ValueError`` or ``BufferError`` where they say so. An object with
``__index__`` is an integer, a float is none. Every call converts all its arguments, in the order
of its parameters, before it does anything else. Paths are converted in ``path_name.py``.
"""

from __future__ import annotations

import errno
import os
from operator import index
from typing import Any, Final, SupportsIndex

from sim.disk.cache.refusal import ID_MAX
from sim.disk.calls.interpreter import INDEX_IS_LIMIT, TRUTH_IS_ANY_OBJECT
from sim.disk.os_error import os_error

INT_MIN: Final = -(1 << 31)
INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1
UNCHANGED: Final = -1
CURRENT_DIRECTORY: Final = -100
"""``AT_FDCWD``: as a ``dir_fd``, the current directory."""
IOV_MAX: Final = 1024


def c_int(value: SupportsIndex) -> int:
    """Convert to ``int``: descriptors, flags, modes, commands."""
    if type(value) is int and INT_MIN <= value <= INT_MAX:
        return value
    return _bounded(value, INT_MAX, "int")


def truth(value: Any) -> bool:
    """Convert a truth value: ``blocking`` and ``closefd``."""
    return bool(value if TRUTH_IS_ANY_OBJECT else c_int(value))


def off_t(value: SupportsIndex) -> int:
    """Convert to ``off_t``: offsets and sizes of files, in bytes."""
    if type(value) is int and -LONG_MAX <= value <= LONG_MAX:
        return value
    return _bounded(value, LONG_MAX, "long")


def ssize_t(value: SupportsIndex) -> int:
    """Convert to ``ssize_t``: lengths of transfers, in bytes."""
    if type(value) is int and -LONG_MAX <= value <= LONG_MAX:
        return value
    return _bounded(value, LONG_MAX, "ssize_t")


def optional_offset(value: SupportsIndex | None) -> int | None:
    """Convert an offset in bytes that may be None, for "at the descriptor's offset"."""
    return None if value is None else off_t(value)


def user_or_group(value: SupportsIndex, name: str) -> int:
    """Convert the ``uid`` or ``gid`` of ``chown``; -1 and 2**32 - 1 both mean "unchanged"."""
    try:
        number = int(index(value))
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"{name} should be integer, not {kind}") from None
    if number > LONG_MAX:
        raise OverflowError(f"{name} is greater than maximum")
    if not UNCHANGED <= number <= ID_MAX:  # CPython gives this message for both
        raise OverflowError(f"{name} is less than minimum")
    return UNCHANGED if number == ID_MAX else number


def path_descriptor(value: SupportsIndex) -> int:
    """Convert a descriptor that is given in place of a path."""
    number = int(index(value))
    if number > INT_MAX:
        raise OverflowError("fd is greater than maximum")
    if number < INT_MIN:
        raise OverflowError("fd is less than minimum")
    return number


def directory_descriptor(value: SupportsIndex | None) -> int | None:
    """Convert a ``dir_fd``; None is the current directory."""
    if value is None:
        return None
    if not hasattr(type(value), "__index__"):
        kind = type(value).__name__
        raise TypeError(f"argument should be integer or None, not {kind}")
    descriptor = path_descriptor(value)
    return None if descriptor == CURRENT_DIRECTORY else descriptor


def file_descriptor(value: Any) -> int:
    """Convert a descriptor, or an object with ``fileno()``, as ``fsync`` and ``fcntl`` take it.

    Raises ``ValueError`` if it is negative.
    """
    if type(value) is int and 0 <= value <= INT_MAX:
        return value
    if not isinstance(value, int):
        if not hasattr(value, "fileno"):
            raise TypeError("argument must be an int, or have a fileno() method.")
        value = value.fileno()
        if not isinstance(value, int):
            raise TypeError("fileno() returned a non-integer")
    descriptor = c_int(value)
    if descriptor < 0:
        raise ValueError(f"file descriptor cannot be a negative integer ({descriptor})")
    return descriptor


def readable_buffer(value: object) -> bytes:
    """Copy the bytes of a buffer; ``BufferError`` if it is not contiguous."""
    return value if type(value) is bytes else readable_view(value).tobytes()


def readable_view(value: Any) -> memoryview:
    """View a buffer as bytes; ``BufferError`` if it is not contiguous."""
    view = _view(value)
    if not view.c_contiguous:
        raise BufferError("memoryview: underlying buffer is not C-contiguous")
    return view.cast("B")


def writable_view(value: Any) -> memoryview:
    """View a buffer as bytes that can be changed; ``BufferError`` if they cannot be."""
    if _view(value).readonly:
        is_view = isinstance(value, memoryview)
        message = "memoryview: underlying buffer is not writable"
        raise BufferError(message if is_view else "Object is not writable.")
    return readable_view(value)


def read_write_buffer(value: Any, call: str, position: str = "") -> memoryview:
    """View the argument of ``call`` as bytes that can be changed; ``TypeError`` if it is none."""
    try:
        return writable_view(value)
    except (TypeError, BufferError):
        kind = "None" if value is None else type(value).__name__
        raise TypeError(
            f"{call}() argument{position} must be read-write bytes-like object, not {kind}"
        ) from None


def vector(value: Any, call: str, *, writable: bool) -> list[memoryview]:
    """Convert the buffers of ``readv`` and its relatives; EINVAL for more than ``IOV_MAX``."""
    if isinstance(value, dict) or not hasattr(type(value), "__getitem__"):
        raise TypeError(f"{call}() arg 2 must be a sequence")
    views = [writable_view(item) if writable else readable_view(item) for item in value]
    if len(views) > IOV_MAX:
        raise os_error(errno.EINVAL)
    return views


def configuration_name(value: object) -> int:
    """Convert the name of a limit of ``pathconf``: a key of ``os.pathconf_names``, or its number.

    Raises ``ValueError`` for an unknown name.
    """
    if isinstance(value, int) or (INDEX_IS_LIMIT and isinstance(value, SupportsIndex)):
        return c_int(value)
    if not isinstance(value, str):
        raise TypeError("configuration names must be strings or integers")
    if value not in os.pathconf_names:
        raise ValueError("unrecognized configuration name")
    return os.pathconf_names[value]


def _view(value: Any) -> memoryview:
    try:
        return memoryview(value)
    except TypeError:
        kind = type(value).__name__
        raise TypeError(f"a bytes-like object is required, not '{kind}'") from None


def _bounded(value: SupportsIndex, maximum: int, c_type: str) -> int:
    number = int(index(value))
    if not -maximum - 1 <= number <= maximum:
        raise OverflowError(f"Python int too large to convert to C {c_type}")
    return number
