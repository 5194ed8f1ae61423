"""The persistence models: which unsynced operations may survive a power cut, as data.

A model answers the rows of the table below and nothing else; ``ordering.py`` turns the
answers into "must precede", ``unsynced.py`` into what a sync covers. The facts are from
[ALICE] Pillai et al., OSDI'14 (table 1 and the appendix on file-system properties),
[Ferrite] Bornholt et al., ASPLOS'16, the kernel's ``Documentation/filesystems/ext4``,
and from crash images of Linux 6.18 (``tests/litmus/test_seen_on_linux.py``). Where they
disagree the weaker promise is taken.

The models form a lattice: every state that is legal under a stronger one is legal under
a weaker one. ``scc`` < ``ext4-journal`` < ``ext4-ordered`` < ``ext4-writeback`` <
``posix``; ``xfs`` < ``posix``; ``btrfs`` < ``posix``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from sim.disk.cache.inode import BLOCK_BYTES, SECTOR_BYTES
from sim.errors import HarnessError


class DataBeforeSize(Enum):
    """Whether the new size of an append waits for the data it exposes."""

    ALWAYS = "always"
    NEW_BLOCKS = "newly allocated blocks"
    NEVER = "never"


class StaleBytes(Enum):
    """Where an append whose data was lost may show what the block held before."""

    NOWHERE = "nowhere"
    NEW_BLOCKS = "newly allocated blocks"
    ANYWHERE = "any appended slice"


class TruncateOrder(Enum):
    """What a truncation keeps its order with."""

    METADATA = "all metadata, and later writes to its file"
    FILE = "later writes to its file"
    NONE = "other changes of the same size"


class DirectoryOrder(Enum):
    """Which operations on directory entries keep their order."""

    ALL = "all"
    SAME = "within one directory"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class PersistenceModel:
    """One file system's promises about a power cut.

    ``unit_bytes``
        what of an overwrite reaches the platter whole or not at all, in bytes; 0 means
        the whole call.
    ``torn_units``
        even such a unit may survive as a prefix of its bytes.
    ``sequential``
        everything reaches the platter in program order, a unit with the size it brings: a
        survivor set is a prefix.
    ``data_before_size``, ``stale_bytes``
        what an append whose data was lost may look like.
    ``directory_order``
        which changes of directory entries keep their order; with ``ALL``, so do
        truncations, attributes, and a later change of any size.
    ``rename_over_waits``, ``rename_new_waits``
        a rename over an existing name, or to a new one, waits for the data of the file
        it moves.
    ``sync_names``
        fsync of a file makes the names it was given durable.
    ``sync_metadata``
        fsync of a file makes all earlier metadata durable, of other files too.
    ``truncate_order``
        what a truncation keeps its order with.
    ``atomic_rename``
        a rename is one micro-operation; otherwise it is unlink, link, unlink.
    """

    name: str
    unit_bytes: int
    torn_units: bool
    sequential: bool
    data_before_size: DataBeforeSize
    stale_bytes: StaleBytes
    directory_order: DirectoryOrder
    rename_over_waits: bool
    rename_new_waits: bool
    sync_names: bool
    sync_metadata: bool
    truncate_order: TruncateOrder
    atomic_rename: bool = True

    def with_strong_heuristics(self) -> PersistenceModel:
        """Return this model, with a rename over a name that waits for the new file's data.

        ext4's ``auto_da_alloc`` starts that flush, and in practice it comes first; no
        document promises it.
        """
        return replace(self, name=f"{self.name}+strong", rename_over_waits=True)

    def with_torn_rename(self) -> PersistenceModel:
        """Return this model, with a rename that may stop between its parts [ALICE]."""
        return replace(self, name=f"{self.name}+torn-rename", atomic_rename=False)


SCC: Final = PersistenceModel(
    name="scc",
    unit_bytes=0,
    torn_units=False,
    sequential=True,
    data_before_size=DataBeforeSize.ALWAYS,
    stale_bytes=StaleBytes.NOWHERE,
    directory_order=DirectoryOrder.ALL,
    rename_over_waits=True,
    rename_new_waits=True,
    sync_names=True,
    sync_metadata=True,
    truncate_order=TruncateOrder.METADATA,
)
EXT4_JOURNAL: Final = replace(SCC, name="ext4-journal", unit_bytes=BLOCK_BYTES)
EXT4_ORDERED: Final = replace(
    EXT4_JOURNAL,
    name="ext4-ordered",
    unit_bytes=SECTOR_BYTES,
    sequential=False,
    data_before_size=DataBeforeSize.NEW_BLOCKS,
    rename_over_waits=False,
    rename_new_waits=False,
)
EXT4_WRITEBACK: Final = replace(
    EXT4_ORDERED,
    name="ext4-writeback",
    data_before_size=DataBeforeSize.NEVER,
    stale_bytes=StaleBytes.NEW_BLOCKS,
)
XFS: Final = replace(EXT4_ORDERED, name="xfs", data_before_size=DataBeforeSize.ALWAYS)
BTRFS: Final = replace(
    XFS,
    name="btrfs",
    unit_bytes=BLOCK_BYTES,
    directory_order=DirectoryOrder.SAME,
    rename_over_waits=True,
    sync_metadata=False,
    truncate_order=TruncateOrder.FILE,
)
POSIX: Final = replace(
    EXT4_WRITEBACK,
    name="posix",
    torn_units=True,
    stale_bytes=StaleBytes.ANYWHERE,
    directory_order=DirectoryOrder.NONE,
    sync_names=False,
    sync_metadata=False,
    truncate_order=TruncateOrder.NONE,
)

MODELS: Final[dict[str, PersistenceModel]] = {
    model.name: model
    for model in (SCC, EXT4_JOURNAL, EXT4_ORDERED, EXT4_WRITEBACK, XFS, BTRFS, POSIX)
}
STRONGER_THAN: Final[tuple[tuple[PersistenceModel, PersistenceModel], ...]] = (
    (SCC, EXT4_JOURNAL),
    (EXT4_JOURNAL, EXT4_ORDERED),
    (EXT4_ORDERED, EXT4_WRITEBACK),
    (EXT4_WRITEBACK, POSIX),
    (XFS, POSIX),
    (BTRFS, POSIX),
)


def model_named(name: str) -> PersistenceModel:
    """Return the model of this name; ``HarnessError`` names the known ones."""
    try:
        return MODELS[name]
    except KeyError:
        known = ", ".join(MODELS)
        raise HarnessError(f"unknown persistence model {name!r}; known are {known}") from None
