"""The order in which files were changed, synced and replaced, as far as btrfs depends on it.

btrfs writes a file to its log when the file is synced, and a commit in the background empties the
log. So of two synced files, the one that was synced last is in the log if the other one is. A
rename of a file that is in the log is logged as a whole (docs/disk.md, classes B8 and B9), and at
once, so that later changes do not overtake it. A file that a rename has replaced, and that has no
other name, is not logged at all (class B19). A file whose names are as its last barrier left them
is logged by no other call, so its truncation becomes durable by a commit.
"""

from __future__ import annotations

import sys
from stat import S_ISDIR
from typing import Final, NamedTuple

from immutables import Map

from sim.disk.cache.operation import (
    Allocate,
    Create,
    FailedSync,
    Link,
    Operation,
    Rename,
    Resize,
    Sync,
    Unlink,
    Write,
)
from sim.disk.crash.micro_operation import MicroOperation, SetSize, directories_of

_NO_INODE: Final = 0


class LoggedRename(NamedTuple):
    """A rename, operation ``number``, that was logged at once.

    Changes before the next barrier, which is operation ``end``, do not overtake it.
    """

    number: int
    rename: Rename
    end: int = sys.maxsize


class LogOrder(NamedTuple):
    """The last changes and barriers of each inode since a power cut, by operation numbers.

    The kernel does not notice a kill, so the next lifetime continues with it. Numbers go on too:
    ``before`` is the number of operations of the lifetimes before this one.
    """

    changed: Map[int, int] = Map()
    # The last change of each file that a barrier on the file has covered.
    logged: Map[int, int] = Map()
    barriers: Map[int, int] = Map()
    # The last change of the names of each inode, or a barrier that failed, if that is later.
    named: Map[int, int] = Map()
    # The rename that took the last name of a file.
    replaced: Map[int, int] = Map()
    last_barrier: int = 0
    # The file that is in the log if anything is: all barriers since its last synced change were on
    # it. So if a commit in the background has emptied the log after that, nothing is in it.
    in_log: int = _NO_INODE
    renames: tuple[LoggedRename, ...] = ()
    before: int = 0

    def advanced(self, operation: Operation, number: int) -> tuple[LogOrder, bool]:
        """Return the order after operation ``number`` of this lifetime.

        The second value is whether earlier changes may overtake others from now on that they
        could not.
        """
        number += self.before
        match operation:
            case Create(mode=mode) if S_ISDIR(mode):
                return self, False
            case Create() | Write() | Resize() | Allocate():
                return self._replace(changed=self.changed.set(operation.inode, number)), False
            case Sync(inode=inode):
                synced = self._synced(inode, number)
                return synced, bool(synced.renames)
            case FailedSync(inode=inode):
                allows_more = bool(self.renames) or self._is_freed(inode)
                return self._failed(inode, number), allows_more
            case Link(inode=inode) | Unlink(inode=inode):
                allows_more = self._undoes(operation) or self._is_freed(inode)
                return self._named(operation, number), allows_more
            case Rename(inode=inode, replaced=replaced):
                frees = self._is_freed(inode) or self._is_freed(replaced)
                return self._renamed(operation, number), self._undoes(operation) or frees
            case _:
                return self, False

    def _synced(self, inode: int, number: int) -> LogOrder:
        """Return the order after a barrier, which ends the time of the last logged rename.

        The renames that the barrier makes durable are forgotten.
        """
        changed = self.changed.get(inode, 0)
        is_in_log = inode == self.in_log or changed > self.last_barrier
        return self._replace(
            logged=self.logged.set(inode, changed) if changed else self.logged,
            barriers=self.barriers.set(inode, number),
            last_barrier=number,
            in_log=inode if is_in_log else _NO_INODE,
            renames=tuple(
                each._replace(end=min(number, each.end))
                for each in self.renames
                if inode not in {_NO_INODE, each.rename.inode, each.rename.to_directory}
            ),
        )

    def _failed(self, inode: int, number: int) -> LogOrder:
        named = self.named.set(inode, number)
        return self._replace(named=named, last_barrier=number, in_log=_NO_INODE, renames=())

    def _named(self, change: Link | Unlink | Rename, number: int) -> LogOrder:
        """Return the order after a change of names: the log has only the last names of a file."""
        kept = tuple(each for each in self.renames if not _is_undone(each.rename, change))
        return self._replace(named=self.named.set(change.inode, number), renames=kept)

    def _renamed(self, rename: Rename, number: int) -> LogOrder:
        order, replaced = self._named(rename, number), rename.replaced
        if replaced:
            order = order._replace(named=order.named.set(replaced, number))
        if replaced and not rename.links_left:
            order = order._replace(replaced=order.replaced.set(replaced, number))
        if rename.inode == self.in_log:
            order = order._replace(renames=(*order.renames, LoggedRename(number, rename)))
        return order

    def _undoes(self, change: Link | Unlink | Rename) -> bool:
        return any(_is_undone(each.rename, change) for each in self.renames)

    def _is_freed(self, inode: int) -> bool:
        """Return whether a change of names frees an unsynced change that waits for a commit."""
        is_changed = self.changed.get(inode, 0) > self.barriers.get(inode, 0)
        return is_changed and self._has_synced_names(inode)

    def _has_synced_names(self, inode: int) -> bool:
        """Return whether a barrier on a file has come since the last change of its names."""
        is_synced = self.barriers.get(inode, 0) > self.named.get(inode, 0)
        return is_synced and inode not in self.replaced

    def waits_for_commit(self, micro: MicroOperation) -> bool:
        """Return whether a piece becomes durable only by a commit, with all before it.

        That is a truncation. If the names of the file have changed, a barrier on a directory or
        on another file may log it with its size, and so may the change itself.
        """
        return isinstance(micro, SetSize) and self._has_synced_names(micro.number)

    def rename_before(self, micro: MicroOperation) -> tuple[int, int] | None:
        """Return the rename that a piece cannot overtake: operation and inode.

        There is none if the piece is of the same file, or if a barrier that came after it was on
        an inode that it changes: then the log may have the piece.
        """
        at = micro.operation + self.before
        for number, rename, end in self.renames:
            if number < at < end and micro.number != rename.inode:
                return None if self._may_be_logged(micro) else (number - self.before, rename.inode)
        return None

    def _may_be_logged(self, micro: MicroOperation) -> bool:
        changed, at = (micro.number, *directories_of(micro)), micro.operation + self.before
        return any(self.barriers.get(inode, 0) > at for inode in changed)

    def covers_nothing(self, sync: Sync) -> bool:
        """Return whether a barrier is on an inode whose last name a rename has taken."""
        return sync.inode in self.replaced

    def is_logged_since(self, inode: int, other: int) -> bool:
        """Return whether a file was changed, and then synced, after the last barrier on another.

        A commit may come between, but then the log has neither of them until the next barrier on
        one of them (``sides.with_losses_of``).
        """
        return self.logged.get(inode, 0) > self.barriers.get(other, 0)

    def continued(self, operations: int) -> LogOrder:
        """Return the order for the next lifetime, after so many operations of this one."""
        return self._replace(before=self.before + operations)


def _is_undone(rename: Rename, change: Link | Unlink | Rename) -> bool:
    """Return whether a change of names concerns the file or a name of an earlier rename."""
    return rename.inode == change.inode or not _names(rename).isdisjoint(_names(change))


def _names(change: Link | Unlink | Rename) -> set[tuple[int, str]]:
    """Return the names that an operation changes, each with its directory."""
    names = {(change.directory, change.name)}
    if isinstance(change, Rename):
        names.add((change.to_directory, change.to_name))
    return names
