"""Persistence models: the promises of file systems about a power cut, as data.

``pieces.py`` cuts operations by the units of a model, ``ordering.py`` derives the relation
"must survive before" from it, ``barrier.py`` the pieces that a sync covers. The facts come
from [ALICE] Pillai et al., OSDI'14 (table 1 and the appendix on file-system properties),
[Ferrite] Bornholt et al., ASPLOS'16, the kernel's ``Documentation/filesystems/ext4``, and
crash images of Linux 6.18 (``tests/litmus/test_seen_on_linux.py``). Where two sources
disagree, a model makes the weaker promise.

The models form a lattice: every state that is legal under a stronger model is legal under
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
    """The appends whose new size waits for the data that it exposes."""

    ALWAYS = "always"
    NEW_BLOCKS = "newly allocated blocks"
    NEVER = "never"


class StaleBytes(Enum):
    """The places where an append without its data may show earlier bytes of the disk."""

    NOWHERE = "nowhere"
    NEW_BLOCKS = "newly allocated blocks"
    ANYWHERE = "any appended slice"


class TruncateOrder(Enum):
    """The pieces that keep their order with a truncation."""

    METADATA = "all metadata, and later writes to its file"
    FILE = "later writes to its file"
    NONE = "other changes of the same size"


class DirectoryOrder(Enum):
    """The changes of directory entries that keep their order."""

    ALL = "all"
    SAME = "within one directory"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class PersistenceModel:
    """One file system's promises about a power cut.

    ``unit_bytes``
        the unit in which an overwrite reaches the platter completely or not at all, in
        bytes; 0 means the whole call.
    ``torn_units``
        even such a unit may survive as a prefix of its bytes.
    ``sequential``
        everything reaches the platter in program order, and a unit together with the size
        that it needs: a survivor set is a prefix.
    ``data_before_size``, ``stale_bytes``
        the content that an append without its data may show.
    ``directory_order``
        the changes of directory entries that keep their order; under ``ALL``, also
        truncations, changes of attributes, and a later change of any size.
    ``rename_over_waits``, ``rename_new_waits``
        a rename over an existing name, or to a new one, waits for the data of the file
        it moves.
    ``sync_names``
        fsync of a file makes its names durable.
    ``sync_metadata``
        fsync of a file makes all earlier metadata durable, of other files as well.
    ``truncate_order``
        the pieces that keep their order with a truncation.
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
        """Return this model, with a rename over a name that waits for the data of the file.

        ``auto_da_alloc`` of ext4 starts to write that data, and in practice it is written
        first; no document promises it.
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
    """Return the model of this name; the ``HarnessError`` for any other name lists them."""
    try:
        return MODELS[name]
    except KeyError:
        known = ", ".join(MODELS)
        raise HarnessError(f"unknown persistence model {name!r}; known are {known}") from None
