"""The file systems that are recorded: how each is made and mounted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from sim.errors import HarnessError

_MIB: Final = 1 << 20


class Kind(Enum):
    """A file system of the kernel, by its name in ``mount(2)``."""

    EXT4 = "ext4"
    XFS = "xfs"
    BTRFS = "btrfs"


@dataclass(frozen=True, slots=True)
class FileSystem:
    """A file system with its mount options, by the name that calibration files use."""

    name: str
    kind: Kind
    options: Mapping[str, str | None]

    @property
    def size_bytes(self) -> int:
        """Size of its device: little more than the least that mkfs accepts."""
        return _SIZES[self.kind]

    @property
    def mkfs(self) -> tuple[str, ...]:
        """The command that makes one, without the device."""
        return _MKFS[self.kind]

    @property
    def package(self) -> str:
        """The package of most distributions that has the command."""
        return _PACKAGES[self.kind]


_SIZES: Final = {Kind.EXT4: 48 * _MIB, Kind.XFS: 320 * _MIB, Kind.BTRFS: 128 * _MIB}
_MKFS: Final = {
    Kind.EXT4: (
        *("mkfs.ext4", "-q", "-b", "4096", "-J", "size=4"),
        *("-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"),
    ),
    Kind.XFS: ("mkfs.xfs", "-q", "-f", "-K", "-d", "agcount=2"),
    Kind.BTRFS: ("mkfs.btrfs", "-q", "-f", "-K"),
}
_PACKAGES: Final = {Kind.EXT4: "e2fsprogs", Kind.XFS: "xfsprogs", Kind.BTRFS: "btrfs-progs"}


def _ext4(name: str, data: str, delayed_allocation: bool = True) -> FileSystem:
    options: dict[str, str | None] = {"data": data}
    if not delayed_allocation:
        options["nodelalloc"] = None
    return FileSystem(name, Kind.EXT4, options)


FILE_SYSTEMS: Final[Mapping[str, FileSystem]] = MappingProxyType(
    {
        system.name: system
        for system in (
            _ext4("ext4", "ordered"),
            _ext4("ext4wb", "writeback"),
            _ext4("ext4j", "journal"),
            _ext4("ext4nd", "ordered", delayed_allocation=False),
            _ext4("ext4wbnd", "writeback", delayed_allocation=False),
            # The crash images of one program have the same identifier.
            FileSystem("xfs", Kind.XFS, {"nouuid": None}),
            FileSystem("btrfs", Kind.BTRFS, {}),
        )
    }
)
_DEFAULT: Final = ("ext4", "xfs", "btrfs")


def file_systems_named(names: Sequence[str]) -> list[FileSystem]:
    """Return the file systems of these names, each once; without names ext4, xfs and btrfs.

    Raises ``HarnessError`` for an unknown name.
    """
    for name in names:
        if name not in FILE_SYSTEMS:
            known = ", ".join(FILE_SYSTEMS)
            raise HarnessError(f"there is no file system {name!r}; known: {known}")
    return [FILE_SYSTEMS[name] for name in dict.fromkeys(names or _DEFAULT)]
