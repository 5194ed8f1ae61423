"""Names of a stack: the inode that a directory entry means, read from its last change backwards."""

from __future__ import annotations

from typing import Final

from sim.disk.crash.micro_operation import (
    Arrival,
    CreateInode,
    ForgetName,
    MicroOperation,
    MoveName,
    Name,
    UnlinkName,
    given_name,
)
from sim.disk.crash.undecided.stack import Decision, Stack

_NONE: Final[frozenset[int]] = frozenset()


def entry(stack: Stack, name: Name) -> int | Decision:
    """Return the inode that a name means, or 0."""
    return entry_at(stack, stack.top, name)


def entry_at(stack: Stack, level: int, name: Name) -> int | Decision:
    """Return the inode that a name means on a layer, or 0; level -1 is the platter."""
    while level >= 0 and name not in stack.layers[level].cells:
        level -= 1
    if level < 0:
        holder = stack.base.get(name[0])
        return 0 if holder is None else holder.entries.get(name[1], 0)
    events = stack.layers[level].cells[name]
    return _entry_after(stack, level, name, len(events), _NONE)


def _entry_after(
    stack: Stack, level: int, name: Name, count: int, departed: frozenset[int]
) -> int | Decision:
    """Return the inode after ``count`` changes of a name, 0 for one of those ``departed`` since."""
    if not count:
        found = entry_at(stack, level - 1, name)
        return found if isinstance(found, Decision) or found not in departed else 0
    index = stack.layers[level].cells[name][count - 1]
    micro = stack.layers[level].micros[index]
    survived = stack.survived(level, index)
    if survived is False:
        return _entry_after(stack, level, name, count - 1, departed)
    if _arrives(micro, name):
        if micro.number not in departed:
            return micro.number if survived is True else survived
        if survived is True:
            return 0
        found = _entry_after(stack, level, name, count - 1, departed)
        return found if found == 0 else survived
    assert isinstance(micro, UnlinkName | ForgetName | MoveName), micro
    if not isinstance(micro, ForgetName) and micro.returns_to:
        found = _after_return(stack, level, name, count, micro)
        return 0 if found in departed else found
    if survived is True or micro.number in departed:
        return _entry_after(stack, level, name, count - 1, departed | {micro.number})
    found = _entry_after(stack, level, name, count - 1, departed)
    return survived if isinstance(found, Decision) or found == micro.number else found


def _arrives(micro: MicroOperation, name: Name) -> bool:
    """Return whether a change of a name gives it to an inode."""
    return isinstance(micro, Arrival) and given_name(micro) == name


def _after_return(
    stack: Stack, level: int, name: Name, count: int, micro: UnlinkName | MoveName
) -> int | Decision:
    """Return the inode after change ``count``, with which another inode may get its name back."""
    survived = stack.survived(level, stack.layers[level].cells[name][count - 1])
    found = _entry_after(stack, level, name, count - 1, _NONE)
    if isinstance(found, Decision):
        return found if survived is True else survived
    if found != micro.number:
        return found
    if isinstance(survived, Decision):
        return survived
    exists = exists_at(stack, level, micro.returns_to)
    if isinstance(exists, Decision):
        return exists
    return micro.returns_to if exists else 0


def exists_at(stack: Stack, level: int, number: int) -> bool | Decision:
    """Return whether an inode was created, and its creation survived."""
    for each in range(level, -1, -1):
        creation = stack.layers[each].creations.get(number)
        if creation is not None:
            return stack.survived(each, creation)
    return number in stack.base


def is_there(stack: Stack, name: Name) -> bool | Decision:
    """Return whether a name means any inode.

    A name exists also while it is undecided which of several inodes it means.
    """
    level = stack.top
    while level >= 0 and name not in stack.layers[level].cells:
        level -= 1
    if level >= 0:
        found = _is_there_after(stack, level, name, len(stack.layers[level].cells[name]))
        if found is not None:
            return found
    inode = entry(stack, name)
    return inode if isinstance(inode, Decision) else bool(inode)


def _is_there_after(stack: Stack, level: int, name: Name, count: int) -> bool | None:
    """Return True if arrivals that are not decided replace a name that is there; else None."""
    while count:
        index = stack.layers[level].cells[name][count - 1]
        micro = stack.layers[level].micros[index]
        survived = stack.survived(level, index)
        arrives = _arrives(micro, name)
        if survived is True and arrives:
            return True
        if survived is not False and not arrives:
            return None
        count -= 1
    found = entry_at(stack, level - 1, name)
    return None if isinstance(found, Decision) or not found else True


def names(stack: Stack, directory: int) -> tuple[str, ...] | Decision:
    """Return the names in a directory, sorted."""
    holder = stack.base.get(directory)
    changed: dict[str, None] = {}
    for layer in stack.layers:
        changed.update(layer.names.get(directory, {}))
    found = [] if holder is None else [name for name in holder.entries if name not in changed]
    for name in changed:
        there = is_there(stack, (directory, name))
        if isinstance(there, Decision):
            return there
        if there:
            found.append(name)
    return tuple(sorted(found))


def links(stack: Stack, number: int) -> int | Decision:
    """Return the number of names of an inode that is not a directory."""
    inode = stack.base.get(number)
    total = 0 if inode is None else inode.links
    cells: dict[Name, None] = {}
    for layer in stack.layers:
        cells.update(dict.fromkeys(layer.cells))
    for name in cells:
        if number not in _candidates(stack, name):
            continue
        found = entry(stack, name)
        if isinstance(found, Decision):
            return found
        before = entry_at(stack, -1, name)
        total += (found == number) - (before == number)
    return total


def _candidates(stack: Stack, name: Name) -> set[int]:
    """Return every inode that a name may mean."""
    found: set[int] = set()
    for layer in stack.layers:
        for index in layer.cells.get(name, ()):
            micro = layer.micros[index]
            found.add(micro.number)
            if isinstance(micro, UnlinkName | MoveName):
                found.add(micro.returns_to)
    before = entry_at(stack, -1, name)
    assert isinstance(before, int)
    return found | {before}


def directory_links(stack: Stack, directory: int) -> int | Decision:
    """Return the link count of a directory that has a path: 2, and 1 for each subdirectory."""
    listed = names(stack, directory)
    if isinstance(listed, Decision):
        return listed
    total = 2
    for name in listed:
        found = entry(stack, (directory, name))
        if isinstance(found, Decision):
            return found
        total += is_directory(stack, found)
    return total


def is_directory(stack: Stack, number: int) -> bool:
    """Return whether an inode is a directory, which no power cut can change."""
    for layer in stack.layers:
        creation = layer.creations.get(number)
        if creation is not None:
            created = layer.micros[creation]
            assert isinstance(created, CreateInode), created
            return created.is_directory
    inode = stack.base.get(number)
    return inode is not None and inode.is_directory


def parent(stack: Stack, number: int) -> int | Decision:
    """Return the directory that holds a directory; that of the root is itself."""
    for level in range(stack.top, -1, -1):
        layer = stack.layers[level]
        for index in reversed(layer.arrivals.get(number, ())):
            survived = stack.survived(level, index)
            if isinstance(survived, Decision):
                return survived
            if survived:
                micro = layer.micros[index]
                assert isinstance(micro, Arrival), micro
                return given_name(micro)[0]
    inode = stack.base.get(number)
    assert inode is not None, number
    return inode.parent
