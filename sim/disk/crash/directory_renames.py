"""The unsynced renames of directories, and which of them another one needs."""

from __future__ import annotations

from collections.abc import Iterator

from sim.disk.crash.micro_operation import MoveName, Name, given_name, taken_name


class DirectoryRenames:
    """The renames of directories so far, as indices of pieces.

    A rename needs those without which it could replace a directory that has moved away, or one
    that still holds a directory, and the earlier ones of the same directory. Those into another
    directory keep their order, so that no two directories hold each other. One that another of them
    needs is left out, so that a rename among many does not go through all of them.
    """

    __slots__ = ("_into_other", "_of_directory", "_out_of", "_taking")

    def __init__(self) -> None:
        self._taking: dict[Name, list[int]] = {}
        self._of_directory: dict[int, int] = {}
        self._out_of: dict[int, int] = {}
        self._into_other: int | None = None

    def before(self, move: MoveName) -> Iterator[int]:
        """Yield the renames that the next one needs."""
        yield from self._taking.get(given_name(move), ())
        if move.number in self._of_directory:
            yield self._of_directory[move.number]
        if move.replaced in self._out_of:
            yield self._out_of[move.replaced]
        if self._into_other is not None and changes_parent(move):
            yield self._into_other

    def add(self, move: MoveName, index: int, needs: int) -> None:
        """Add the next rename; ``needs`` is the set of all pieces that it needs."""
        taking = self._taking.get(taken_name(move), ())
        left = [each for each in taking if not needs >> each & 1]
        self._taking[taken_name(move)] = [*left, index]
        self._of_directory[move.number] = index
        if changes_parent(move):
            self._into_other = self._out_of[move.directory] = index


def changes_parent(move: MoveName) -> bool:
    """Return whether a rename leads into another directory."""
    return move.directory != move.to_directory
