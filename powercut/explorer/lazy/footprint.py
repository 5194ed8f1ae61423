"""Footprints: the places of a disk that a boot has read or changed, in the numbers of its inodes.

A place is an entry of a directory, all its names (``ALL``), or an inode by itself: its content,
links and attributes (``ITSELF``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from sim.disk.cache.operation import (
    Create,
    Link,
    Operation,
    Rename,
    Sync,
    Unlink,
)
from sim.disk.crash.undecided.question import FIRST_NEW, Answer, NewInode, Property, Question

Place: TypeAlias = tuple[int, str]

ITSELF: Final = ""
ALL: Final = "/"


def written(operations: Iterable[Operation]) -> tuple[Place, ...]:
    """Return the places that operations of a boot change, without those in its new inodes.

    A barrier changes nothing that a process can read. One that fails does once pages are dropped.
    """
    found: dict[Place, None] = {}
    for operation in operations:
        match operation:
            case Sync():
                continue
            case Create(directory=directory, name=name):
                found[directory, name] = None
            case (
                Link(inode=inode, directory=directory, name=name)
                | Unlink(inode=inode, directory=directory, name=name)
            ):
                found[directory, name] = found[inode, ITSELF] = None
            case Rename():
                found[operation.directory, operation.name] = None
                found[operation.to_directory, operation.to_name] = None
                found[operation.inode, ITSELF] = found[operation.replaced, ITSELF] = None
            case _:
                found[operation.inode, ITSELF] = None
    return tuple(place for place in sorted(found) if 0 < place[0] < FIRST_NEW)


def read(answers: Iterable[tuple[Question, Answer]]) -> frozenset[Place]:
    """Return the places that these answers of a disk depend on."""
    found: set[Place] = set()
    met = 0
    for question, answer in answers:
        wanted, inode, _, _, name = question
        match wanted:
            case Property.ENTRY:
                found.add((inode, name))
            case Property.NAMES | Property.LINKS | Property.TIMES:
                found |= {(inode, ALL), (inode, ITSELF)}
            case _:
                found.add((inode, ITSELF))
        if isinstance(answer, NewInode):
            met += 1
            found.add((met, ITSELF))
    return frozenset(found)


def are_disjoint(
    changed: Iterable[Place],
    changed_numbers: Sequence[int],
    depends: Iterable[Place],
    depends_numbers: Sequence[int],
) -> bool:
    """Return whether no place is in both footprints, of boots that number inodes differently."""
    real = {(changed_numbers[inode - 1], name) for inode, name in changed}
    named = {inode for inode, name in real if name != ITSELF}
    return not any(
        depends_numbers[inode - 1] in named
        if name == ALL
        else (depends_numbers[inode - 1], name) in real
        for inode, name in depends
    )
