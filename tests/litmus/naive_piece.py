"""Micro-operations of the naive enumeration."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Piece:
    """One micro-operation. ``kind`` is create, data, size, link, unlink, move or mode."""

    call: int
    kind: str
    inode: int
    directories: tuple[int, ...] = ()
    names: tuple[tuple[int, str], ...] = ()
    offset: int = 0
    data: bytes = b""
    size: int = 0
    append: bool = False
    fresh: bool = False
    appended: bool = False
    mode: int = 0
    is_directory: bool = False
    over: bool = False
