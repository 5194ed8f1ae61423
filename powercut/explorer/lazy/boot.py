"""Boots on an undecided disk: each read becomes a question, asked once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol, TypeAlias, cast

from powercut.explorer.lazy.footprint import written
from powercut.explorer.lazy.unit_call import WITHIN, Asked, UnitCall
from sim.disk.cache.inode import BLOCK_BYTES, ROOT
from sim.disk.cache.inode_table import Inodes
from sim.disk.cache.lazy_inode import LazyInode, LazyInodes, LazyInodeTable
from sim.disk.cache.operation import Operation
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.undecided.question import (
    FIRST_NEW,
    Answer,
    DroppedPages,
    NewInode,
    Property,
    Question,
)
from sim.disk.disk import Disk
from sim.errors import NeedsWholeImage


class Answers(Protocol):
    """Answers the questions of one boot, in their order."""

    def answer(self, question: Asked, operations: list[Operation]) -> Answer:
        """Return the answer; ``operations`` are those of the boot so far."""
        ...

    @property
    def failure(self) -> BaseException | None:
        """The exception with which the boot was given up, or None; a check may swallow it."""
        ...

    def fail(self, failure: BaseException) -> NoReturn:
        """Give the boot up, and raise ``failure``."""
        ...


_Report: TypeAlias = tuple[list[tuple[Asked, int]], list[Operation], BaseException | None]


class Boot:
    """The questions of one boot, as the inodes of its page cache ask them.

    A question whose answer follows from earlier ones is not asked again. ``is_unit`` is whether
    it boots a recovery unit, which has no units of its own.
    """

    def __init__(self, answers: Answers, model: PersistenceModel, *, is_unit: bool = False) -> None:
        self.answers = answers
        self.asked: list[tuple[Asked, int]] = []
        self._is_unit = is_unit
        self._known: dict[Asked, Answer] = {}
        self._inodes: dict[int, LazyInode] = {}
        self._sizes: dict[int, tuple[int, bool]] = {}
        self._pieces: dict[tuple[int, int], dict[int, bytes]] = {}
        self.disk = LazyDisk(self, model)
        root = self._ask(Question(Property.ATTRIBUTES, ROOT))
        assert isinstance(root, NewInode), root
        self._meet(root)

    def _ask(self, question: Asked) -> Answer:
        found = self._known.get(question)
        if found is None:
            operations = self.disk.journal.operations
            found = self.answers.answer(question, operations)
            self.asked.append((question, len(operations)))
            self._known[question] = found
        return found

    def _meet(self, found: NewInode) -> int:
        number = len(self._inodes) + 1
        self._inodes[number] = LazyInode(self, number, *found)
        return number

    def unit(self, function: Callable[..., Any], name: str, arguments: tuple[Any, ...]) -> Any:
        """Return the result of a recovery unit, the function ``name``."""
        if not self._is_unit:
            call = UnitCall(name, arguments, written(self.disk.journal.operations))
            found = self._ask(call)
            assert isinstance(found, bytes), found
            if found != WITHIN:
                return call.result_of(found)
        return function(Process(self.disk), *arguments)

    # -- sim.disk.cache.lazy_inode.Asker -------------------------------------------------------

    def inode(self, number: int) -> LazyInode:
        return self._inodes[number]

    def size(self, number: int, cap: int) -> int:
        least, is_exact = self._sizes.get(number, (0, False))
        if is_exact or least >= cap:
            return min(least, cap)
        found = self._ask(Question(Property.SIZE, number, end=cap))
        assert isinstance(found, int), found
        self._sizes[number] = found, found < cap
        return found

    def data(self, number: int, start: int, end: int) -> bytes:
        parts = []
        while start < end:
            limit = min(end, (start // BLOCK_BYTES + 1) * BLOCK_BYTES)
            parts.append(self._block(number, start, limit))
            start = limit
        return b"".join(parts)

    def _block(self, number: int, start: int, end: int) -> bytes:
        """Return bytes of one block, of which some may be known."""
        known = self._pieces.setdefault((number, start // BLOCK_BYTES), {})
        for first in sorted(known):
            piece = known[first]
            last = first + len(piece)
            if start < last and first < end:
                left, right = max(first, start), min(last, end)
                before = self._block(number, start, left) if start < left else b""
                after = self._block(number, right, end) if right < end else b""
                return before + piece[left - first : right - first] + after
        found = self._ask(Question(Property.DATA, number, start, end))
        assert isinstance(found, bytes), found
        known[start] = found
        return found

    def has_block(self, _number: int, _index: int) -> NoReturn:
        self.refuse("the allocated blocks of a file")

    def entry(self, number: int, name: str) -> int:
        return self._inode_of(Question(Property.ENTRY, number, name=name))

    def _inode_of(self, question: Question) -> int:
        found = self._ask(question)
        if isinstance(found, NewInode):
            found = self._known[question] = self._meet(found)
        assert isinstance(found, int), found
        return found

    def names(self, number: int) -> tuple[str, ...]:
        return cast("tuple[str, ...]", self._ask(Question(Property.NAMES, number)))

    def links(self, number: int) -> int:
        found = self._ask(Question(Property.LINKS, number))
        assert isinstance(found, int), found
        return found

    def parent(self, number: int) -> int:
        return self._inode_of(Question(Property.PARENT, number))

    def times_ns(self, number: int) -> tuple[int, int, int]:
        return cast("tuple[int, int, int]", self._ask(Question(Property.TIMES, number)))

    def has_lost_data(self, number: int) -> bool:
        """Return whether a failed barrier of an earlier lifetime has lost data of an inode."""
        return number < FIRST_NEW and bool(self._ask(Question(Property.LOST_DATA, number)))

    def dropped(self) -> Mapping[int, bytes]:
        """Return the blocks that the last operation has dropped, as the platter has them.

        A unit that drops pages has no tree of its own, so what it reads there does not matter.
        """
        if self._is_unit:
            return {}
        found = self._ask(DroppedPages.after(self.disk.journal.operations))
        return dict(cast("tuple[tuple[int, bytes], ...]", found))

    def st_ino(self, number: int) -> int:
        place = FIRST_NEW - number if number >= FIRST_NEW else number
        found = self._ask(Question(Property.NUMBER, place))
        assert isinstance(found, int), found
        return found

    def refuse(self, wanted: str) -> NoReturn:
        self.answers.fail(NeedsWholeImage(wanted))


class LazyDisk(Disk):
    """The running disk of a boot whose image is undecided."""

    def __init__(self, boot: Boot, model: PersistenceModel) -> None:
        self._boot = boot
        nothing = cast("Inodes", _Refused(boot))
        image = Image(nothing, (), cast("Inodes", LazyInodes(boot)), FIRST_NEW)
        super().__init__(image, model, cache=LazyInodeTable(boot))

    def unit(self, function: Callable[..., Any], name: str, arguments: tuple[Any, ...]) -> Any:
        """Return the result of a recovery unit, the function ``name``."""
        return self._boot.unit(function, name, arguments)

    def drop_pages(self, number: int, path: str, start: int, end: int) -> None:
        if self._boot.has_lost_data(number):
            self._with_lost_data.add(number)
        super().drop_pages(number, path, start, end)

    def _dropped(self) -> Mapping[int, bytes]:
        return self._boot.dropped()

    def report(self) -> object:
        """Return the questions of this boot, its operations, and why it was given up, or None."""
        return self._boot.asked, self.journal.operations, self._boot.answers.failure

    def accept(self, report: object) -> None:
        """Ask the questions that this boot asked in another process."""
        asked, operations, failure = cast("_Report", report)
        if failure is not None:
            self._boot.answers.fail(failure)
        for question, done in asked[len(self._boot.asked) :]:
            self._boot.answers.answer(question, operations[:done])
        self.journal.operations[:] = operations


class _Refused:
    """The platter of a boot, which nothing may read: it is not the page cache after a kill."""

    def __init__(self, boot: Boot) -> None:
        self._boot = boot

    def get(self, _number: int) -> NoReturn:
        self._boot.refuse("the platter")

    def __getitem__(self, _number: int) -> NoReturn:
        self._boot.refuse("the platter")
