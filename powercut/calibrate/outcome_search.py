"""The search for a power cut that leaves a given outcome, without building every state.

Directory entries are decided first, then sizes, then data. The pieces of one sector form a
chain, and sectors do not depend on one another, so data costs no search: each sector is
compared with the outcome by itself. Bytes that a model calls stale match any content.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from powercut.calibrate.program import DIRECTORY, Outcome, grouped, run_length, with_mode
from sim.disk.cache.inode import ROOT, Inode
from sim.disk.cache.inode_table import InodeTable
from sim.disk.crash.image import Image
from sim.disk.crash.micro_operation import (
    ChangeAttributes,
    CreateInode,
    ForgetName,
    FreeBlocks,
    LinkName,
    MicroOperation,
    MoveName,
    SetSize,
    Size,
    UnlinkName,
    WriteBlock,
    ZeroTail,
)
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.survivor_set import SurvivorSet, can_be_stale, can_tear
from sim.disk.crash.unsynced import Unsynced

_NAMES = CreateInode | LinkName | UnlinkName | ForgetName | MoveName | ChangeAttributes


class _Decided(NamedTuple):
    """The pieces that survive and those that are lost, as bits; the others are open."""

    kept: int
    lost: int


class _Data(NamedTuple):
    """The decisions on the data pieces of one file: those kept, torn and stale."""

    kept: int
    torn: tuple[tuple[int, int], ...] = ()
    stale: tuple[int, ...] = ()


class OutcomeSearch:
    """Outcomes of a power cut at one moment, under the model of ``unsynced``.

    It is valid until ``unsynced`` advances.
    """

    def __init__(self, unsynced: Unsynced, next_inode: int) -> None:
        self._ordering = unsynced.ordering
        self._micros = unsynced.ordering.micros
        self._order = unsynced.ordering.order
        self._platter = unsynced.platter
        self._space = StateSpace(unsynced)
        self._next_inode = next_inode
        count = len(self._micros)
        self._followers = [
            sum(1 << later for later in range(count) if self._order[later] >> index & 1)
            for index in range(count)
        ]
        self._names = [i for i, micro in enumerate(self._micros) if isinstance(micro, _NAMES)]

    def survivors_of(self, outcome: Outcome) -> SurvivorSet | None:
        """Return survivors that leave this outcome, or None if the model forbids it."""
        contents = {path: _content_of(text) for path, text in outcome.items() if _is_file(text)}
        if self._ordering.model.sequential:
            return self._prefix_of(outcome)
        for decided in self._closed_sets(self._names, _Decided(0, 0)):
            table = InodeTable(self._platter)
            for index, micro in enumerate(self._micros):
                if decided.kept >> index & 1 and isinstance(micro, _NAMES):
                    micro.apply(table)
            files = self._files(table, outcome)
            if files is None:
                continue
            wanted = {number: contents[path] for path, number in files.items()}
            found = self._with_contents(decided, sorted(wanted.items()))
            if found is not None:
                return found
        return None

    def _prefix_of(self, outcome: Outcome) -> SurvivorSet | None:
        count = len(self._micros)
        for length in range(count, -1, -1):
            survivors = SurvivorSet.of_mask((1 << length) - 1, count)
            if self.outcome_of(survivors) == outcome:
                return survivors
        return None

    def outcome_of(self, survivors: SurvivorSet) -> Outcome:
        """Return the outcome of these survivors."""
        image = Image.of_platter(self._space.state_of(survivors).inodes, self._next_inode)
        return outcome_of(image)

    # -- names -----------------------------------------------------------------------------

    def _closed_sets(self, open_pieces: list[int], decided: _Decided) -> Iterator[_Decided]:
        """Yield every way to decide these pieces that the order allows."""
        kept, lost = decided
        for place, index in enumerate(open_pieces):
            if (kept | lost) >> index & 1:
                continue
            others = open_pieces[place + 1 :]
            closure = self._order[index] | 1 << index
            if not closure & lost:
                yield from self._closed_sets(others, _Decided(kept | closure, lost))
            followers = self._followers[index] | 1 << index
            if not followers & kept:
                yield from self._closed_sets(others, _Decided(kept, lost | followers))
            return
        yield decided

    def _files(self, table: InodeTable, outcome: Outcome) -> dict[str, int] | None:
        """Return the inode of each file with contents, or None if the tree is another one."""
        entries: list[tuple[str, int, str]] = []
        waiting = [("", table.own(ROOT))]
        while waiting:
            path, holder = waiting.pop()
            for name, number in holder.entries.items():
                inode = table.own(number)
                text = "" if inode.is_file else f"->{inode.link_text}"
                if inode.is_directory:
                    text = DIRECTORY
                    waiting.append((f"{path}{name}/", inode))
                entries.append((path + name, number, with_mode(text, inode.mode)))
        if {path: _without_content(text) for path, text in outcome.items()} != grouped(entries):
            return None
        numbers = {path: number for path, number, _ in entries}
        return {path: numbers[path] for path, text in outcome.items() if _is_file(text)}

    # -- contents --------------------------------------------------------------------------

    def _with_contents(
        self,
        decided: _Decided,
        files: list[tuple[int, bytes]],
        torn: tuple[tuple[int, int], ...] = (),
        stale: tuple[int, ...] = (),
    ) -> SurvivorSet | None:
        """Decide sizes and data of these files: inode and content.

        A size of one file may need one of another, so a later file may refute the first decision.
        """
        if not files:
            return SurvivorSet.of_mask(decided.kept, len(self._micros), torn, stale)
        (number, content), *others = files
        for sized, data in self._with_content(decided, number, content):
            both = _Decided(data.kept, sized.lost)
            found = self._with_contents(both, others, (*torn, *data.torn), (*stale, *data.stale))
            if found is not None:
                return found
        return None

    def _with_content(
        self, decided: _Decided, number: int, content: bytes
    ) -> Iterator[tuple[_Decided, _Data]]:
        """Yield every decision on the sizes of a file with one on its data that fits."""
        own = [index for index, micro in enumerate(self._micros) if micro.number == number]
        sizes = [index for index in own if isinstance(self._micros[index], Size | FreeBlocks)]
        for sized in self._closed_sets(sizes, decided):
            if self._size(number, sized.kept) == len(content):
                data = self._data(sized, number, own, content)
                if data is not None:
                    yield sized, data

    def _size(self, number: int, kept: int) -> int:
        durable = self._platter.get(number)
        size = 0 if durable is None else durable.size
        for index, micro in enumerate(self._micros):
            if kept >> index & 1 and isinstance(micro, Size) and micro.number == number:
                size = micro.size if isinstance(micro, SetSize) else max(size, micro.size)
        return size

    def _data(self, decided: _Decided, number: int, own: list[int], content: bytes) -> _Data | None:
        """Decide every unit of data, each by itself."""
        units: dict[int, list[int]] = {}
        unit_bytes = self._ordering.model.unit_bytes
        for index in own:
            micro = self._micros[index]
            if isinstance(micro, WriteBlock | ZeroTail):
                units.setdefault(micro.offset // unit_bytes, []).append(index)
        cuts = [index for index in own if isinstance(self._micros[index], Size | FreeBlocks)]
        kept = decided.kept
        torn: list[tuple[int, int]] = []
        stale: list[int] = []
        durable = self._platter.get(number) or Inode.new(number, 0, 0, 0, "", 0)
        # The cuts also apply to units without unsynced data.
        ends = [len(content), *(_end(self._micros[index]) for index in own)]
        for unit in range(-(-max(ends) // unit_bytes)):
            chain = units.get(unit, [])
            start = unit * unit_bytes
            wanted = content[start : start + unit_bytes]
            sector = _Sector(start, durable.stored(start, unit_bytes), wanted)
            found = self._unit(decided, sector, chain, cuts)
            if found is None:
                return None
            kept |= found.kept
            torn += found.torn
            stale += found.stale
        return _Data(kept, tuple(torn), tuple(stale))

    def _unit(
        self, decided: _Decided, sector: _Sector, chain: list[int], cuts: list[int]
    ) -> _Data | None:
        """Return decisions on a chain of writes with which the unit shows the wanted bytes."""
        for kept, _ in self._closed_sets(chain, decided):
            if kept & ~decided.kept & ~sum(1 << index for index in chain):
                continue  # it needs a size that was decided to be lost, or another file
            survived = [index for index in chain if kept >> index & 1]
            missing = [index for index in chain if not kept >> index & 1]
            found = self._shown(kept, sector, survived, missing, cuts)
            if found is not None:
                return found
        return None

    def _shown(
        self, kept: int, sector: _Sector, survived: list[int], missing: list[int], cuts: list[int]
    ) -> _Data | None:
        changes = sorted([*survived, *(index for index in cuts if kept >> index & 1)])
        stale = tuple(i for i in missing if can_be_stale(self._ordering, kept, i))
        wild = [self._micros[index] for index in stale]
        if sector.shows([self._micros[index] for index in changes], wild):
            return _Data(kept, (), stale)
        last = survived[-1] if survived else -1
        micro = self._micros[last] if survived else None
        if isinstance(micro, WriteBlock) and can_tear(self._ordering, kept, last):
            for size in range(1, len(micro.data)):
                torn = micro._replace(data=micro.data[:size])
                parts = [torn if i == last else self._micros[i] for i in changes]
                if sector.shows(parts, wild):
                    return _Data(kept, ((last, size),), stale)
        return None


class _Sector(NamedTuple):
    """One unit of a file: its first byte, the bytes on the platter, and those to be shown."""

    start: int
    stored: bytes
    wanted: bytes

    def shows(self, changes: list[MicroOperation], wild: list[MicroOperation]) -> bool:
        """Return whether the unit shows the wanted bytes after these changes."""
        shown = bytearray(self.stored)
        for micro in changes:
            cut = _cut(micro)
            if cut is not None:
                begin = min(max(cut - self.start, 0), len(shown))
                shown[begin:] = bytes(len(shown) - begin)
            elif isinstance(micro, SetSize):
                self._put(shown, micro.tail_at, micro.tail)
            elif isinstance(micro, WriteBlock):
                begin = micro.offset - self.start
                shown[begin : begin + len(micro.data)] = micro.data
            elif isinstance(micro, ZeroTail):
                begin = micro.offset - self.start
                shown[begin : micro.end - self.start] = bytes(micro.end - micro.offset)
        for micro in wild:
            if isinstance(micro, WriteBlock):
                begin = micro.offset - self.start
                end = min(begin + len(micro.data), len(self.wanted))
                shown[begin:end] = self.wanted[begin:end]
        return shown[: len(self.wanted)] == self.wanted

    def _put(self, shown: bytearray, offset: int, data: bytes) -> None:
        """Store the part of ``data`` that lies in this unit."""
        start = max(offset, self.start)
        end = min(offset + len(data), self.start + len(shown))
        if start < end:
            shown[start - self.start : end - self.start] = data[start - offset : end - offset]


def _cut(micro: MicroOperation) -> int | None:
    """Return the offset from which this piece drops the stored bytes, or None."""
    if isinstance(micro, FreeBlocks):
        return micro.start
    return micro.cut if isinstance(micro, SetSize) else None


def _end(micro: MicroOperation) -> int:
    """Return the end of the bytes that this piece stores."""
    if isinstance(micro, SetSize):
        return micro.tail_at + len(micro.tail)
    return micro.offset + len(micro.data) if isinstance(micro, WriteBlock) else 0


def _is_file(text: str) -> bool:
    return _without_mode(text) != DIRECTORY and text[0] not in "-="


def _without_mode(text: str) -> str:
    return text.partition(" ")[0]


def _without_content(text: str) -> str:
    return text.removeprefix(_without_mode(text)) if _is_file(text) else text


def _content_of(text: str) -> bytes:
    """Return the content of runs, the reverse of ``run_length``."""
    runs = _without_mode(text)
    if runs == "empty":
        return b""
    parts = (run[0].encode() * int(run[1:]) for run in runs.split(","))
    return b"".join(b"\0" * len(part) if part[:1] == b"0" else part for part in parts)


def outcome_of(image: Image) -> dict[str, str]:
    """Return the outcome that an image shows."""
    entries: list[tuple[str, int, str]] = []
    for path, inode in image.tree():
        if path == "/":
            continue
        text = DIRECTORY
        if inode.is_symlink:
            text = f"->{inode.link_text}"
        elif inode.is_file:
            text = run_length(inode.read(0, inode.size))
        entries.append((path[1:], inode.number, with_mode(text, inode.mode)))
    return grouped(entries)
