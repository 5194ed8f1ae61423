"""A real directory where the n-th call of a kind on a path can be made to fail with an errno.

It also writes down the calls, so that a test can say what came before what, and what
``pwrite`` wrote where.
"""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

from system.host import RealZones
from system.ports import Clock, Database, File, FileKind, FileSystem, Host, Ids, OpenMode, Workers


@dataclass
class Fault:
    """The ``nth`` call named ``call`` on a path that ends with ``ending`` goes wrong.

    With ``errno`` it raises; without, a transfer takes ``short_bytes`` of its data.
    ``sticky`` faults strike from then on always.
    """

    call: str
    ending: str
    errno: int | None = None
    nth: int = 1
    short_bytes: int = 0
    sticky: bool = False

    def strikes(self, call: str, path: str) -> bool:
        if call != self.call or not path.endswith(self.ending):
            return False
        self.nth -= 1
        return self.nth == 0 or (self.nth < 0 and self.sticky)


class FaultyFiles:
    """A file system that wraps another one."""

    def __init__(self, files: FileSystem) -> None:
        self.files = files
        self.faults: list[Fault] = []
        self.calls: list[str] = []
        self.written: list[tuple[str, int, bytes]] = []

    def fail(
        self, call: str, ending: str, errno: int, nth: int = 1, *, sticky: bool = False
    ) -> None:
        self.faults.append(Fault(call, ending, errno, nth, sticky=sticky))

    def transfer_less(self, call: str, ending: str, short_bytes: int, nth: int = 1) -> None:
        self.faults.append(Fault(call, ending, None, nth, short_bytes))

    def enter(self, call: str, path: str, data: bytes = b"", note: str = "") -> bytes:
        """Note a call; return how much of its data is to be taken, or raise."""
        for fault in self.faults:
            if fault.strikes(call, path):
                if fault.errno is not None:
                    raise OSError(fault.errno, os.strerror(fault.errno), path)
                data = data[: fault.short_bytes]
        self.calls.append(f"{call} {path}{note}")
        return data

    def open(self, path: str, mode: OpenMode) -> File:
        self.enter(f"open-{mode.value}", path)
        return FaultyFile(self, path, self.files.open(path, mode))

    def read(self, path: str) -> tuple[bytes, int]:
        self.enter("open-read", path)
        data, size_bytes = self.files.read(path)
        if size_bytes:
            data = self.enter("pread", path, data)
        self.enter("close", path)
        return data, size_bytes

    def replace(self, source: str, target: str) -> None:
        self.enter("replace", target)
        self.files.replace(source, target)

    def symlink(self, target: str, path: str) -> None:
        self.enter("symlink", path)
        self.files.symlink(target, path)

    def readlink(self, path: str) -> str:
        return self.files.readlink(path)

    def unlink(self, path: str) -> None:
        self.enter("unlink", path)
        self.files.unlink(path)

    def mkdir(self, path: str) -> None:
        self.enter("mkdir", path)
        self.files.mkdir(path)

    def rmdir(self, path: str) -> None:
        self.enter("rmdir", path)
        self.files.rmdir(path)

    def listdir(self, path: str) -> list[str]:
        self.enter("listdir", path)
        return self.files.listdir(path)

    def kind(self, path: str) -> FileKind | None:
        return self.files.kind(path)

    def sync_dir(self, path: str) -> None:
        self.enter("sync_dir", path)
        self.files.sync_dir(path)


class FaultyFile:
    """One open file of it."""

    def __init__(self, files: FaultyFiles, path: str, file: File) -> None:
        self.files = files
        self.path = path
        self.file = file

    def pread(self, size_bytes: int, offset: int) -> bytes:
        return self.files.enter("pread", self.path, self.file.pread(size_bytes, offset))

    def pwrite(self, data: bytes, offset: int) -> int:
        taken = self.files.enter("pwrite", self.path, data)
        self.files.written.append((self.path, offset, taken))
        return self.file.pwrite(taken, offset)

    def append(self, data: bytes) -> int:
        return self.file.append(self.files.enter("append", self.path, data))

    def truncate(self, size_bytes: int) -> None:
        self.files.enter("truncate", self.path, note=f" {size_bytes}")
        self.file.truncate(size_bytes)

    def size(self) -> int:
        return self.file.size()

    def fsync(self) -> None:
        self.files.enter("fsync", self.path)
        self.file.fsync()

    def fdatasync(self) -> None:
        self.files.enter("fdatasync", self.path)
        self.file.fdatasync()

    def lock(self) -> None:
        self.file.lock()

    def close(self) -> None:
        self.file.close()
        self.files.enter("close", self.path)


class CountingIds:
    """Ids that count, so that every run writes the same bytes."""

    def __init__(self) -> None:
        self.given = 0

    def uuid_hex(self) -> str:
        return self.random_hex(32)

    def random_hex(self, digits: int) -> str:
        self.given += 1
        return f"{self.given:0{digits}x}"


class StandingClock:
    """A clock that stands still at 2026-03-01T12:00:00.000042Z."""

    def wall_ns(self) -> int:
        return 1_772_366_400_000_042_000

    def monotonic_ns(self) -> int:
        return 0

    def sequence(self) -> int:
        return 1

    async def sleep(self, delay_ns: int) -> None:
        return

    def timeout(self, delay_ns: int) -> AbstractAsyncContextManager[object]:
        return nullcontext()


@dataclass(frozen=True)
class FaultyHost:
    """A host of the real directory ``directory``, and its parts by their own types."""

    directory: str
    host: Host
    files: FaultyFiles
    ids: CountingIds

    @classmethod
    def of(
        cls, directory: str, files: FileSystem, database: Database, workers: Workers
    ) -> FaultyHost:
        faulty, ids = FaultyFiles(files), CountingIds()
        clock: Clock = StandingClock()
        given: Ids = ids
        return cls(
            directory, Host(faulty, clock, given, database, workers, RealZones()), faulty, ids
        )

    def path(self, path: str) -> str:
        return os.path.join(self.directory, path)

    def read(self, path: str) -> bytes:
        with open(self.path(path), "rb") as file:
            return file.read()

    def write(self, path: str, data: bytes) -> None:
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        with open(self.path(path), "wb") as file:
            file.write(data)

    def names(self, path: str = "") -> list[str]:
        return sorted(os.listdir(self.path(path)))
