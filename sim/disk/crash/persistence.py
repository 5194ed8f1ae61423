"""Persistence models: the guarantees of file systems about a power cut or a kill, as data.

``pieces.py`` cuts operations by the units of a model, ``ordering.py`` derives the relation
"must survive before" from it, ``barrier.py`` the pieces that a sync covers. The data come
from crash images of Linux 6.18 (``docs/disk.md`` lists them), [ALICE] Pillai et al., OSDI'14
(table 1 and the appendix on file-system properties), [Ferrite] Bornholt et al., ASPLOS'16,
and the kernel's ``Documentation/filesystems/ext4``. Where two sources disagree, a model gives
the weaker guarantee.

The models form a lattice: every state that is legal under a stronger model is legal under
a weaker one, after a kill or a power cut. ``scc`` < ``ext4-journal`` < ``ext4`` <
``ext4-ordered`` < ``ext4-writeback`` < ``posix``; ``xfs`` < ``posix``; ``btrfs`` < ``posix``,
but for some states after several renames of a file (``docs/disk.md``).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Final

from sim.disk.cache.inode import BLOCK_BYTES, SECTOR_BYTES
from sim.errors import HarnessError

_UNBOUNDED: Final = 1 << 62


class DataBeforeSize(Enum):
    """The data and zeros for which a new size waits: those of the block in which it ends."""

    ALWAYS = "always"
    NEW_BLOCKS = "new blocks"
    """Only the data that the same call put into new blocks: ext4 before Linux 5.6 [Ferrite]. No
    model here has this value."""
    NEVER = "never"


class StaleBytes(Enum):
    """The places where an append without its data may show earlier bytes of the disk."""

    NOWHERE = "nowhere"
    NEW_BLOCKS = "new blocks"
    ANYWHERE = "anywhere"


class Truncation(Enum):
    """The pieces of a truncation that makes a file shorter.

    They are the zeros over the rest of its last block, the size, and the freeing of the
    blocks behind it.
    """

    WHOLE = "whole"
    """One piece."""
    ZEROS_FIRST = "zeros first"
    """The zeros, then size and freeing as one piece, for which data in freed blocks waits."""
    ZEROS_APART = "zeros apart"
    """The same without an order between zeros and size."""
    FREED_LATER = "freed later"
    """The size; then the freeing and the zeros, which need it; nothing else waits."""
    APART = "apart"
    """The zeros; the size, then the freeing; nothing waits."""


class MetadataInOrder(Enum):
    """The times at which directory entries, attributes and the sizes of truncations keep order."""

    ALWAYS = "always"
    UNTIL_FSYNC = "until fsync"
    """While there is no log tree: it begins with the first barrier on an inode since the boot or
    the last ``sync``, which commits everything in order, and ends with the next ``sync``."""
    NEVER = "never"


class RenameWaits(Enum):
    """The changes of the file for which a rename over another name waits."""

    DATA = "data"
    """Its data and its sizes."""
    SIZE = "size"
    """Its sizes: ext4 with ``auto_da_alloc`` allocates the blocks of the file, and does not wait
    until its data is written."""
    NOTHING = "nothing"


class RenameParts(Enum):
    """The renames that become durable in parts."""

    NONE = "none"
    SOME = "some"
    """Of a file into another directory: link, then unlink. Over a name of a file that keeps
    other names, or that got this one without a barrier on the directory: the loss of that name is
    a piece of its own. After several renames: so is the removal of the durable name."""
    ALL = "all"
    """Every rename of a file: the loss of the new name by the replaced file, link, unlink; none
    needs another. A directory moves in one piece, because it can have only one name. No model here
    has this value (``with_torn_rename``)."""


class Coverage(Enum):
    """The pieces that a barrier covers beside those of its own inode."""

    EVERYTHING = "everything"
    """All earlier metadata, of other files as well; ``fdatasync`` covers the same as ``ORDER``."""
    ORDER = "order"
    """Everything that is kept in order before its own pieces."""
    NEEDS = "needs"
    """The pieces without which its own are meaningless."""


class SyncedNames(Enum):
    """The barriers on a file that make its names durable."""

    FSYNC_AND_FDATASYNC = "both"
    FSYNC = "fsync"
    """``fdatasync`` only makes the name durable that the file was created with, and only
    together with its creation."""
    NEVER = "neither"


@dataclass(frozen=True, slots=True)
class PersistenceModel:
    """One file system's guarantees about a power cut or a kill.

    ``unit_bytes``
        the unit in which an overwrite reaches the platter completely or not at all, in
        bytes; 0 means the whole call.
    ``torn_units``
        even such a unit may survive as a prefix of its bytes.
    ``torn_direct_writes``
        a kill may leave a part of a direct write, up to the end of a page, as of any other.
    ``sequential``
        everything reaches the platter in program order, and a unit together with the size
        that it needs: a survivor set is a prefix.
    ``data_before_size``, ``stale_bytes``
        the content that an append without its data may show.
    ``metadata_in_order``
        when directory entries, attributes and the sizes of truncations keep their order, and the
        size of a later write comes after them; ``posix_fallocate`` has no place in this order.
    ``rename_waits``
        the changes of a file for which its rename over another name waits.
    ``rename_parts``
        the renames that become durable in parts.
    ``truncation``
        the pieces of a truncation.
    ``synced_names``
        the barriers on a file that make its names durable.
    ``coverage``
        the other pieces that a barrier covers.
    """

    name: str
    unit_bytes: int
    torn_units: bool
    torn_direct_writes: bool
    sequential: bool
    data_before_size: DataBeforeSize
    stale_bytes: StaleBytes
    metadata_in_order: MetadataInOrder
    rename_waits: RenameWaits
    rename_parts: RenameParts
    truncation: Truncation
    synced_names: SyncedNames
    coverage: Coverage

    @property
    def has_whole_calls(self) -> bool:
        """Whether every write is lost as a whole or not at all, by ``with_whole_calls``."""
        return self.unit_bytes == _UNBOUNDED

    @property
    def is_reduced(self) -> bool:
        """Whether it leaves out states of large writes that the file system may leave."""
        return self.has_whole_calls or isinstance(self, ReducedModel)

    @property
    def cuts_pages(self) -> bool:
        """Whether the part of a write up to the end of a page is some pieces of the whole write."""
        return 0 < self.unit_bytes <= BLOCK_BYTES and not self.is_reduced

    @property
    def without_log_tree(self) -> PersistenceModel:
        """The model while there is no log tree: a commit in the background writes all names.

        ``UNTIL_FSYNC`` becomes ``ALWAYS``, and renames in ``SOME`` parts become those of ``NONE``.
        """
        if self.metadata_in_order is not MetadataInOrder.UNTIL_FSYNC:
            return self
        some = self.rename_parts is RenameParts.SOME
        parts = RenameParts.NONE if some else self.rename_parts
        return replace(self, metadata_in_order=MetadataInOrder.ALWAYS, rename_parts=parts)

    @property
    def orders_metadata(self) -> bool:
        """Whether it always keeps metadata in order."""
        return self.metadata_in_order is MetadataInOrder.ALWAYS

    def with_whole_calls(self) -> PersistenceModel:
        """Return this model, with a write that is lost as a whole or not at all.

        It allows a part of the states, so it finds less and raises no false alarm.
        """
        if not self.unit_bytes:
            return self
        return replace(self, unit_bytes=_UNBOUNDED, torn_units=False)

    def with_most_sectors(self, most_sectors: int) -> PersistenceModel:
        """Return this model, with fewer pieces where more sectors of 512 bytes are unsynced."""
        if not self.unit_bytes:
            return self
        values = {each.name: getattr(self, each.name) for each in fields(PersistenceModel)}
        return ReducedModel(**values, most_sectors=most_sectors)

    def with_torn_rename(self) -> PersistenceModel:
        """Return this model, with a rename that may stop between its parts [ALICE]."""
        return replace(self, name=f"{self.name}+torn-rename", rename_parts=RenameParts.ALL)


@dataclass(frozen=True, slots=True)
class ReducedModel(PersistenceModel):
    """A model for writes of more units than can be enumerated.

    Up to ``most_sectors`` unsynced sectors of 512 bytes can be lost one by one. A write beyond
    them is lost in halves if it may be a page of a database, and otherwise as a whole.
    So it allows a part of the states of the file system.
    """

    most_sectors: int


SCC: Final = PersistenceModel(
    name="scc",
    unit_bytes=0,
    torn_units=False,
    torn_direct_writes=False,
    sequential=True,
    data_before_size=DataBeforeSize.ALWAYS,
    stale_bytes=StaleBytes.NOWHERE,
    metadata_in_order=MetadataInOrder.ALWAYS,
    rename_waits=RenameWaits.DATA,
    rename_parts=RenameParts.NONE,
    truncation=Truncation.WHOLE,
    synced_names=SyncedNames.FSYNC_AND_FDATASYNC,
    coverage=Coverage.EVERYTHING,
)
EXT4_JOURNAL: Final = replace(
    SCC,
    name="ext4-journal",
    unit_bytes=BLOCK_BYTES,
    torn_direct_writes=True,
    synced_names=SyncedNames.FSYNC,
    coverage=Coverage.ORDER,
)
EXT4: Final = replace(
    EXT4_JOURNAL,
    name="ext4",
    unit_bytes=SECTOR_BYTES,
    torn_direct_writes=False,
    sequential=False,
    data_before_size=DataBeforeSize.NEVER,
    rename_waits=RenameWaits.SIZE,
    truncation=Truncation.ZEROS_FIRST,
)
EXT4_ORDERED: Final = replace(EXT4, name="ext4-ordered", rename_waits=RenameWaits.NOTHING)
EXT4_WRITEBACK: Final = replace(
    EXT4_ORDERED,
    name="ext4-writeback",
    stale_bytes=StaleBytes.NEW_BLOCKS,
    truncation=Truncation.ZEROS_APART,
)
XFS: Final = replace(
    EXT4_ORDERED,
    name="xfs",
    data_before_size=DataBeforeSize.ALWAYS,
    truncation=Truncation.ZEROS_APART,
    synced_names=SyncedNames.FSYNC_AND_FDATASYNC,
)
BTRFS: Final = replace(
    XFS,
    name="btrfs",
    unit_bytes=BLOCK_BYTES,
    torn_direct_writes=True,
    data_before_size=DataBeforeSize.NEVER,
    metadata_in_order=MetadataInOrder.UNTIL_FSYNC,
    rename_parts=RenameParts.SOME,
    truncation=Truncation.FREED_LATER,
    coverage=Coverage.NEEDS,
)
POSIX: Final = replace(
    EXT4_WRITEBACK,
    name="posix",
    torn_units=True,
    torn_direct_writes=True,
    stale_bytes=StaleBytes.ANYWHERE,
    metadata_in_order=MetadataInOrder.NEVER,
    rename_parts=RenameParts.SOME,
    truncation=Truncation.APART,
    synced_names=SyncedNames.NEVER,
    coverage=Coverage.NEEDS,
)

MODELS: Final[dict[str, PersistenceModel]] = {
    model.name: model
    for model in (SCC, EXT4_JOURNAL, EXT4, EXT4_ORDERED, EXT4_WRITEBACK, XFS, BTRFS, POSIX)
}
STRONGER_THAN: Final[tuple[tuple[PersistenceModel, PersistenceModel], ...]] = (
    (SCC, EXT4_JOURNAL),
    (EXT4_JOURNAL, EXT4),
    (EXT4, EXT4_ORDERED),
    (EXT4_ORDERED, EXT4_WRITEBACK),
    (EXT4_WRITEBACK, POSIX),
    (XFS, POSIX),
    (BTRFS, POSIX),
)


def is_stronger(stronger: str, weaker: str) -> bool:
    """Return whether the second model allows every state that the first one allows.

    The order is that of ``STRONGER_THAN``; no model is stronger than itself.
    """
    return any(
        first.name == stronger and (second.name == weaker or is_stronger(second.name, weaker))
        for first, second in STRONGER_THAN
    )


def model_named(name: str) -> PersistenceModel:
    """Return the model of this name; the ``HarnessError`` for any other name lists them."""
    try:
        return MODELS[name]
    except KeyError:
        known = ", ".join(MODELS)
        raise HarnessError(f"unknown persistence model {name!r}; known are {known}") from None
