"""Journals in files: lines of JSON that hold an image and the operations since.

The first line is the header, an object with ``format``, ``version``, ``next_inode`` and the
numbers of lines that follow, ``inodes`` and ``operations``. Then comes one array for each
inode of the image, by ascending number::

    [number, mode, uid, gid, size, atime_ns, mtime_ns, ctime_ns, content]

``content`` is the text of a symbolic link, an object of entries (name to number) for a
directory, or an object of blocks (index to base64) for a file. Link counts follow from the
entries; an inode that no path leads to is left out. The last part is one array for each
operation: its kind, then its fields in the order of ``operation.py``, bytes as base64.

Equal journals give equal bytes.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_type_hints

from immutables import Map

from sim.disk.cache.inode import BLOCK_BYTES, ROOT, Inode
from sim.disk.cache.inode_table import InodeTable
from sim.disk.cache.operation import (
    Allocate,
    Create,
    DropPages,
    FailedSync,
    Link,
    Operation,
    Rename,
    Resize,
    SetAttributes,
    Sync,
    SyncFailure,
    Unlink,
    Write,
)
from sim.disk.cache.refusal import FILE_MAX_BYTES, INODE_MAX, is_name, refusal_of_attributes
from sim.disk.crash.image import Image
from sim.disk.crash.journal import Journal
from sim.errors import HarnessError

FORMAT: Final = "powercut journal"
VERSION: Final = 1

_KINDS: Final[dict[str, type[Operation]]] = {
    "create": Create,
    "write": Write,
    "resize": Resize,
    "link": Link,
    "unlink": Unlink,
    "rename": Rename,
    "set_attributes": SetAttributes,
    "sync": Sync,
    "failed_sync": FailedSync,
    "allocate": Allocate,
    "drop_pages": DropPages,
}
_NAMES: Final = {kind: name for name, kind in _KINDS.items()}
_FIELDS: Final = {name: get_type_hints(kind) for name, kind in _KINDS.items()}
_TIMES: Final = ("atime_ns", "mtime_ns", "ctime_ns")
_NUMBERS: Final = ("number", "mode", "uid", "gid", "size", *_TIMES)


class _MalformedError(HarnessError):
    """The bytes are not a journal of this version."""


def save_journal(journal: Journal, path: str | os.PathLike[str]) -> None:
    """Write a journal to a file of the real file system.

    Raises ``HarnessError`` for a journal that starts from an image with unsynced pieces.
    """
    Path(path).write_bytes(encode_journal(journal))


def load_journal(path: str | os.PathLike[str]) -> Journal:
    """Read a journal that ``save_journal`` wrote.

    Raises ``HarnessError`` for a file that is malformed, or of a newer version. An operation
    that is well-formed but impossible is found by ``Disk.from_journal``.
    """
    try:
        return decode_journal(Path(path).read_bytes())
    except HarnessError as error:
        raise HarnessError(f"{os.fspath(path)}: {error}") from None


def encode_journal(journal: Journal) -> bytes:
    """Return the bytes of a journal file; raises ``HarnessError`` as ``save_journal`` does."""
    journal.check_image()
    inodes = {inode.number: inode for _, inode in journal.image.tree()}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "next_inode": journal.image.next_inode,
        "inodes": len(inodes),
        "operations": len(journal),
    }
    lines: list[object] = [header]
    lines += [_inode_line(inodes[number]) for number in sorted(inodes)]
    lines += [[_NAMES[type(operation)], *map(_plain, operation)] for operation in journal]
    return b"".join(
        json.dumps(line, sort_keys=True, separators=(",", ":")).encode() + b"\n" for line in lines
    )


def decode_journal(data: bytes) -> Journal:
    """Return the journal of these bytes; raises ``HarnessError`` as ``load_journal`` does."""
    lines = data.split(b"\n")
    header = _json(lines[0], 1)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise _MalformedError("this is not a powercut journal")
    version = header.get("version")
    if version != VERSION:
        raise _MalformedError(
            f"the journal has version {version!r} of its format, and this powercut reads "
            f"version {VERSION}; read it with the powercut that wrote it"
        )
    next_inode, inodes, operations = (
        _count(header.get(name), name) for name in ("next_inode", "inodes", "operations")
    )
    if len(lines) != 1 + inodes + operations + 1 or lines[-1]:
        raise _MalformedError(
            f"the header announces {1 + inodes + operations} lines, each with a line end; "
            f"the file has {len(lines) - 1}"
        )
    values = [_json(line, number) for number, line in enumerate(lines[1:-1], 2)]
    image = _image(values[:inodes], next_inode)
    return Journal(image, _operations(values[inodes:], first_line=inodes + 2))


def _inode_line(inode: Inode) -> list[object]:
    content: object = inode.link_text
    if inode.is_directory:
        content = dict(inode.entries)
    elif inode.is_file:
        content = {str(index): _plain(block) for index, block in inode.blocks.items()}
    return [*(getattr(inode, name) for name in _NUMBERS), content]


def _plain(value: object) -> object:
    return b64encode(value).decode("ascii") if isinstance(value, bytes) else value


def _json(line: bytes, number: int) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise _MalformedError(f"line {number} is not JSON") from None


def _count(value: object, name: str, most: int = INODE_MAX) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise _MalformedError(f"{name}={value!r} is not a number from 0 to {most}")
    return value


def _bytes(value: object, name: str) -> bytes:
    try:
        if isinstance(value, str):
            return b64decode(value, validate=True)
    except ValueError:
        pass
    raise _MalformedError(f"{name}={value!r} is not base64")


# -- operations ----------------------------------------------------------------------------


def _operations(values: list[Any], first_line: int) -> Iterator[Operation]:
    for line, value in enumerate(values, first_line):
        if not isinstance(value, list) or not value or value[0] not in _KINDS:
            raise _MalformedError(f"line {line} is not an operation")
        name, *fields = value
        hints = _FIELDS[name]
        if len(fields) != len(hints):
            raise _MalformedError(f"line {line}: {name} has {len(hints)} fields, not {len(fields)}")
        make: Any = _KINDS[name]
        yield make(
            *(
                _field(value, kind, f"line {line}: {field}")
                for (field, kind), value in zip(hints.items(), fields, strict=True)
            )
        )


def _field(value: object, kind: type, name: str) -> object:
    if kind is bytes:
        return _bytes(value, name)
    if kind is SyncFailure and value in list(SyncFailure):
        return SyncFailure(str(value))
    if type(value) is not kind:
        raise _MalformedError(f"{name}={value!r} is not of type {kind.__name__}")
    return value


# -- the image -----------------------------------------------------------------------------


def _image(values: list[Any], next_inode: int) -> Image:
    table = InodeTable(Map())
    entries: dict[int, dict[str, int]] = {}
    for line, value in enumerate(values, 2):
        inode = _inode(value, entries, f"line {line}")
        if table.get(inode.number) is not None:
            raise _MalformedError(f"line {line}: inode {inode.number} is there twice")
        table.add(inode)
    if ROOT not in entries:
        raise _MalformedError(f"the image has no root directory, which is inode {ROOT}")
    if next_inode <= max(table.changed):
        raise _MalformedError(f"next_inode={next_inode} is not above every inode of the image")
    root = table.own(ROOT)
    root.parent, root.links = ROOT, 2
    _attach(table, root, entries)
    for number, inode in table.changed.items():
        if not inode.links:
            raise _MalformedError(f"no path leads to inode {number}")
    return Image.of_platter(table.rebase(), next_inode)


def _inode(value: Any, entries: dict[int, dict[str, int]], where: str) -> Inode:
    """Return an inode without a name; add the names of a directory to ``entries``."""
    if not isinstance(value, list) or len(value) != len(_NUMBERS) + 1:
        raise _MalformedError(f"{where} is not an inode")
    *numbers, content = value
    for name, figure in zip(_NUMBERS, numbers, strict=True):
        if name in _TIMES:
            _field(figure, int, f"{where}: {name}")
        else:
            _count(figure, f"{where}: {name}", FILE_MAX_BYTES if name == "size" else INODE_MAX)
    number, mode, uid, gid, size, atime_ns, mtime_ns, ctime_ns = numbers
    if reason := refusal_of_attributes(mode, uid, gid):
        raise _MalformedError(f"{where}: {reason}")
    link_text = content if isinstance(content, str) else ""
    inode = Inode.new(number, mode, uid, gid, link_text, 0)
    is_map = isinstance(content, dict) and (inode.is_file or inode.is_directory)
    if not (is_map or (link_text and inode.is_symlink)):
        raise _MalformedError(f"{where}: the content does not go with mode {mode:#o}")
    inode.atime_ns, inode.mtime_ns, inode.ctime_ns = atime_ns, mtime_ns, ctime_ns
    if inode.is_directory:
        if not all(map(is_name, content)):
            raise _MalformedError(f"{where} has a name that no directory entry can have")
        entries[number] = {
            name: _count(meaning, f"{where}: {name!r}") for name, meaning in content.items()
        }
    elif inode.is_file:
        inode.size = size
        inode.blocks = Map(_blocks(content, size, where))
    return inode


def _blocks(content: dict[str, object], size: int, where: str) -> Iterator[tuple[int, bytes]]:
    for index, value in content.items():
        block = _bytes(value, f"{where}: block {index}")
        if not index.isdecimal() or not 0 < len(block) <= BLOCK_BYTES:
            raise _MalformedError(f"{where}: block {index} cannot have {len(block)} bytes")
        if int(index) * BLOCK_BYTES + len(block) > size:
            raise _MalformedError(f"{where}: block {index} goes beyond the size of {size} bytes")
        yield int(index), block


def _attach(table: InodeTable, root: Inode, entries: dict[int, dict[str, int]]) -> None:
    """Enter the names of all directories, from the root down."""
    waiting = [root]
    while waiting:
        holder = waiting.pop()
        for name, number in sorted(entries[holder.number].items()):
            inode = table.changed.get(number)
            if inode is None or inode.parent:
                reason = "has two names" if inode is not None else "does not exist"
                raise _MalformedError(f"{name!r} means inode {number}, which {reason}")
            table.attach(holder, name, inode)
            if inode.is_directory:
                waiting.append(inode)
