"""The names that unsynced operations have given to inodes, and the durable ones that they left."""

from __future__ import annotations

from sim.disk.crash.micro_operation import Name


class UnsyncedNames:
    """The names of each inode that are not durable; grows by one change at a time."""

    __slots__ = ("_durable", "_given", "_given_later", "_left")

    def __init__(self) -> None:
        # The names that each inode got, and the same without those that it was created with.
        self._given: set[tuple[int, Name]] = set()
        self._given_later: set[tuple[int, Name]] = set()
        # For an inode and a name to which renames have led: the durable name that they began at.
        self._durable: dict[tuple[int, Name], Name] = {}
        self._left: set[tuple[int, Name]] = set()

    def give(self, number: int, name: Name, left: Name | None, *, is_new: bool) -> None:
        """Give an inode a name, in place of ``left`` if that is not None.

        ``is_new``: the operation has created the inode.
        """
        # A link gives the name anew; the parts of a rename lead to it when the old name goes.
        self._durable.pop((number, name), None)
        if not is_new:
            self._given_later.add((number, name))
        if left is not None:
            self.lead(number, left, name)
        self._given.add((number, name))

    def lead(self, number: int, old: Name, new: Name) -> None:
        """Note that a rename has led an inode from its name ``old`` to ``new``."""
        durable = self._durable.pop((number, old), None)
        if durable is None and (number, old) not in self._given:
            durable = old
        if durable is not None:
            self._durable[number, new] = durable
            self._left.add((number, durable))

    def origin(self, number: int, name: Name) -> Name | None:
        """Return the durable name from which renames have led an inode to ``name``; or None."""
        return self._durable.get((number, name))

    def was_given_later(self, number: int, name: Name) -> bool:
        """Return whether a rename or a link has given an inode this name.

        The name with which an inode was created does not count, while the creation is unsynced.
        """
        return (number, name) in self._given_later

    def has_left(self, number: int, name: Name) -> bool:
        """Return whether renames moved an inode away from its durable name ``name``."""
        return (number, name) in self._left
