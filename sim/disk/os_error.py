"""The one place where an errno of Linux becomes the ``OSError`` that Python would raise."""

from __future__ import annotations

import os


def os_error(number: int, filename: object = None, filename2: object = None) -> OSError:
    """Return the error of a system call that failed with errno ``number``.

    The file names are as the program gave them: ``str``, ``bytes`` or a descriptor.
    """
    if filename is None:
        return OSError(number, os.strerror(number))
    return OSError(number, os.strerror(number), filename, None, filename2)
