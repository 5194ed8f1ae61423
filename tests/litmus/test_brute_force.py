"""The walk over crash states against a naive enumeration of every subset, on random programs.

``StateSpace`` shares work between states, leaves out what nobody sees, and is asked by
``explore`` only for what is new since the last operation. None of that may lose a state
or invent one: ``naive.py`` builds every subset and keeps what the table allows.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from oracles.history import History, Known
from powercut.explorer.explore import explore
from powercut.explorer.limits import Limits
from sim.disk.cache.operation import Operation
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, PersistenceModel
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk
from tests.litmus.body import Calls, prepared
from tests.litmus.naive import NaiveDisk, Tree, tree_of

FILES = ("f", "g", "d/f", "e/g")
DIRECTORIES = ("", "d", "e")
NAMES = FILES
MOST_PENDING = 8
NEXT_INODE = 99

Program = list[tuple[Any, ...]]

_write = st.tuples(
    st.just("write"),
    st.sampled_from(FILES),
    st.sampled_from(("A1", "B2", "C3")),
    st.sampled_from((0, 1, 511, 4095)),
)
_append = st.tuples(st.just("append"), st.sampled_from(FILES), st.sampled_from(("B1", "C2")))
_truncate = st.tuples(st.just("truncate"), st.sampled_from(FILES), st.sampled_from((0, 1, 4096)))
_rename = st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES))
_rename_directory = st.tuples(
    st.just("rename"), st.sampled_from(("d", "e", "h")), st.sampled_from(("d", "e", "h", "e/h"))
)
_link = st.tuples(st.just("link"), st.sampled_from(NAMES), st.sampled_from(NAMES))
_unlink = st.tuples(st.just("unlink"), st.sampled_from(NAMES))
_mkdir = st.tuples(st.just("mkdir"), st.sampled_from(("e", "h", "d/e")))
_rmdir = st.tuples(st.just("rmdir"), st.sampled_from(("e", "d/e")))
_chmod = st.tuples(st.just("chmod"), st.sampled_from(FILES), st.sampled_from((0o600, 0o640)))
_fsync = st.tuples(st.just("fsync"), st.sampled_from((*FILES, *DIRECTORIES)))
_fdatasync = st.tuples(st.just("fdatasync"), st.sampled_from((*FILES, *DIRECTORIES)))

_CALLS: st.SearchStrategy[tuple[Any, ...]] = (
    _write | _append | _truncate | _rename | _rename_directory | _link | _unlink | _mkdir
    | _rmdir | _chmod | _fsync | _fdatasync
)  # fmt: skip
PROGRAMS = st.lists(_CALLS, min_size=1, max_size=7)


class _Calls(Calls):
    """The calls of a litmus test, and two more."""

    def rmdir(self, path: str) -> None:
        self._handle.rmdir(f"/{path}")

    def chmod(self, path: str, mode: int) -> None:
        self._handle.chmod(f"/{path}", mode)


def _setup(disk: Calls) -> None:
    disk.mkdir("d")
    disk.write("f", "A3")
    disk.write("d/f", "A2")


SETUP = prepared(_setup)


def _run(program: Program, process: Process) -> None:
    """Run a program, skipping the calls that the file system refuses."""
    calls = _Calls(process)
    for name, *arguments in program:
        try:
            getattr(calls, name)(*arguments)
        except OSError:
            continue


def _trees(unsynced: Unsynced) -> set[Tree]:
    return {tree_of(Image.of_platter(state.inodes, 99)) for state in StateSpace(unsynced).all()}


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@given(program=PROGRAMS)
# A name in a directory means nothing without the directory.
@example(program=[("mkdir", "e"), ("link", "f", "e/g")])
# Data that a truncation has cut off does not come back when the file grows.
@example(
    program=[("write", "f", "C3", 0), ("truncate", "f", 1), ("fsync", "d"), ("truncate", "f", 9)]
)
# What a durable rename took away does not come back from before it: of a file, of a directory.
@example(program=[("mkdir", "e"), ("write", "e/g", "A1", 0), ("rename", "e/g", "f"), ("fsync", "")])
@example(program=[("mkdir", "h"), ("rename", "h", "e"), ("rename", "f", "e/g"), ("fsync", "e")])
def test_all_states_are_those_of_a_naive_enumeration(
    model: PersistenceModel, program: Program
) -> None:
    disk = Disk(SETUP)
    _run(program, Process(disk))
    unsynced, naive = Unsynced(model, SETUP.platter), NaiveDisk(model, SETUP)
    for number, operation in enumerate(disk.journal, 1):
        unsynced.advance(operation, number)
        naive.advance(operation, number)
    assume(len(naive.unsynced) <= MOST_PENDING)
    assert _trees(unsynced) == naive.trees()


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@given(program=PROGRAMS)
@example(program=[("append", "f", "B1"), ("truncate", "f", 1), ("write", "f", "C3", 0)])
@example(program=[("append", "f", "B1"), ("write", "f", "C3", 4095), ("fdatasync", "f")])
@example(program=[("append", "f", "B1"), ("fsync", "d/f"), ("append", "d/f", "C2"), ("fsync", "")])
@example(program=[("truncate", "f", 1), ("fsync", "f"), ("truncate", "f", 9)])
def test_looking_at_what_is_pending_changes_nothing(
    model: PersistenceModel, program: Program
) -> None:
    disk = Disk(SETUP)
    _run(program, Process(disk))
    watched, unwatched = Unsynced(model, SETUP.platter), Unsynced(model, SETUP.platter)
    for number, operation in enumerate(disk.journal, 1):
        watched.advance(operation, number)
        unwatched.advance(operation, number)
        watched.ordering.creation(0)
    assert unwatched.micros == watched.micros
    assert unwatched.ordering.needs == watched.ordering.needs
    assert unwatched.ordering.order == watched.ordering.order
    assert unwatched.key == watched.key


# -- explore: every crash point, every acknowledgement, crashes inside recovery -------------

Look = tuple[frozenset[tuple[str, str, int, bytes]], tuple[object, ...], tuple[object, ...]]
"""What a check gets: the tree, with names of one inode told by the first of them; what is known."""


def _look(tree: Tree, known: Known) -> Look:
    first: dict[int, str] = {}
    for path, number, _, _ in sorted(tree):
        first.setdefault(number, path)
    named = frozenset((path, first[number], mode, content) for path, number, mode, content in tree)
    return named, known.acknowledged, known.in_flight


class _Looks:
    """A check that remembers each look, and then recovers as told."""

    def __init__(self, recovery: Program) -> None:
        self.recovery = recovery
        self.seen: set[Look] = set()

    def __call__(self, process: Process, known: Known) -> None:
        tree = tree_of(process.disk.snapshot())
        self.seen.add(_look(tree, known))
        _run(self.recovery, process)


def _workload(program: Program, process: Process, history: History) -> None:
    """Run a program; an ``ack`` in it acknowledges, and is told by its number."""
    for number, call in enumerate(program):
        if call == ("ack",):
            history(number)
        else:
            _run([call], process)


def _brute_force(
    model: PersistenceModel, program: Program, recovery: Program, nested: int
) -> set[Look]:
    """Look at every crash of a program, of its recovery, of the recovery from that..."""
    disk = Disk(SETUP, model)
    history = History(lambda: disk.operations)
    _workload(program, Process(disk), history)
    looks: set[Look] = set()
    for number in range(len(disk.journal) + 1):
        said = {history.entries_by(number, returned=True)}
        if number:
            said.add(history.entries_by(number, returned=False))
        known = [history.known(count) for count in sorted(said)]
        naive = NaiveDisk(model, SETUP)
        _crash(naive, disk.journal[:number], SETUP, known, recovery, nested, looks)
    return looks


def _crash(
    naive: NaiveDisk, journal: list[Operation], image: Image, known: list[Known],
    recovery: Program, nested: int, looks: set[Look],
) -> None:  # fmt: skip
    """Crash right after ``journal``, which ran on ``image``; ``naive`` is this disk before it."""
    for number, operation in enumerate(journal, 1):
        naive.advance(operation, number + 1000 * (9 - nested))
    looks |= {_look(tree, each) for tree in naive.trees() for each in known}
    if not nested:
        return
    unsynced = Unsynced(naive.model, image.platter, image.unsynced)
    for number, operation in enumerate(journal, 1):
        unsynced.advance(operation, number)
    cached = StateSpace(unsynced).state_of(SurvivorSet()).inodes
    carried = unsynced.carried_over(len(journal))
    killed = Image(unsynced.platter, carried, cached, NEXT_INODE)
    images: dict[object, Image] = {
        state.key: Image.of_platter(state.inodes, NEXT_INODE)
        for state in StateSpace(unsynced).all()
    }
    for crashed in (killed, *images.values()):
        second = Disk(crashed, naive.model)
        _run(recovery, Process(second))
        for number in range(1, len(second.journal) + 1):
            before = deepcopy(naive) if crashed is killed else NaiveDisk(naive.model, crashed)
            _crash(before, second.journal[:number], crashed, known, recovery, nested - 1, looks)


def _explored(
    model: PersistenceModel, program: Program, recovery: Program, nested: int
) -> set[Look]:
    looks = _Looks(recovery)
    limits = Limits(states_per_point=10**9, nested=nested)
    result = explore(
        lambda process, history: _workload(program, process, history), looks, model, limits, SETUP
    )
    assert result.safe
    assert result.exhaustive
    return looks.seen


def _small(model: PersistenceModel, program: Program) -> bool:
    """Whether brute force can take it."""
    disk = Disk(SETUP, model)
    _workload(program, Process(disk), History(lambda: disk.operations))
    return len(disk.unsynced().micros) <= MOST_PENDING


_ack = st.just(("ack",))


# A kill may find a write across two pages half done; brute force does not know that.
def _is_whole(call: tuple[object, ...]) -> bool:
    return call[0] != "write" or call[3] != 4095 or call[2] == "A1"


_WHOLE = _CALLS.filter(_is_whole)
_EXPLORED = st.lists(_WHOLE | _ack, min_size=1, max_size=5)
_SHORT = st.lists(_WHOLE, min_size=1, max_size=3)
_RECOVERIES = st.lists(_WHOLE, min_size=1, max_size=2)


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@given(program=_EXPLORED)
# On btrfs, fsync of g makes its name durable, and not that f went before it came.
@example(program=[("unlink", "f"), ("write", "g", "A1", 0), ("fsync", "g")])
def test_explore_looks_at_every_crash_at_every_moment(
    model: PersistenceModel, program: Program
) -> None:
    assume(_small(model, program))
    assert _explored(model, program, [], 0) == _brute_force(model, program, [], 0)


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@given(program=_SHORT, recovery=_RECOVERIES)
# One disk is met after one crash and after two.
@example(program=[("append", "f", "B1")], recovery=[("append", "f", "B1")])
# What is unsynced when the process is killed shows in nothing but what comes later.
@example(program=[("rename", "f", "g"), ("rename", "g", "f")], recovery=[("append", "f", "B1")])
def test_explore_looks_at_every_crash_inside_a_recovery(
    model: PersistenceModel, program: Program, recovery: Program
) -> None:
    assume(_small(model, [*program, *recovery]))
    assert _explored(model, program, recovery, 1) == _brute_force(model, program, recovery, 1)
