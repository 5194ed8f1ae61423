"""Crash images on the real file system: a directory with the files that a crash left."""

from __future__ import annotations

import os
from pathlib import Path

from sim.disk.cache.inode import BLOCK_BYTES, Inode
from sim.disk.crash.image import Image
from sim.errors import HarnessError


def dump(image: Image, folder: Path) -> None:
    """Write every file, directory and symbolic link of an image below ``folder``.

    ``folder`` must not exist. Hard links stay hard links, and holes stay holes. Owners and
    times are left out. Raises ``HarnessError`` if something cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
        _write(image, folder)
    except OSError as refused:
        raise HarnessError(f"cannot dump to {folder}: {refused.strerror}") from None


def _write(image: Image, folder: Path) -> None:
    written: dict[int, Path] = {}
    directories: list[tuple[Path, int]] = []
    for name, inode in image.tree():
        path = folder / name.lstrip("/")
        if inode.is_directory:
            path.mkdir(exist_ok=True)
            directories.append((path, inode.mode))
        elif inode.number in written:
            os.link(written[inode.number], path, follow_symlinks=False)
        elif inode.is_symlink:
            path.symlink_to(inode.link_text)
        else:
            _write_file(inode, path)
        written.setdefault(inode.number, path)
    for path, mode in reversed(directories):
        path.chmod(mode & 0o777 | 0o700)


def _write_file(inode: Inode, path: Path) -> None:
    with path.open("xb") as file:
        for index, block in sorted(inode.blocks.items()):
            file.seek(index * BLOCK_BYTES)
            file.write(block)
        file.truncate(inode.size)
    path.chmod(inode.mode & 0o777 | 0o600)
