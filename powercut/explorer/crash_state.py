"""Crash states: the disk at one crash of a recorded workload, built again from its journal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Sequence
from contextlib import suppress

from faults.crash_counter import CrashCounter, crash_image, page_prefix
from faults.crash_point import CrashKind, CrashPoint, Phase
from powercut.explorer.page_cache import PageCache
from sim.disk.cache.operation import DropPages, Write
from sim.disk.crash.image import Image
from sim.disk.crash.journal import Journal
from sim.disk.crash.micro_operation import LinkName, MicroOperation, MoveName, WriteBlock
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.survivor_set import check_legal
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk
from sim.errors import HarnessError, PowerOff, SimulatedCrash


class ChangedRecovery(HarnessError):
    """A recovery cannot be crashed as it was before.

    Cause: the check has changed since, or it is not deterministic.
    """


def done_at(point: CrashPoint) -> int:
    """Return the number of operations that are complete at a crash point of an exploration."""
    return point.operation - (point.phase is not Phase.AFTER)


def at_start(journal: Journal, model: PersistenceModel) -> Unsynced:
    """Return the unsynced pieces before the first operation of a journal, to be advanced."""
    return Unsynced(model, journal.image.platter, journal.image.unsynced)


def unsynced_along(
    journal: Journal, model: PersistenceModel, numbers: Collection[int]
) -> Iterator[tuple[int, list[MicroOperation]]]:
    """Yield the unsynced pieces after each of these operations of a journal, in order."""
    for number, unsynced in advanced(at_start(journal, model), 0, journal, numbers):
        yield number, list(unsynced.micros)


def advanced(
    unsynced: Unsynced, done: int, journal: Journal, numbers: Collection[int]
) -> Iterator[tuple[int, Unsynced]]:
    """Yield ``unsynced``, which has read ``done`` operations of a journal, after each of these.

    It is advanced from one to the next. Those before ``done`` are left out.
    """
    for number in range(done, max(numbers, default=-1) + 1):
        if number > done:
            unsynced.advance(journal[number - 1], number)
        if number in numbers:
            yield number, unsynced


def read_journal(
    journal: Journal, model: PersistenceModel, number: int
) -> tuple[Unsynced, PageCache]:
    """Return the unsynced pieces and the page cache after operation ``number`` of a journal."""
    unsynced = at_start(journal, model)
    cache = PageCache(journal.image.cached)
    for each, operation in enumerate(journal[:number], 1):
        unsynced.advance(operation, each)
        cache.advance(operation, unsynced)
    return unsynced, cache


def cached_along(
    journal: Journal, model: PersistenceModel, numbers: Collection[int]
) -> Iterator[tuple[int, PageCache]]:
    """Yield the page cache after each of these operations of a journal, in order.

    Only dropped pages make it depend on the unsynced pieces, which are read up to there.
    """
    unsynced, read = at_start(journal, model), 0
    cache = PageCache(journal.image.cached)
    for number in range(max(numbers, default=-1) + 1):
        if number:
            operation = journal[number - 1]
            if isinstance(operation, DropPages):
                ((read, unsynced),) = advanced(unsynced, read, journal, {number})
            cache.advance(operation, unsynced)
        if number in numbers:
            yield number, cache


def disks_along(
    journal: Journal, model: PersistenceModel, numbers: Collection[int]
) -> Iterator[tuple[int, Image]]:
    """Yield the disk after each of these operations of a journal, with all of them durable."""
    for number, cache in cached_along(journal, model, numbers):
        yield number, Image.of_platter(cache.inodes, journal.next_inode)


def killed_along(
    journal: Journal, model: PersistenceModel, numbers: Collection[int]
) -> dict[int, int]:
    """Return the key of the disk that a kill leaves after each of these operations."""
    return {number: cache.key for number, cache in cached_along(journal, model, numbers)}


def alone_along(
    journal: Journal, model: PersistenceModel, numbers: Collection[int]
) -> Iterator[tuple[int, Unsynced, Unsynced]]:
    """Yield the pieces of each of these operations, as if all before it were durable.

    Each comes with its number, and is followed by the unsynced pieces after the operation.
    """
    unsynced = at_start(journal, model)
    cache = PageCache(journal.image.cached)
    for number, operation in enumerate(journal[: max(numbers, default=0)], 1):
        alone = Unsynced(model, cache.inodes, unsynced.log_tree) if number in numbers else None
        unsynced.advance(operation, number)
        if alone is not None:
            alone.advance(operation, number)
            yield number, alone, unsynced
        cache.advance(operation, unsynced)


def lost_pieces(micros: Sequence[MicroOperation], point: CrashPoint) -> list[MicroOperation]:
    """Return the pieces that a power cut lost or tore, out of the unsynced ones.

    After a kill these are all: a power cut during the recovery may lose any of them.
    """
    if point.kind is CrashKind.KILL:
        return list(micros)
    survivors = point.survivors
    return [micros[index] for index in (*survivors.lost, *[index for index, _ in survivors.torn])]


def comparable(piece: MicroOperation, numbers: Sequence[int] = ()) -> MicroOperation:
    """Return a piece in a form that is equal in two journals that differ only in barriers.

    ``numbers`` has the number of each operation in the other journal. Whether the block of a
    write was allocated is left out, because a barrier before the write may have allocated it.
    """
    if isinstance(piece, WriteBlock):
        piece = piece._replace(fresh=False)
    if numbers and piece.operation > 0:
        piece = piece._replace(operation=numbers[piece.operation])
    return piece


def is_left(
    piece: MicroOperation, left: Container[MicroOperation], numbers: Sequence[int] = ()
) -> bool:
    """Return whether a piece, in its comparable form, is among those of another journal.

    A barrier may begin the log tree of btrfs. Then a rename into another directory is in parts, and
    it is left as a whole if its new name is, which the removal of the old one needs.
    """
    same = comparable(piece, numbers)
    if same in left or not isinstance(same, MoveName):
        return same in left
    number, inode, _, _, directory, name, replaced, *_ = same
    return LinkName(number, inode, directory, name, replaced) in left


def image_at(journal: Journal, model: PersistenceModel, point: CrashPoint) -> Image:
    """Return the disk that the next boot finds after a crash of this journal."""
    if point.kind is CrashKind.POWER_CUT:
        unsynced, _ = read_journal(journal, model, done_at(point))
        return unsynced.crash(point.survivors, journal.next_inode)
    killed = until_kill(journal, point)
    unsynced, cache = read_journal(killed, model, len(killed))
    carried = unsynced.carried_over(len(killed))
    return Image(unsynced.platter, carried, cache.inodes, journal.next_inode)


def is_possible(journal: Journal, model: PersistenceModel, point: CrashPoint) -> bool:
    """Return whether a journal, which may have changed since, has the operation of a crash.

    A power cut then loses pieces that are unsynced, and a kill during a write meets one.
    """
    if point.operation > len(journal):
        return False
    if point.kind is CrashKind.KILL:
        return point.phase is not Phase.DURING or isinstance(journal[point.operation - 1], Write)
    unsynced, _ = read_journal(journal, model, done_at(point))
    try:
        check_legal(unsynced.ordering, point.survivors)
    except HarnessError:
        return False
    return True


def until_kill(journal: Journal, point: CrashPoint) -> Journal:
    """Return the operations that a kill has left, the last of which may be a part of a write."""
    operations = journal[: done_at(point)]
    if point.phase is Phase.DURING:
        write = journal[point.operation - 1]
        assert isinstance(write, Write), write
        operations.append(write._replace(data=write.data[: page_prefix(write, point.kept)]))
    return Journal(journal.image, operations)


def image_after(
    journal: Journal,
    model: PersistenceModel,
    crashes: Sequence[CrashPoint],
    recover: Callable[[Disk], object],
) -> Image:
    """Return the disk after ``crashes``: the first of the workload, the others of recoveries.

    ``recover`` is run on the disk after each crash but the last, and is interrupted. Raises
    ``ChangedRecovery`` if a power cut of it cannot lose the same pieces.
    """
    first, *others = crashes
    image = image_at(journal, model, first)
    for point in others:
        disk = Disk(image, model)
        disk.interposer = CrashCounter(disk, point.operation, point.phase, point.kept)
        with suppress(SimulatedCrash, PowerOff):
            recover(disk)
        try:
            image = crash_image(disk, point)
        except HarnessError as impossible:
            raise ChangedRecovery(
                f"the crash {point} of a recovery is not possible: the check has changed, or it "
                "is not deterministic"
            ) from impossible
    return image
