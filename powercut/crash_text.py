"""The text of a power cut: the unsynced pieces that it lost, with paths and lines of the program.

Neighbouring ranges of one file are one line, and so is a file whose creation is lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from powercut.place import Place
from sim.disk.cache.inode import ROOT
from sim.disk.cache.inode_table import InodeTable
from sim.disk.cache.operation import Create, Link, Rename, Unlink
from sim.disk.crash.image import Image
from sim.disk.crash.journal import Journal
from sim.disk.crash.micro_operation import (
    ChangeAttributes,
    CreateInode,
    ForgetName,
    FreeBlocks,
    GrowSize,
    LinkName,
    MicroOperation,
    MoveName,
    Size,
    UnlinkName,
    WriteBlock,
    ZeroTail,
)
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk

MOST_LINES: Final = 5

Names: TypeAlias = Mapping[int, str]
"""Paths by inode number."""

Places: TypeAlias = Mapping[int, Place]
"""Lines of the program by the number of the operation."""

_NOWHERE: Final[Places] = MappingProxyType({})


class Loss(NamedTuple):
    """Pieces that a power cut lost, as one line, and the numbers of their operations."""

    text: str
    operations: tuple[int, ...]


def lost_lines(
    micros: Sequence[MicroOperation],
    survivors: SurvivorSet,
    names: Names,
    places: Places = _NOWHERE,
) -> Iterator[str]:
    """Yield at most five lines about the pieces of ``micros`` that are lost or torn.

    Equal lines in succession, as of several changes of the attributes of a file, are one.
    """
    lost = losses(micros, survivors, names)
    texts = [f"{loss.text}{_at(loss.operations, places)}" for loss in lost]
    found = [text for text, _ in groupby(texts)]
    shown = found if len(found) <= MOST_LINES else found[: MOST_LINES - 1]
    yield from (f"lost   {text}" for text in shown)
    if len(shown) < len(found):
        yield f"lost   and {len(found) - len(shown)} more pieces"
    if micros and not found:
        yield f"lost   nothing of {len(micros)} unsynced"


def names_on(disk: Disk) -> Names:
    """Return the path of every inode that has one in the page cache of this disk."""
    return {inode.number: path for path, inode in disk.snapshot().tree()}


def names_at(journal: Journal, number: int) -> Names:
    """Return the paths that inodes had after operation ``number``, or last before it."""
    return next(names_along(journal, {number}))


def names_along(journal: Journal, numbers: Collection[int]) -> Iterator[Names]:
    """Yield the names as ``names_at`` returns them, after each of ``numbers``, ascending."""
    table = InodeTable(journal.image.cached)
    names = {inode.number: path for path, inode in journal.image.tree()}
    done = 0
    for number in sorted(numbers):
        for operation in journal[done:number]:
            if isinstance(operation, Create) and not operation.name:
                names[operation.inode] = f"an unnamed file in {_path(operation.directory, names)}"
            elif isinstance(operation, Create | Link | Unlink):
                path, holder, name = operation.path, operation.directory, operation.name
                names[operation.inode] = _absolute(path, holder, name, names)
            elif isinstance(operation, Rename):
                path, holder, name = operation.to_path, operation.to_directory, operation.to_name
                names[operation.inode] = _absolute(path, holder, name, names)
            operation.apply(table)
        done = number
        cached = Image.of_platter(table.rebase(), journal.image.next_inode)
        yield names | {inode.number: path for path, inode in cached.tree()}


def losses(
    micros: Sequence[MicroOperation], survivors: SurvivorSet, names: Names
) -> Iterator[Loss]:
    """Yield the pieces of ``micros`` that are lost or torn, neighbours as one."""
    lost = [micros[index] for index in survivors.lost]
    created = {micro.number: micro for micro in lost if isinstance(micro, CreateInode)}
    for number, creation in created.items():
        noun = "directory" if creation.is_directory else "file"
        yield Loss(f"{noun} {_path(number, names)}", (creation.operation,))
    left = [micro for micro in lost if micro.number not in created]
    stale = {micros[index] for index in survivors.stale}
    for number in dict.fromkeys(micro.number for micro in left):
        yield from _contents(number, [m for m in left if m.number == number], stale, names)
    for micro in left:
        if not isinstance(micro, WriteBlock | Size):
            yield Loss(_text(micro, names), (micro.operation,))
    for index, kept in survivors.torn:
        block = micros[index]
        assert isinstance(block, WriteBlock), block
        path = _path(block.number, names)
        size = len(block.data)
        where = f"bytes {block.offset} to {block.offset + size}"
        text = f"data of {path}, {where}, torn: {kept} of {size} bytes survived"
        yield Loss(text, (block.operation,))


def _contents(
    number: int, micros: Sequence[MicroOperation], stale: Iterable[MicroOperation], names: Names
) -> Iterator[Loss]:
    """Yield the lost data of one file, neighbouring ranges as one, and its lost sizes."""
    path = _path(number, names)
    sizes = [micro for micro in micros if isinstance(micro, Size)]
    blocks = sorted(
        (micro for micro in micros if isinstance(micro, WriteBlock)),
        key=lambda block: block.offset,
    )
    runs: list[list[WriteBlock]] = []
    for block in blocks:
        if runs and block.offset <= _end(runs[-1]):
            runs[-1].append(block)
        else:
            runs.append([block])
    for run in runs:
        old = ", which shows stale bytes" if set(run) & set(stale) else ""
        text = f"data of {path}, bytes {run[0].offset} to {_end(run)}{old}"
        yield Loss(text, tuple(block.operation for block in run))
    if sizes and not (blocks and all(isinstance(size, GrowSize) for size in sizes)):
        last = sizes[-1]
        unit = "byte" if last.size == 1 else "bytes"
        yield Loss(f"size of {path}, {last.size} {unit}", (last.operation,))


def _end(run: Sequence[WriteBlock]) -> int:
    return max(block.offset + len(block.data) for block in run)


def _text(micro: MicroOperation, names: Names) -> str:
    path = _path(micro.number, names)
    match micro:
        case LinkName():
            return f"directory entry {_entry(micro.directory, micro.name, names)}"
        case UnlinkName() | ForgetName():
            return f"removal of directory entry {_entry(micro.directory, micro.name, names)}"
        case MoveName():
            old = _entry(micro.directory, micro.name, names)
            return f"rename of {old} to {_entry(micro.to_directory, micro.to_name, names)}"
        case ZeroTail():
            return f"zeros of {path}, bytes {micro.offset} to {micro.end}"
        case FreeBlocks():
            return f"freeing of {path} from byte {micro.start} on"
        case ChangeAttributes():
            return f"attributes of {path}"
        case _:
            return str(micro)


def _path(number: int, names: Names) -> str:
    return "/" if number == ROOT else names.get(number, f"inode {number}")


def _entry(directory: int, name: str, names: Names) -> str:
    return f"{_path(directory, names).rstrip('/')}/{name}"


def _absolute(path: str, directory: int, name: str, names: Names) -> str:
    """Return a path as the program passed it; a relative one as the name in its directory."""
    return path if path.startswith("/") else _entry(directory, name, names)


def _at(operations: Iterable[int], places: Places) -> str:
    found = dict.fromkeys(places[number].where for number in operations if number in places)
    return f", {' and '.join(found)}" if found else ""
