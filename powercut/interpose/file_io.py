"""``open`` and ``FileIO`` of the module ``io``, routed.

``io.FileIO`` becomes a class whose metaclass decides at each call: a path of the real machine
gives a real ``FileIO``, a path of the disk a ``RawFile``. Both are instances of it. A class that
a program derives from it is a ``RawFile`` over the calls of ``os``, which are routed.
"""

from __future__ import annotations

import io
import os
import stat
from abc import ABCMeta
from collections.abc import Callable, Iterator
from types import MethodType
from typing import Any, Final

from powercut.interpose.router import ROUTER, Router
from sim.disk.calls.descriptor import FIRST_DESCRIPTOR
from sim.disk.calls.file_objects import open_file
from sim.disk.calls.raw_file import RawFile

RealFileIO: Final = io.FileIO
_real_open: Final = io.open
_real_open_code: Final = io.open_code


def routed_files() -> Iterator[tuple[object, object]]:
    """Yield ``open``, ``open_code`` and ``FileIO``, each with its replacement."""
    yield _real_open, MethodType(_open, ROUTER)
    yield _real_open_code, MethodType(_open_code, ROUTER)
    yield RealFileIO, FileIO


def _open(
    router: Router,
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Callable[[Any, int], int] | None = None,
) -> Any:
    lifetime = router.lifetime
    if lifetime is None:
        return _real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
    if opener is not None and not isinstance(file, int):
        decides = _deciding(opener)
        try:
            return open_file(
                lifetime, file, mode, buffering, encoding, errors, newline, closefd, decides
            )
        except _RealDescriptor as found:
            on_disk, path, opener = False, file, _opened(found.descriptor)
    elif type(file) is str and lifetime.known.get(file):
        on_disk, path = True, file
    else:
        on_disk, path = lifetime.where(file)
    if on_disk:
        return open_file(
            lifetime, path, mode, buffering, encoding, errors, newline, closefd, opener
        )
    return _real_open(path, mode, buffering, encoding, errors, newline, closefd, opener)


_open.__name__ = _open.__qualname__ = "open"
_open.__module__ = "_io"
_open.__doc__ = _real_open.__doc__


def _open_code(router: Router, path: str) -> Any:
    lifetime = router.lifetime
    if lifetime is not None and lifetime.where(path)[0]:
        return open_file(lifetime, path, "rb")
    return _real_open_code(path)


_open_code.__name__ = _open_code.__qualname__ = "open_code"
_open_code.__module__ = "_io"


class _RealDescriptor(Exception):
    """An opener returned ``descriptor``, which is one of the real machine."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self.descriptor = descriptor


def _opened(descriptor: int) -> Callable[[Any, int], int]:
    return lambda _path, _flags: descriptor


def _deciding(opener: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
    """Return an opener whose call, after all checks of arguments, decides where the file is.

    It raises ``_RealDescriptor`` if that is the real machine.
    """

    def opened(path: Any, flags: int) -> Any:
        descriptor = opener(path, flags)
        if isinstance(descriptor, int) and 0 <= descriptor < FIRST_DESCRIPTOR:
            raise _RealDescriptor(descriptor)
        return descriptor

    return opened


class FileIOType(ABCMeta):
    """The metaclass of the routed ``FileIO``; answers from the order of bases alone."""

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        """Make a real ``FileIO`` or a ``RawFile``."""
        if cls is not FileIO:
            return super().__call__(*arguments, **options)
        lifetime = ROUTER.lifetime
        if lifetime is None:
            return RealFileIO(*arguments, **options)
        return _file_io(*arguments, **options)

    def __setattr__(cls, name: str, value: object) -> None:
        # The abstract base class keeps its own records on the class.
        if cls.__module__ == "_io" and not name.startswith(("__abstract", "_abc")):
            raise TypeError(f"cannot set {name!r} attribute of immutable type '_io.FileIO'")
        super().__setattr__(name, value)

    def __instancecheck__(cls, instance: object) -> bool:
        return cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, subclass: type) -> bool:
        bases = subclass.__mro__
        return cls in bases or (cls is FileIO and (RealFileIO in bases or RawFile in bases))


def _file_io(
    file: Any,
    mode: str = "r",
    closefd: bool = True,
    opener: Callable[[Any, int], int] | None = None,
) -> Any:
    assert ROUTER.lifetime is not None
    if opener is not None and not isinstance(file, int):
        try:
            return type.__call__(FileIO, file, mode, closefd, _deciding(opener))
        except _RealDescriptor as found:
            on_disk, path, opener = False, file, _opened(found.descriptor)
    else:
        on_disk, path = ROUTER.lifetime.where(file)
    if not on_disk:
        return RealFileIO(path, mode, closefd, opener)
    return type.__call__(FileIO, path, mode, closefd, opener)


class RoutedCalls:
    """The calls of ``os`` as a ``FileProcess``, for files of the disk and of the real machine."""

    poisoned = False

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:
        return os.open(path, flags, mode)

    def close(self, fd: int) -> None:
        os.close(fd)

    def read(self, fd: int, length: int, /) -> bytes:
        return os.read(fd, length)

    def write(self, fd: int, data: Any, /) -> int:
        return os.write(fd, data)

    def lseek(self, fd: int, position: int, whence: int, /) -> int:
        return os.lseek(fd, position, whence)

    def ftruncate(self, fd: int, length: int, /) -> None:
        os.ftruncate(fd, length)

    def is_directory(self, fd: int) -> bool:
        return stat.S_ISDIR(os.fstat(fd).st_mode)


_ROUTED: Final = RoutedCalls()


class FileIO(RawFile, metaclass=FileIOType):
    """An unbuffered file of the disk or of the real machine.

    For the latter the metaclass makes a real ``FileIO`` where it can.
    """

    __module__ = "_io"

    def __init__(
        self,
        file: Any,
        mode: str = "r",
        closefd: bool = True,
        opener: Callable[[Any, int], int] | None = None,
    ) -> None:
        lifetime = ROUTER.lifetime
        on_disk = False
        if lifetime is not None:
            on_disk, file = (True, file) if opener else lifetime.where(file)
        process = lifetime if on_disk and lifetime is not None and opener is None else _ROUTED
        super().__init__(process, file, mode, closefd=closefd, opener=opener)
