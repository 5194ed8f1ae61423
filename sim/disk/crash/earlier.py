"""The operations before one that is cut into pieces, as far as they matter to its pieces."""

from __future__ import annotations

from dataclasses import dataclass

from sim.disk.cache.inode_table import InodeTable
from sim.disk.crash.log_order import LogOrder
from sim.disk.crash.lost_pages import LostPages
from sim.disk.crash.micro_operation import CreateInode
from sim.disk.crash.notes import Notes
from sim.disk.crash.ordering import Ordering
from sim.disk.crash.persistence import RenameParts


@dataclass(slots=True)
class Earlier:
    """The unsynced pieces of earlier operations, and the platter below them, which is ``table``."""

    table: InodeTable
    ordering: Ordering
    notes: Notes
    log_order: LogOrder
    lost: LostPages

    @property
    def rename_parts(self) -> RenameParts:
        """The renames that become durable in parts; without a log tree these may be none."""
        return self.ordering.model.rename_parts

    def reaches(self, number: int, size: int) -> bool:
        """Return whether an inode has this size without the end of a block in a gap."""
        return self.ordering.reaches(number, size, self._size_on_platter(number))

    def extends_to(self, number: int, size: int) -> bool:
        """Return whether an inode has at least this size if all unsynced pieces survive.

        After a failed barrier it may be shorter than in the page cache.
        """
        return self.ordering.extends_to(number, size, self._size_on_platter(number))

    def _size_on_platter(self, number: int) -> int:
        inode = self.table.get(number)
        return 0 if inode is None else inode.size

    def old_tail(self, number: int, size: int) -> bytes:
        """Return the bytes that a truncation to ``size`` left behind the end of this inode."""
        return self.notes.old_tail(number, size)

    def allocates(self, number: int, block: int) -> bool:
        """Return whether an unsynced write allocates this block of this inode."""
        return self.ordering.allocates(number, block)

    def durable_name(self, number: int, directory: int, name: str) -> tuple[int, str] | None:
        """Return the durable name that this inode left by unsynced renames to the given one."""
        return self.ordering.durable_name(number, (directory, name))

    def lacks_directory_barrier(self, number: int, directory: int, name: str) -> bool:
        """Return whether no barrier on the directory has covered this name of a file."""
        is_unsynced = self.ordering.names.was_given_later(number, (directory, name))
        return is_unsynced or self.notes.is_logged(number, directory, name)

    def is_logged_since(self, number: int, other: int) -> bool:
        """Return whether a file was changed, and then synced, after the last barrier on another."""
        return self.log_order.is_logged_since(number, other)

    def former_holder(self, number: int, directory: int, name: str) -> int:
        """Return the inode that gets this name back when this inode loses it; or 0.

        Its loss is unsynced. A barrier has covered the name of this inode, or of one before it,
        and none did so on the directory.
        """
        first = self._durable_holder(directory, name)
        if first == number or self.notes.is_logged(first, directory, name):
            return self.notes.former_holder({first, number}, directory, name)
        return 0

    def _durable_holder(self, directory: int, name: str) -> int:
        """Return the inode that has this name on the platter, or 0."""
        holder = self.table.get(directory)
        return 0 if holder is None else holder.entries.get(name, 0)

    def replaced_before(self, number: int, directory: int, name: str) -> int:
        """Return the inode that gets this name back when another replaces this inode; or 0.

        If the name of this inode is unsynced, that is also the file that has it on the platter,
        unless only a barrier on that file has covered the name, or the file has moved away.
        """
        first = self._durable_holder(directory, name)
        if first == number or self.notes.is_logged(first, directory, name):
            return self.former_holder(number, directory, name)
        if not first or self.is_directory(first):
            return 0
        return 0 if self.ordering.names.has_left(first, (directory, name)) else first

    def is_directory(self, number: int) -> bool:
        """Return whether this inode is a directory."""
        creation = self.ordering.creation(number)
        if creation is not None:
            created = self.ordering.micros[creation]
            assert isinstance(created, CreateInode), created
            return created.is_directory
        inode = self.table.get(number)
        return inode is not None and inode.is_directory
