"""The disk on which an interposed program starts."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from powercut.interpose.interposed import DEFAULT_ROOT
from powercut.interpose.lifetime import ensure_root
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.disk import Disk
from sim.errors import HarnessError


def rooted(image: Image, root: str) -> Image:
    """Return ``image`` with the directory ``root``, and with everything durable."""
    disk = Disk(image)
    ensure_root(Process(disk), root)
    return disk.unmounted()


def image_of(
    directory: str | os.PathLike[str], root: str | os.PathLike[str] = DEFAULT_ROOT
) -> Image:
    """Return an image on which ``root`` is a copy of a real directory.

    Files, directories and symbolic links are copied, with their permission bits and times.
    Raises ``HarnessError`` for a directory that cannot be read, and for other kinds of files.
    """
    disk = Disk()
    process = Process(disk)
    root = os.fspath(root)
    ensure_root(process, root)
    try:
        _copy(process, Path(directory), root)
    except OSError as error:
        raise HarnessError(f"cannot copy {os.fspath(directory)!r}: {error}") from None
    return disk.unmounted()


def _copy(process: Process, source: Path, target: str) -> None:
    for entry in sorted(os.scandir(source), key=lambda entry: entry.name):
        path = f"{target}/{entry.name}"
        status = entry.stat(follow_symlinks=False)
        if entry.is_symlink():
            process.symlink(os.readlink(entry.path), path)
            continue
        if entry.is_dir():
            process.mkdir(path)
            _copy(process, Path(entry.path), path)
        elif entry.is_file():
            with process.open_file(path, "wb") as file:
                file.write(Path(entry.path).read_bytes())
        else:
            raise HarnessError(f"cannot copy {entry.path!r}: it is not a file, directory or link")
        process.chmod(path, stat.S_IMODE(status.st_mode))
        process.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
