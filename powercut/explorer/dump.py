"""Crash images on the real file system: a directory with the files that a crash left."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from sim.disk.cache.inode import BLOCK_BYTES, Inode
from sim.disk.crash.image import Image
from sim.errors import HarnessError


def dump(image: Image, folder: Path) -> None:
    """Write every file, directory and symbolic link of an image below ``folder``.

    ``folder`` must not exist. Raises ``HarnessError`` if something cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
        write_image(image, os.fspath(folder))
    except OSError as refused:
        raise HarnessError(f"cannot dump to {folder}: {refused.strerror}") from None


def write_image(image: Image, directory: str) -> None:
    """Make the tree of ``image`` in an empty directory, with modes, owners, times and links.

    An owner that this process may not give is left out. Raises ``OSError``.
    """
    first_path: dict[int, str] = {}
    directories: list[tuple[str, Inode]] = []
    for path, inode in image.tree():
        real = directory + path.rstrip("/")
        first = first_path.setdefault(inode.number, real)
        if first != real:
            os.link(first, real, follow_symlinks=False)
            continue
        if inode.is_directory:
            directories.append((real, inode))
            if path != "/":
                os.mkdir(real, 0o700)
        elif inode.is_symlink:
            os.symlink(inode.link_text, real)
        else:
            _write_file(real, inode)
        _set_owner(real, inode)
        if inode.is_file:
            _set_mode_and_times(real, inode)
    for real, inode in reversed(directories):
        _set_mode_and_times(real, inode)


def _write_file(path: str, inode: Inode) -> None:
    """Make a file; its holes stay holes, so that a large sparse file takes no space."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        for index in sorted(inode.blocks):
            position = index * BLOCK_BYTES
            content = memoryview(inode.read(position, BLOCK_BYTES))
            while content:
                written = os.pwrite(descriptor, content, position)
                content, position = content[written:], position + written
        os.ftruncate(descriptor, inode.size)
    finally:
        os.close(descriptor)


def _set_owner(path: str, inode: Inode) -> None:
    if (inode.uid, inode.gid) != (os.geteuid(), os.getegid()):
        with suppress(OSError):
            os.chown(path, inode.uid, inode.gid, follow_symlinks=False)


def _set_mode_and_times(path: str, inode: Inode) -> None:
    os.chmod(path, stat.S_IMODE(inode.mode))
    os.utime(path, ns=(inode.atime_ns, inode.mtime_ns))
