"""The files to which recoveries move damaged bytes: durable when the recovery has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from oracles.violation import LostAck


class ShadowQuarantine:
    """The content of each such file, by path."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def keep(self, paths: Iterable[str], read: Callable[[str], bytes]) -> None:
        """Record the files that a recovery names in its report; ``read`` returns their bytes."""
        for path in paths:
            self._kept.setdefault(path, read(path))

    def check(self, read: Callable[[str], bytes]) -> None:
        """Compare with the files of a disk, also one that a crash left."""
        for path, kept in self._kept.items():
            try:
                actual = read(path)
            except FileNotFoundError:
                actual = None
            if actual != kept:
                raise LostAck(
                    "bytes that recovery put aside are lost", path=path, kept=kept, actual=actual
                )
