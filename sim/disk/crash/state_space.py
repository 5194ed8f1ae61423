"""State spaces: all disks that one power cut may leave, each with its survivor set and key.

The walk through a space decides one piece after the other. States that agree on the first
pieces share the work for them, so a state costs about two pieces instead of all. Pieces
that no program could observe are not decided: the content of a file without a name, data
beyond the end of a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, reduce
from itertools import accumulate, combinations
from operator import or_
from typing import Final, NamedTuple

from sim.disk.cache.inode_table import Inodes, InodeTable
from sim.disk.cache.key import unreachable_key
from sim.disk.crash.beyond_end import drop_beyond_end
from sim.disk.crash.micro_operation import (
    Arrival,
    CreateInode,
    FreeBlocks,
    GrowSize,
    MicroOperation,
    NameChange,
    SetSize,
    WriteBlock,
    ZeroTail,
    stale_form,
)
from sim.disk.crash.persistence import DataBeforeSize, RenameWaits, StaleBytes
from sim.disk.crash.survivor_set import (
    SurvivorSet,
    can_be_stale,
    can_tear,
    check_legal,
    closed,
    is_tearable,
)
from sim.disk.crash.unsynced import Unsynced
from sim.disk.crash.visibility import is_hidden, is_visible, repeats, tears

_Pairs = tuple[tuple[int, int], ...]


class _Torn(NamedTuple):
    """The torn forms of write number ``place``, not yet listed."""

    place: int
    micro: WriteBlock


class _TornSizes(NamedTuple):
    """The torn forms of write number ``place`` that are still to be built, by their sizes."""

    place: int
    micro: WriteBlock
    sizes: list[int]


# A state under construction: position in the walk, survivors, inodes, key, torn, stale; whether a
# new piece makes a difference in it; last the piece that is still to be applied, because most
# branches of a large walk are not taken.
_Next = MicroOperation | _Torn | _TornSizes | None
_Branch = tuple[int, int, Inodes, int, _Pairs, tuple[int, ...], bool, _Next]

_PIECES_PER_STEP: Final = 64
"""The pieces that are inspected in the time in which one is decided."""

_STEPS_OF_PIECE: Final = 2
"""The steps that take as long as applying one piece."""

MOST_SINGLE_PIECES: Final = 48
"""The number of pieces above which the chosen survivor sets lose whole calls."""


class State(NamedTuple):
    """A platter after a power cut, its key, and the survivor set that leads to it."""

    inodes: Inodes
    key: int
    survivors: SurvivorSet


class _Walk(NamedTuple):
    """The plan of a walk.

    ``sequence`` is the order in which the pieces are decided. From position ``names`` on all
    names are decided, from ``sizes`` on all sizes. The pieces from index ``since`` on are new,
    and ``last_new`` is the last position of one. ``stale`` has for each piece the stale bytes
    that its place may show.
    """

    sequence: list[int]
    names: int
    sizes: int
    since: int
    last_new: int
    stale: list[WriteBlock | None]


class StateSpace:
    """Every state that a power cut at this moment may leave, under the model of ``unsynced``.

    It is valid until ``unsynced`` advances. ``complete`` is whether the last walk through
    ``all`` reached its end. ``steps`` estimates the work, in pieces that were decided. ``before``
    is a space of an earlier moment, whose work ``state_of`` need not repeat if all its pieces are
    still unsynced.
    """

    def __init__(self, unsynced: Unsynced, before: StateSpace | None = None) -> None:
        self.ordering = unsynced.ordering
        self.micros: Sequence[MicroOperation] = unsynced.ordering.micros
        self.base = unsynced.platter
        self.base_key = unsynced.key
        self.complete = True
        self.steps = 0
        self._directories = tuple(self._detachable())
        self._chosen: dict[SurvivorSet, State] = {}
        # The platter with the first pieces on it, and its key, for each number of pieces so far.
        self.prefixes: list[tuple[Inodes, int]] = [(self.base, self.base_key)]
        if before and before.ordering is self.ordering and before.base is self.base:
            self.prefixes = before.prefixes
        self._ends = unsynced.ends

    def _detachable(self) -> Iterator[int]:
        """Yield the directories to which some survivor set leaves no path."""
        for micro in self.micros:
            if isinstance(micro, CreateInode):
                if micro.is_directory:
                    yield micro.number
            elif isinstance(micro, NameChange):
                replaced = micro.replaced if isinstance(micro, Arrival) else 0
                for number in (micro.number, replaced):
                    inode = self.base.get(number)
                    if inode is not None and inode.is_directory:
                        yield number

    # -- every state -------------------------------------------------------------------

    def all(self, since: int = 0, branches: int | None = None) -> Iterator[State]:
        """Yield every state, the one without losses first; equal states may come twice.

        With ``since``, yield only states in which a piece from that index on makes a
        difference: without these pieces the others were there already. With ``branches``,
        stop after that many steps; ``complete`` is False then.
        """
        model = self.ordering.model
        if model.sequential and not model.torn_units and model.stale_bytes is StaleBytes.NOWHERE:
            yield from self._prefixes_from(since)
            return
        walk, count = self._walk(since), len(self.micros)
        left = -1 if branches is None else branches
        self.complete = False
        stack: list[_Branch] = [(0, 0, self.base, self.base_key, (), (), since == 0, None)]
        while stack and left:
            left -= 1
            self.steps += 1
            position, survived, inodes, key, torn, stale, is_new, piece = branch = stack.pop()
            if isinstance(piece, _Torn):
                sizes = tears(piece.micro, inodes)
                if sizes:
                    pieces = _TornSizes(piece.place, piece.micro, sizes)
                    stack.append((position, survived, inodes, key, torn, stale, is_new, pieces))
                continue
            if isinstance(piece, _TornSizes):
                # The longest form comes first; most of the others are never taken.
                place, micro, sizes = piece
                size = sizes.pop()
                if sizes:
                    stack.append(branch)
                torn, piece = (*torn, (place, size)), micro._replace(data=micro.data[:size])
            if piece is not None:
                inodes, key = _applied(piece, inodes, key)
            if not (is_new or self._may_become_new(walk, position, inodes)):
                continue
            if position == count:
                for index, _ in torn:
                    survived |= 1 << index
                survivors = SurvivorSet.of_mask(survived, count, torn, stale)
                yield self._state(survivors, InodeTable(inodes, key))
            else:
                branch = (position, survived, inodes, key, torn, stale, is_new, None)
                stack.extend(self._ways(walk, branch))
        self.complete = not stack

    def _prefixes_from(self, since: int) -> Iterator[State]:
        """Yield the states of a model that only keeps everything in order, the longest first."""
        self.complete = False
        count = len(self.micros)
        for length in range(count, since or -1, -1):
            survivors = SurvivorSet.of_mask((1 << length) - 1, count)
            yield self._state(survivors, InodeTable(*self._prefix(length)))
        self.complete = True

    def _may_become_new(self, walk: _Walk, position: int, inodes: Inodes) -> bool:
        """Return whether a new piece is still to be decided that a program could observe."""
        if position > walk.last_new:
            return False
        if position != walk.sizes or walk.sizes == len(self.micros):
            return True
        new = (micro for micro in self.micros[walk.since :] if isinstance(micro, WriteBlock))
        return any(is_visible(micro, inodes.get(micro.number)) for micro in new)

    def _ways(self, walk: _Walk, branch: _Branch) -> list[_Branch]:
        """Return the branches in which the next piece is decided, its survival last.

        A piece that no program could observe has one branch: it survives if the model allows
        that, because others may need it.
        """
        position, survived, inodes, key, torn, stale, is_new, _ = branch
        index = walk.sequence[position]
        micro = self.micros[index]
        inode = inodes.get(micro.number)
        position += 1
        lost = (position, survived, inodes, key, torn, stale, is_new, None)
        allowed = not self.ordering.order[index] & ~survived
        kept = survived | allowed << index
        unseen = (position, kept, inodes, key, torn, stale, is_new, None)
        is_nameless = position > walk.names and (inode is None or not inode.links)
        if is_nameless or (position > walk.sizes and is_hidden(micro, inode)):
            return [unseen]
        changes_nothing = repeats(micro, inodes)
        ways: list[_Branch] = [] if changes_nothing and allowed else [lost]
        makes_new = is_new or index >= walk.since
        shows, freed = walk.stale[index], self.ordering.truncation_before[index]
        if shows is not None and inode is not None and (freed is None or survived >> freed & 1):
            ways.append((position, survived, inodes, key, torn, (*stale, index), makes_new, shows))
        if allowed and changes_nothing:
            ways.append(unseen)
        elif allowed:
            if is_tearable(micro, self.ordering.model):
                forms = _Torn(index, micro)
                ways.append((position, survived, inodes, key, torn, stale, makes_new, forms))
            ways.append((position, kept, inodes, key, torn, stale, makes_new, micro))
        return ways

    def _walk(self, since: int) -> _Walk:
        sequence, names, sizes = self._sequence()
        last_new = max((p for p, index in enumerate(sequence) if index >= since), default=-1)
        stale = [self._stale_form(index) for index in range(len(sequence))]
        return _Walk(sequence, names, sizes, since, last_new, stale)

    def _sequence(self) -> tuple[list[int], int, int]:
        """Return the order of the walk, and the positions where names and sizes are decided.

        If the model allows it, names come first, then sizes, then data: then the data of a
        file without a name, and data beyond the end of a file, need no decision. Names, sizes
        and data do not overwrite one another, so the order changes no state.
        """
        everything = list(range(len(self.micros)))
        count = len(everything)
        model = self.ordering.model
        waits = model.sequential or model.rename_waits is not RenameWaits.NOTHING
        truncates = any(isinstance(micro, ZeroTail | FreeBlocks | SetSize) for micro in self.micros)
        if waits or truncates:
            return everything, count, count
        names = [i for i in everything if not isinstance(self.micros[i], WriteBlock | GrowSize)]
        if model.data_before_size is not DataBeforeSize.NEVER:
            contents = [i for i in everything if isinstance(self.micros[i], WriteBlock | GrowSize)]
            return names + contents, len(names), count
        sizes = [i for i in everything if isinstance(self.micros[i], GrowSize)]
        data = [i for i in everything if isinstance(self.micros[i], WriteBlock)]
        return names + sizes + data, len(names), len(names) + len(sizes)

    def _stale_form(self, index: int) -> WriteBlock | None:
        micro = self.micros[index]
        others = ~(1 << index)
        if isinstance(micro, WriteBlock) and can_be_stale(self.ordering, others, index):
            return stale_form(micro)
        return None

    def _state(self, survivors: SurvivorSet, table: InodeTable) -> State:
        self.steps += (len(self.micros) + len(self._ends)) // _PIECES_PER_STEP
        drop_beyond_end(table, self._ends)
        inodes, key = _rebased(table)
        if self._directories:
            key -= unreachable_key(inodes, self._directories)
        return State(inodes, key, survivors)

    # -- chosen states -----------------------------------------------------------------

    def state_of(self, survivors: SurvivorSet) -> State:
        """Return the state of one survivor set; ``HarnessError`` if the model forbids it."""
        state = self._chosen.get(survivors)
        if state is None:
            check_legal(self.ordering, survivors)
            begin = survivors.first_loss
            self.steps += _STEPS_OF_PIECE * (len(self.micros) - begin)
            table = InodeTable(*self._prefix(begin))
            for micro in survivors.applied(self.micros, begin):
                micro.apply(table)
            state = self._chosen[survivors] = self._state(survivors, table)
        return state

    def _prefix(self, length: int) -> tuple[Inodes, int]:
        """Return the platter with the first ``length`` pieces on it, and its key."""
        prefixes = self.prefixes
        self.steps += _STEPS_OF_PIECE * max(0, length - len(prefixes) + 1)
        for micro in self.micros[len(prefixes) - 1 : length]:
            prefixes.append(_applied(micro, *prefixes[-1]))
        return prefixes[length]

    def representative(self) -> Iterator[SurvivorSet]:
        """Yield the survivor sets that find most bugs, for a space too large for ``all``.

        These are every prefix; every loss of one part, of two, and of all but one; every
        lost write with stale bytes; and, under a model that tears, each write torn in four
        places (``_representative_tears``). Some sets come twice.
        """
        parts = self.parts
        whole = (1 << len(self.micros)) - 1
        prefixes = [0, *accumulate(parts, or_)]
        for prefix in reversed(prefixes):
            yield self.largest_within(prefix)
        for part in parts:
            yield self.largest_within(whole & ~part)
            yield self.largest_within(self._with_predecessors(part))
            yield from self._torn_or_stale(part.bit_length() - 1)
        for first, second in combinations(parts, 2):
            yield self.largest_within(whole & ~first & ~second)

    @cached_property
    def parts(self) -> Sequence[int]:
        """The sets of pieces that chosen survivor sets lose together.

        Each piece is one of them. Of many pieces, all that belong to one call are: to lose a
        sector of a large write shows little that the loss of the write does not.
        """
        if len(self.micros) <= MOST_SINGLE_PIECES:
            return [1 << index for index in range(len(self.micros))]
        return self.calls

    @cached_property
    def calls(self) -> Sequence[int]:
        """The sets of pieces that belong to one call."""
        calls: dict[int, int] = {}
        for index, micro in enumerate(self.micros):
            calls[micro.operation] = calls.get(micro.operation, 0) | 1 << index
        return list(calls.values())

    def _with_predecessors(self, part: int) -> int:
        """Return ``part`` and all parts with a piece that must survive before one of its own."""
        orders = enumerate(self.ordering.order)
        needed = reduce(or_, (order for index, order in orders if part >> index & 1), part)
        return reduce(or_, (each for each in self.parts if each & needed))

    def sampled(self, masks: Iterator[int]) -> Iterator[SurvivorSet]:
        """Yield for each mask of ``parts`` the largest legal survivor set within it."""
        for mask in masks:
            chosen = (part for number, part in enumerate(self.parts) if mask >> number & 1)
            yield self.largest_within(reduce(or_, chosen, 0))

    def largest_within(self, wanted: int) -> SurvivorSet:
        """Return the largest legal survivor set within a set of pieces."""
        self.steps += len(self.micros) // _PIECES_PER_STEP
        return SurvivorSet.of_mask(closed(self.ordering, wanted), len(self.micros))

    def _torn_or_stale(self, index: int) -> Iterator[SurvivorSet]:
        """Yield the sets in which only this write, and all that needs it, is stale or torn."""
        micro, count = self.micros[index], len(self.micros)
        if not isinstance(micro, WriteBlock):
            return
        without = closed(self.ordering, ((1 << count) - 1) & ~(1 << index))
        if can_be_stale(self.ordering, without, index):
            yield SurvivorSet.of_mask(without, count, stale=(index,))
        survived = without | 1 << index
        if can_tear(self.ordering, survived, index):
            for kept in _representative_tears(len(micro.data)):
                yield SurvivorSet.of_mask(survived, count, torn=((index, kept),))


def _representative_tears(length: int) -> list[int]:
    """Return how many bytes survive of a torn write: one, a third, a half, all but one."""
    return sorted({1, length // 3, length // 2, length - 1} - {0})


def _applied(micro: MicroOperation, inodes: Inodes, key: int) -> tuple[Inodes, int]:
    table = InodeTable(inodes, key)
    micro.apply(table)
    return _rebased(table)


def _rebased(table: InodeTable) -> tuple[Inodes, int]:
    inodes = table.rebase()
    assert table.key is not None
    return inodes, table.key
