"""The names that exist after the calls of a program, if all of them succeeded."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from enum import Enum, auto
from typing import Final

from powercut.calibrate.program import Call


class _Kind(Enum):
    FILE = auto()
    DIRECTORY = auto()
    SYMLINK = auto()


_CREATED: Final = {
    "creat": (1, _Kind.FILE),
    "write": (1, _Kind.FILE),
    "otrunc": (1, _Kind.FILE),
    "link": (2, _Kind.FILE),
    "open": (2, _Kind.FILE),
    "hlink": (2, _Kind.FILE),
    "mkdir": (1, _Kind.DIRECTORY),
    "symlink": (2, _Kind.SYMLINK),
}
"""The calls that create a name, and the argument that is the name."""


class Names:
    """The names by kind, from which calls are chosen that succeed."""

    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = {}

    def apply(self, call: Call) -> None:
        """Record that ``call`` was made and succeeded."""
        name = str(call[0])
        if name in _CREATED:
            argument, kind = _CREATED[name]
            self._kinds.setdefault(str(call[argument]), kind)
        elif name in {"unlink", "rmdir"}:
            del self._kinds[str(call[1])]
        elif name == "rename":
            self._move(str(call[1]), str(call[2]))

    def files(self) -> list[str]:
        """Return the names of regular files, sorted."""
        return self._of(_Kind.FILE)

    def directories(self) -> list[str]:
        """Return the directories without the root, sorted."""
        return self._of(_Kind.DIRECTORY)

    def free(self, names: Iterable[str]) -> list[str]:
        """Return those of ``names`` that can be created."""
        return [name for name in names if self.can_create(name)]

    def can_create(self, name: str) -> bool:
        """Whether ``name`` is free and its directory exists."""
        return name not in self._kinds and self._has_parent(name)

    def below(self, directory: str) -> list[str]:
        """Return all names in a directory and in those within."""
        return [name for name in self._kinds if name.startswith(f"{directory}/")]

    def can_move_directory(self, old: str, new: str) -> bool:
        """Whether the directory ``old`` can be renamed ``new``, which may be an empty one."""
        if old == new or new.startswith(f"{old}/"):
            return False
        is_replaceable = self._kinds.get(new, _Kind.DIRECTORY) is _Kind.DIRECTORY
        return is_replaceable and self._has_parent(new) and not self.below(new)

    def _move(self, old: str, new: str) -> None:
        moved = {new: self._kinds.pop(old)}
        for name in self.below(old):
            moved[new + name.removeprefix(old)] = self._kinds.pop(name)
        self._kinds.update(moved)

    def _has_parent(self, name: str) -> bool:
        parent = posixpath.dirname(name)
        return not parent or self._kinds.get(parent) is _Kind.DIRECTORY

    def _of(self, kind: _Kind) -> list[str]:
        return sorted(name for name, its in self._kinds.items() if its is kind)
