"""Programs of a calibration: file calls as plain lists, and the outcome that a tree shows.

A call is a list of its name and its arguments, as a calibration file stores it. Paths are
relative to the root of the file system; contents are one letter, repeated::

    creat PATH                  fsync PATH            rename OLD NEW
    write PATH OFFSET LEN C     fdatasync PATH        link OLD NEW
    append PATH LEN C           sync                  unlink PATH
    otrunc PATH LEN C           mkdir PATH            symlink TARGET PATH
    trunc PATH SIZE             rmdir PATH            falloc PATH OFFSET LEN
    open LABEL PATH FLAGS       hwrite LABEL OFFSET LEN C
    htrunc LABEL SIZE           hfsync LABEL          hfdatasync LABEL      hclose LABEL
    hfalloc LABEL OFFSET LEN
    tmpfile LABEL DIRECTORY     hlink LABEL PATH      chmod PATH MODE       utime PATH SECONDS
    bg WORK ...                 work that the kernel may do by itself; no call of the program

LABEL names a descriptor. FLAGS are letters: c creates, t truncates, a appends, s and d make every
write synchronous (``O_SYNC``, ``O_DSYNC``). ``otrunc`` opens with ``O_TRUNC`` and writes.
``tmpfile`` opens a file without a name (``O_TMPFILE``), and ``hlink`` gives the file of a
descriptor a name.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

Call: TypeAlias = Sequence[str | int]
Outcome: TypeAlias = Mapping[str, str]

DIRECTORY: Final = "dir"

_RUN: Final = re.compile(rb"(.)\1*", re.DOTALL)
_FLAGS: Final = {
    "c": os.O_CREAT, "t": os.O_TRUNC, "a": os.O_APPEND, "s": os.O_SYNC, "d": os.O_DSYNC,
}  # fmt: skip


class FileCalls(Protocol):
    """The functions of ``os`` that programs call."""

    def open(self, path: str, flags: int, mode: int = ..., /) -> int: ...
    def close(self, fd: int, /) -> None: ...
    def write(self, fd: int, data: bytes, /) -> int: ...
    def pwrite(self, fd: int, data: bytes, offset: int, /) -> int: ...
    def ftruncate(self, fd: int, length: int, /) -> None: ...
    def posix_fallocate(self, fd: int, offset: int, length: int, /) -> None: ...
    def fsync(self, fd: int, /) -> None: ...
    def fdatasync(self, fd: int, /) -> None: ...
    def sync(self) -> None: ...
    def rename(self, src: str, dst: str, /) -> None: ...
    def link(self, src: str, dst: str, /, *, src_dir_fd: int | None = ...) -> None: ...
    def chmod(self, path: str, mode: int, /) -> None: ...
    def utime(self, path: str, times: tuple[int, int], /) -> None: ...
    def unlink(self, path: str, /) -> None: ...
    def symlink(self, src: str, dst: str, /) -> None: ...
    def mkdir(self, path: str, mode: int = ..., /) -> None: ...
    def rmdir(self, path: str, /) -> None: ...


class Caller:
    """Makes the calls of a program through ``api``: ``os``, or a simulated process.

    ``at`` turns a path of the program into one of the api. Calls named ``bg`` are passed over.
    """

    __slots__ = ("_api", "_at", "_calls", "_descriptors")

    def __init__(self, api: FileCalls, at: Callable[[str], str]) -> None:
        self._api = api
        self._at = at
        self._descriptors: dict[str, int] = {}
        self._calls: dict[str, Callable[..., object]] = {
            "creat": self._creat,
            "write": self._write,
            "append": self._append,
            "otrunc": self._otrunc,
            "trunc": self._trunc,
            "falloc": self._falloc,
            "fsync": self._fsync,
            "fdatasync": self._fdatasync,
            "sync": api.sync,
            "rename": lambda old, new: api.rename(at(old), at(new)),
            "link": lambda old, new: api.link(at(old), at(new)),
            "unlink": lambda path: api.unlink(at(path)),
            "symlink": lambda target, path: api.symlink(target, at(path)),
            "mkdir": lambda path: api.mkdir(at(path), 0o755),
            "rmdir": lambda path: api.rmdir(at(path)),
            "open": self._open,
            "hwrite": lambda label, offset, length, letter: api.pwrite(
                self._of(label), _content(letter, length), offset
            ),
            "htrunc": lambda label, size: api.ftruncate(self._of(label), size),
            "hfalloc": lambda label, offset, length: api.posix_fallocate(
                self._of(label), offset, length
            ),
            "hfsync": lambda label: api.fsync(self._of(label)),
            "hfdatasync": lambda label: api.fdatasync(self._of(label)),
            "hclose": lambda label: api.close(self._descriptors.pop(label, -1)),
            "tmpfile": self._tmpfile,
            "hlink": self._hlink,
            "chmod": lambda path, mode: api.chmod(at(path), mode),
            "utime": lambda path, seconds: api.utime(at(path), (seconds, seconds)),
            "bg": lambda *_: None,
        }

    def do(self, call: Call) -> str | None:
        """Make one call; return the name of its errno, or None if it succeeded.

        ``ValueError`` if there is no such call.
        """
        name, *arguments = call
        make = self._calls.get(str(name))
        if make is None:
            raise ValueError(f"no such call: {call!r}")
        try:
            make(*arguments)
        except OSError as error:
            return errno_name(error)
        return None

    def close_all(self) -> None:
        """Close the descriptors that the program left open."""
        while self._descriptors:
            self._api.close(self._descriptors.popitem()[1])

    def _of(self, label: str) -> int:
        return self._descriptors.get(label, -1)

    def _with(self, path: str, flags: int, act: Callable[[int], object]) -> None:
        descriptor = self._api.open(self._at(path), flags, 0o644)
        try:
            act(descriptor)
        finally:
            self._api.close(descriptor)

    def _creat(self, path: str) -> None:
        self._with(path, os.O_CREAT | os.O_WRONLY, lambda _: None)

    def _write(self, path: str, offset: int, length: int, letter: str) -> None:
        content = _content(letter, length)
        self._with(path, os.O_CREAT | os.O_WRONLY, lambda fd: self._api.pwrite(fd, content, offset))

    def _append(self, path: str, length: int, letter: str) -> None:
        content = _content(letter, length)
        self._with(path, os.O_WRONLY | os.O_APPEND, lambda fd: self._api.write(fd, content))

    def _otrunc(self, path: str, length: int, letter: str) -> None:
        content = _content(letter, length)
        self._with(
            path,
            os.O_CREAT | os.O_WRONLY | os.O_TRUNC,
            lambda fd: self._api.write(fd, content) if content else None,
        )

    def _trunc(self, path: str, size: int) -> None:
        self._with(path, os.O_WRONLY, lambda fd: self._api.ftruncate(fd, size))

    def _falloc(self, path: str, offset: int, length: int) -> None:
        self._with(path, os.O_WRONLY, lambda fd: self._api.posix_fallocate(fd, offset, length))

    def _fsync(self, path: str) -> None:
        self._with(path, os.O_RDONLY, self._api.fsync)

    def _fdatasync(self, path: str) -> None:
        self._with(path, os.O_RDONLY, self._api.fdatasync)

    def _open(self, label: str, path: str, letters: str) -> None:
        flags = os.O_RDWR
        for letter in letters:
            flags |= _FLAGS[letter]
        self._descriptors[label] = self._api.open(self._at(path), flags, 0o644)

    def _tmpfile(self, label: str, directory: str) -> None:
        flags = os.O_TMPFILE | os.O_RDWR
        self._descriptors[label] = self._api.open(self._at(directory), flags, 0o644)

    def _hlink(self, label: str, path: str) -> None:
        source = f"/proc/self/fd/{self._of(label)}"
        # Every CPython follows the link beside a ``dir_fd``.
        self._with(
            "", os.O_RDONLY, lambda fd: self._api.link(source, self._at(path), src_dir_fd=fd)
        )


def errno_name(error: OSError) -> str:
    """Name the errno of ``error``, or write out its number if it has no name."""
    return errno.errorcode.get(error.errno or 0, str(error.errno))


def run_length(content: bytes) -> str:
    """Write ``content`` as runs of equal bytes: ``B4096,0100`` is 4096 times B, then 100 zeros.

    A byte that is not printable is written as ``?``, and no bytes as ``empty``.
    """
    runs = (run.group() for run in _RUN.finditer(content))
    return ",".join(f"{_symbol(run[0])}{len(run)}" for run in runs) or "empty"


def with_mode(text: str, mode: int) -> str:
    """Add the permission bits to the text of a file or directory, if ``chmod`` has set them.

    Every mode that a program sets has the sticky bit, which no other file has.
    """
    return f"{text} {stat.S_IMODE(mode):o}" if mode & stat.S_ISVTX else text


def grouped(entries: Iterable[tuple[str, int, str]]) -> dict[str, str]:
    """Return the outcome of ``entries``: path, inode number, text.

    A further name of an inode is ``=`` and the first of its names.
    """
    names: dict[int, str] = {}
    outcome: dict[str, str] = {}
    for path, inode, text in sorted(entries, key=lambda entry: entry[0]):
        first = names.setdefault(inode, path)
        outcome[path] = text if first == path else f"={first}"
    return outcome


def _content(letter: str, length: int) -> bytes:
    return letter.encode() * length


def _symbol(byte: int) -> str:
    if byte == 0:
        return "0"
    letter = chr(byte)
    return letter if 32 < byte < 127 and letter != "0" else "?"
