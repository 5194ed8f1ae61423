"""The same apsw program on SQLite's own unix VFS and on the simulated disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import apsw

from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from sim.sqlite.connection import connect

READ_WRITE_CREATE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE


class Arm(Protocol):
    """A directory for databases; names are relative to it."""

    def open(self, name: str, flags: int = READ_WRITE_CREATE) -> apsw.Connection:
        """Open a database; the arm closes it at the end."""
        ...

    def files(self) -> dict[str, bytes]:
        """Return the files in the directory and below, by name."""
        ...

    def path(self, name: str) -> str:
        """Return the full path of a name."""
        ...

    def symlink(self, target: str, name: str) -> None:
        """Make a symbolic link."""
        ...

    def mkdir(self, name: str) -> None:
        """Make a directory."""
        ...


class UnixArm:
    """SQLite's unix VFS on a real directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def open(self, name: str, flags: int = READ_WRITE_CREATE) -> apsw.Connection:
        return apsw.Connection(self.path(name), flags, "unix")

    def files(self) -> dict[str, bytes]:
        return {
            str(entry.relative_to(self.root)): entry.read_bytes()
            for entry in sorted(self.root.rglob("*"))
            if entry.is_file() and not entry.is_symlink()
        }

    def path(self, name: str) -> str:
        return str(self.root / name)

    def symlink(self, target: str, name: str) -> None:
        (self.root / name).symlink_to(target)

    def mkdir(self, name: str) -> None:
        (self.root / name).mkdir()


class SimulatedArm:
    """The simulated VFS on a simulated directory of the same path."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.disk = Disk()
        self.process = Process(self.disk)
        for parent in [*reversed(root.parents), root][1:]:
            self.process.mkdir(str(parent))

    def open(self, name: str, flags: int = READ_WRITE_CREATE) -> apsw.Connection:
        return connect(self.process, self.path(name), flags=flags)

    def files(self) -> dict[str, bytes]:
        found = self.disk.snapshot().files()
        inside = self.root + "/"
        return {
            path.removeprefix(inside): content
            for path, content in sorted(found.items())
            if path.startswith(inside)
        }

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def symlink(self, target: str, name: str) -> None:
        self.process.symlink(target, self.path(name))

    def mkdir(self, name: str) -> None:
        self.process.mkdir(self.path(name))


def both_arms(tmp_path: Path) -> tuple[UnixArm, SimulatedArm]:
    """Return an empty directory of each kind."""
    return UnixArm(tmp_path), SimulatedArm(tmp_path)


def outcome(connection: apsw.Connection, statement: str) -> object:
    """Return the rows of a statement, or the type and the result codes of its error."""
    try:
        return list(connection.execute(statement))
    except apsw.Error as error:
        return codes(error)


def codes(error: apsw.Error) -> tuple[str, int, int]:
    """Return the type of an error, its result code and the extended one."""
    return type(error).__name__, getattr(error, "result", 0), getattr(error, "extendedresult", 0)


def opening(arm: Arm, name: str, flags: int = READ_WRITE_CREATE) -> Iterator[object]:
    """Yield the outcomes of opening a database, reading it and writing to it."""
    try:
        connection = arm.open(name, flags)
    except apsw.Error as error:
        yield codes(error)
        return
    yield outcome(connection, "SELECT count(*) FROM sqlite_schema")
    yield outcome(connection, "CREATE TABLE made (a)")
    connection.close()
