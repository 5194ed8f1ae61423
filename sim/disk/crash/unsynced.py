"""The unsynced part of a journal, and the platter below it, under one persistence model."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sim.disk.cache.inode_table import Inodes, InodeTable
from sim.disk.cache.key import key_of
from sim.disk.cache.operation import (
    DropPages,
    FailedSync,
    Operation,
    Sync,
    SyncFailure,
    Write,
)
from sim.disk.crash.barrier import covered, overtakes
from sim.disk.crash.beyond_end import Ends, drop_beyond_end, ends_of, stored_until
from sim.disk.crash.earlier import Earlier
from sim.disk.crash.failed_barrier import first_freed, left_by, lost_by, zeros_lost_by
from sim.disk.crash.image import Image
from sim.disk.crash.log_order import LogOrder
from sim.disk.crash.lost_pages import LostPages
from sim.disk.crash.micro_operation import (
    ForgetName,
    MicroOperation,
    MoveName,
    NameChange,
    UnlinkName,
    taken_name,
)
from sim.disk.crash.notes import (
    Carried,
    LoggedName,
    LogTree,
    LostData,
    Note,
    Notes,
    Surplus,
    UnwrittenBlock,
)
from sim.disk.crash.old_tails import OldTails
from sim.disk.crash.ordering import Ordering
from sim.disk.crash.persistence import Coverage, PersistenceModel, ReducedModel
from sim.disk.crash.pieces import halves, is_content, parts_of, pieces, uncut
from sim.disk.crash.sides import sides, with_losses_of
from sim.disk.crash.survivor_set import SurvivorSet, check_legal
from sim.disk.crash.unsynced_sectors import UnsyncedSectors


class Unsynced:
    """Unsynced micro-operations in program order, over a platter.

    It reads a journal operation by operation (``advance``): each operation adds its pieces,
    each sync moves the pieces that it covers to the platter, which is ``table``. ``platter`` and
    ``unsynced`` start it; an image has them from the lifetime before. ``allows_more`` is whether
    the last operation allows states that were impossible before it: a failed barrier drops data
    that later data depended on, and a barrier may cover a piece without one that it had to follow,
    split a rename through a passing name, or begin a log tree. ``log_tree`` has a mark while there
    is one. ``has_log`` is whether the order of pieces depends on earlier barriers (``LogOrder``).
    ``dropped`` has the content of the blocks, by number, that the last operation has dropped from
    the page cache.
    """

    def __init__(
        self,
        model: PersistenceModel,
        platter: Inodes,
        unsynced: Iterable[Carried] = (),
        sectors: UnsyncedSectors | None = None,
    ) -> None:
        self.model = model
        self.allows_more = False
        self.table = InodeTable(platter)
        self.log_tree: tuple[LogTree, ...] = ()
        self._without_log_tree = model.without_log_tree
        self._ordering = Ordering(self._without_log_tree)
        # Operations that are not cut yet, each with its number and whether it may be cut into
        # sectors. A barrier on the file covers most content, and then its units are never needed.
        self._uncut: list[tuple[Operation, int, bool]] = []
        most_sectors = model.most_sectors if isinstance(model, ReducedModel) else 0
        self._sectors = sectors or UnsyncedSectors(most_sectors)
        self._whole_calls = model.with_whole_calls()
        self._notes = Notes()
        self._log_order = LogOrder()
        self._lost = LostPages()
        self.dropped: Mapping[int, bytes] = {}
        self._earlier = Earlier(
            self.table, self._ordering, self._notes, self._log_order, self._lost
        )
        self.has_log = model.coverage is Coverage.NEEDS
        # The files whose platter may hold bytes beyond their size.
        self._surplus: set[int] = set()
        self._read_carried(unsynced)

    def _read_carried(self, carried: Iterable[Carried]) -> None:
        """Take over the pieces and notes of the lifetime before."""
        for each in carried:
            if isinstance(each, Surplus):
                self._surplus.add(each.number)
            elif isinstance(each, LogTree):
                self._set_log_tree(True)
            elif isinstance(each, LogOrder):
                self._set_log_order(each)
            elif isinstance(each, LostData | UnwrittenBlock):
                self._lost.add(each)
            elif isinstance(each, Note):
                self._notes.add(each)
            else:
                self._add(each)

    @property
    def ordering(self) -> Ordering:
        """The unsynced pieces and their predecessors."""
        self._cut()
        return self._ordering

    @property
    def micros(self) -> list[MicroOperation]:
        return self.ordering.micros

    @property
    def lost(self) -> LostPages:
        """The pages that failed barriers have lost, and that were not written again since."""
        if self._lost:
            self._cut()
        return self._lost

    @property
    def platter(self) -> Inodes:
        """Everything durable, as a map that never changes."""
        return self.table.rebase()

    @property
    def key(self) -> int:
        """The key of the platter (``key.py``); the first use counts it in full."""
        platter = self.table.rebase()
        if self.table.key is None:
            self.table.key = key_of(platter.values())
        return self.table.key

    # -- reading the journal -----------------------------------------------------------

    def advance(self, operation: Operation, number: int) -> None:
        """Read operation ``number`` of the journal."""
        self.allows_more = False
        is_small = self._sectors.advance(operation)
        if isinstance(operation, Sync | FailedSync):
            self._set_log_tree(operation.inode != 0 or isinstance(operation, FailedSync))
        match operation:
            case Sync() if self._log_order.covers_nothing(operation):
                self._cut()
                self._note_order(operation, number)
            case Sync():
                self._sync(operation, number)
            case FailedSync():
                self._fail_sync(operation)
                self._note_order(operation, number)
            case DropPages():
                self._cut()
                self.dropped = self._dropped_by(operation)
            case Write() if not is_small:
                self._uncut += [(half, number, False) for half in halves(operation)]
                self._note_order(operation, number)
            case _:
                self._uncut.append((operation, number, is_small))
                self._note_order(operation, number)

    def _note_order(self, operation: Operation, number: int) -> None:
        """Note an operation in the order of the log; a barrier has cut those before it by now."""
        if self.has_log:
            order, allows_more = self._log_order.advanced(operation, number)
            self._set_log_order(order)
            if allows_more and self.log_tree:
                self.allows_more = True
                self._keep(self.micros)

    def _set_log_order(self, order: LogOrder) -> None:
        self._log_order = self._earlier.log_order = order

    def _cut(self, sync: Sync | None = None) -> None:
        """Cut the waiting operations, of which ``sync`` is about to cover some.

        Content that it covers as a whole is cut into whole calls.
        """
        waiting, self._uncut = self._uncut, []
        for operation, number, is_small in waiting:
            is_covered = sync is not None and is_content(operation, sync)
            model = self.model if is_small and not is_covered else self._whole_calls
            parts: Iterable[Operation] = (operation,)
            if self._lost:
                parts = self._lost.parts_of(operation, in_units=bool(model.unit_bytes))
            for part in parts:
                for micro in pieces(part, number, model, self._earlier):
                    self._add(micro)

    def _add(self, micro: MicroOperation) -> None:
        is_directory = isinstance(micro, NameChange) and self._earlier.is_directory(micro.number)
        in_order = bool(self.log_tree) and self._log_order.waits_for_commit(micro)
        after = self._log_order.rename_before(micro) if self.log_tree else None
        self._ordering.add(micro, is_directory=is_directory, in_order=in_order, after=after)

    # -- barriers ----------------------------------------------------------------------

    def _sync(self, sync: Sync, number: int) -> None:
        if not (self._ordering.micros or self._lost):
            # Most barriers cover nothing but the last writes to their file, and these as a whole.
            waiting = self._uncut
            content = [
                uncut(each, at, self.model) for each, at, _ in waiting if is_content(each, sync)
            ]
            if len(content) == len(waiting):
                waiting.clear()
                self._apply(content, [], sync)
                self._note_order(sync, number)
                return
        self._cut(sync)
        self._lost.end_changes(sync)
        self._note_order(sync, number)
        with_losses = with_losses_of(self._ordering, sync.inode)
        if len(with_losses) > len(self._ordering.micros):
            self._keep(with_losses)
            self.allows_more = True
        durable = covered(self._ordering, sync, self._earlier.is_directory)
        if not durable:
            self._apply([], [], sync, self._ordering.micros)
            return
        self.allows_more |= overtakes(self._ordering, durable)
        is_directory = self._earlier.is_directory
        applied, left, notes, allows_more = sides(self._ordering, durable, sync, is_directory)
        self.allows_more |= allows_more
        self._apply(applied, notes, sync, left)
        self._keep(list(self._returning(left, notes, sync)))

    def _apply(
        self,
        applied: Sequence[MicroOperation],
        notes: list[Note],
        sync: Sync,
        left: Sequence[MicroOperation] = (),
    ) -> None:
        """Put the pieces that a barrier covers on the platter, and renew the notes.

        ``notes`` are new ones, ``left`` the pieces that it does not cover.
        """
        tails = OldTails(applied, self.table)
        keeps_tails = sync.inode and self.model.coverage is Coverage.NEEDS
        for micro in applied:
            if keeps_tails:
                tails.add(micro)
            self._make_durable(micro)
        if len(self._notes):
            self._notes.drop_ended(sync, applied, left, self.table)
        for note in (*notes, *tails.notes()):
            self._notes.add(note)

    def _make_durable(self, micro: MicroOperation) -> None:
        """Put a piece on the platter; above an undecided disk it is kept instead."""
        micro.apply(self.table)
        end = stored_until(micro)
        if end and self.table.own(micro.number).size < end:
            self._surplus.add(micro.number)

    def _fail_sync(self, failed: FailedSync) -> None:
        """Forget the data that the kernel marked clean without having written it."""
        if failed.policy is SyncFailure.LYING:
            return
        micros, platter = self.micros, self.table.get(failed.inode)
        freed, zeros = first_freed(failed, micros), zeros_lost_by(failed, micros, platter)
        for write in lost_by(failed, micros, zeros):
            self._lost.lose(write, failed.policy, platter, freed)
        self._lost.end_changes(failed)
        self._keep(list(left_by(failed, micros, zeros)))
        self.allows_more = True

    def _dropped_by(self, drop: DropPages) -> Mapping[int, bytes]:
        """Drop pages that failed barriers have lost; return what is on the platter in them."""
        number, end = drop.inode, drop.end or sys.maxsize
        blocks = self._lost.drop(number, drop.start, end, self.micros)
        return self._written_back(number, blocks) if blocks else {}

    def _written_back(self, number: int, blocks: Iterable[int]) -> Mapping[int, bytes]:
        """Return blocks of a file as the platter has them once everything unsynced is on it."""
        inode = self._with(SurvivorSet()).get(number)
        return {block: inode.blocks.get(block, b"") if inode else b"" for block in blocks}

    def _returning(
        self, left: Iterable[MicroOperation], notes: Iterable[Note], sync: Sync
    ) -> Iterator[MicroOperation]:
        """Yield the pieces that a barrier leaves; some give a name back to its former holder.

        ``notes`` has the names that only barriers on files have covered, none on their directory.
        If a piece that is left takes such a name from another file than that of the barrier, the
        file that had the name before gets it back. A barrier on a directory gives no name back.
        """
        is_of_file = not self._earlier.is_directory(sync.inode)
        logged = {note[1:] for note in notes if is_of_file and isinstance(note, LoggedName)}
        for micro in left:
            if isinstance(micro, UnlinkName | MoveName) and not micro.returns_to:
                name = taken_name(micro)
                is_logged = micro.number != sync.inode and (micro.number, *name) in logged
                if is_logged and (former := self._earlier.former_holder(micro.number, *name)):
                    yield micro._replace(returns_to=former)
                    yield UnlinkName(micro.operation, former, *name)
                    continue
            yield micro

    def _set_log_tree(self, exists: bool) -> None:
        """Note whether there is a log tree; cut the unsynced pieces anew if one begins.

        It ends with a ``sync``, which covers them all.
        """
        if exists != bool(self.log_tree) and self._without_log_tree is not self.model:
            self.log_tree = (LogTree(),) if exists else ()
            self.allows_more |= exists
            micros = self._ordering.micros
            cut = (part for each in micros for part in parts_of(each, self._earlier))
            self._keep(cut if exists else micros)

    def _keep(self, kept: Iterable[MicroOperation]) -> None:
        """Make these the unsynced pieces, and order them anew, one after the other."""
        self._ordering = Ordering(self.model if self.log_tree else self._without_log_tree)
        self._earlier.ordering = self._ordering
        for micro in kept:
            if not (isinstance(micro, ForgetName) and self._is_gone(micro)):
                self._add(micro)

    def _is_gone(self, forget: ForgetName) -> bool:
        """Return whether the durable name of the file is gone from the platter."""
        holder = self.table.get(forget.directory)
        return holder is None or holder.entries.get(forget.name) != forget.number

    def copy(self) -> Unsynced:
        """Return a copy, which advances by itself."""
        order, surpluses = self._log_order, self._surpluses()
        carried = (*self.log_tree, order, *self.micros, *self._notes, *surpluses, *self._lost)
        return Unsynced(self.model, self.platter, carried, self._sectors.copy())

    def carried_over(self, operations: int) -> tuple[Carried, ...]:
        """Return the pieces and notes, with operations numbered as the next lifetime does it.

        This one has had ``operations``, so its last one gets the number 0.
        """
        assert all(each.operation <= operations for each in (*self.micros, *self._notes))
        numbered = [
            each._replace(operation=each.operation - operations)
            for each in (*self.micros, *self._notes)
        ]
        order = self._log_order
        orders = () if order == LogOrder() else (order.continued(operations),)
        return (*self.log_tree, *orders, *numbered, *self._surpluses(), *self._lost)

    def _surpluses(self) -> list[Surplus]:
        return [Surplus(number) for number in sorted(self._ends_of_platter())]

    # -- crash images ------------------------------------------------------------------

    def crash(self, survivors: SurvivorSet, next_inode: int) -> Image:
        """Return the disk after a power cut with these survivors.

        Raises ``HarnessError`` if the model does not allow them.
        """
        check_legal(self.ordering, survivors)
        return Image.of_platter(self._survived(survivors), next_inode)

    def _survived(self, survivors: SurvivorSet) -> Inodes:
        table = self._with(survivors)
        drop_beyond_end(table, self.ends)
        return table.rebase()

    def _with(self, survivors: SurvivorSet) -> InodeTable:
        """Return the platter with these survivors, and with what is beyond the ends of files."""
        table = InodeTable(self.platter)
        for micro in survivors.applied(self.micros):
            micro.apply(table)
        return table

    @property
    def ends(self) -> Ends:
        """The files that may have bytes beyond their end after a power cut."""
        return ends_of(self.micros, self._ends_of_platter())

    def _ends_of_platter(self) -> Ends:
        """Return the files that have bytes beyond their end on the platter."""
        found: dict[int, int] = {}
        for number in self._surplus:
            inode = self.table.get(number)
            if inode is not None and inode.stored_end > inode.size:
                found[number] = inode.stored_end
        self._surplus = set(found)
        return found
