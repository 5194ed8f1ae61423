"""The ``OSError`` that Python raises for an errno of Linux."""

from __future__ import annotations

import os
from typing import Any


def os_error(number: int, filename: object = None, filename2: object = None) -> OSError:
    """Return the error of a system call that failed with errno ``number``.

    The file names are as the program gave them: ``str``, ``bytes`` or a descriptor; of a
    path-like object, its path.
    """
    if filename is None:
        return OSError(number, os.strerror(number))
    return OSError(number, os.strerror(number), _shown(filename), None, _shown(filename2))


def _shown(filename: Any) -> object:
    # As ``os.PathLike``, whose test of an instance takes longer.
    return os.fspath(filename) if hasattr(type(filename), "__fspath__") else filename
