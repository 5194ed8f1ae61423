"""The walk over crash states against a naive enumeration of every subset, on random programs.

``StateSpace`` shares work between states and leaves out pieces that no program can observe,
and ``explore`` builds only the states that are new since the last operation. None of that may
lose a state or add one: ``naive.py`` builds every subset, and keeps those that the table of
models allows.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from oracles.history import History, Known
from powercut.explorer.crash_state import unsynced_along
from powercut.explorer.judge import Judge
from powercut.explorer.limits import Limits
from powercut.explorer.recorded_workload import record
from sim.disk.cache.operation import Operation
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import BTRFS, EXT4, MODELS, POSIX, PersistenceModel
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk
from tests.litmus.naive import NaiveDisk, Tree, killed_trees, tree_of
from tests.litmus.naive_examples import EXAMPLES
from tests.litmus.programs import CALLS, PROGRAMS, SETUP, Program, disk_after, run

MOST_UNSYNCED = 8
NEXT_INODE = 99
_AND_TORN_RENAMES = (
    *MODELS.values(),
    *(model.with_torn_rename() for model in (EXT4, BTRFS, POSIX)),
)


def _trees(unsynced: Unsynced) -> set[Tree]:
    return {tree_of(Image.of_platter(state.inodes, 99)) for state in StateSpace(unsynced).all()}


def _with_examples(test: Callable[..., None]) -> Callable[..., None]:
    for program in reversed(EXAMPLES):
        test = example(program=program)(test)
    return test


@pytest.mark.parametrize("model", _AND_TORN_RENAMES, ids=lambda model: model.name)
@given(program=PROGRAMS)
@_with_examples
def test_all_states_are_those_of_a_naive_enumeration(
    model: PersistenceModel, program: Program
) -> None:
    _compare(disk_after(program).journal, model)


def _compare(journal: Journal, model: PersistenceModel) -> None:
    unsynced, naive = Unsynced(model, SETUP.platter), NaiveDisk(model, SETUP)
    for number, operation in enumerate(journal, 1):
        unsynced.advance(operation, number)
        naive.advance(operation, number)
    assume(len(naive.unsynced) <= MOST_UNSYNCED)
    assert _trees(unsynced) == naive.trees()


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@given(program=PROGRAMS)
@_with_examples
def test_the_unsynced_pieces_do_not_depend_on_earlier_reads(
    model: PersistenceModel, program: Program
) -> None:
    disk = disk_after(program)
    last = disk.operations
    (at_once,) = unsynced_along(disk.journal, model, {last})
    *_, step_by_step = unsynced_along(disk.journal, model, range(last + 1))
    assert at_once == step_by_step


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@given(program=PROGRAMS)
@_with_examples
def test_a_power_cut_without_losses_leaves_the_page_cache(
    model: PersistenceModel, program: Program
) -> None:
    disk = disk_after(program, model)
    survived = disk.power_cut(SurvivorSet())
    assert tree_of(survived) == tree_of(disk.unmounted())


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@given(program=PROGRAMS)
@example(program=[("append", "f", "B1"), ("truncate", "f", 1), ("write", "f", "C3", 0)])
@example(program=[("append", "f", "B1"), ("write", "f", "C3", 4095), ("fdatasync", "f")])
@example(program=[("append", "f", "B1"), ("fsync", "d/f"), ("append", "d/f", "C2"), ("fsync", "")])
@example(program=[("truncate", "f", 1), ("fsync", "f"), ("truncate", "f", 9)])
@example(program=[("truncate", "f", 1), ("truncate", "f", 1), ("fdatasync", "f")])
@example(program=[
    ("write", "g", "C3", 4096), ("chmod", "f", 0o600), ("write", "g", "B1", 0), ("fsync", "g"),
])  # fmt: skip
def test_reading_the_unsynced_pieces_changes_nothing(
    model: PersistenceModel, program: Program
) -> None:
    disk = disk_after(program)
    read, unread = Unsynced(model, SETUP.platter), Unsynced(model, SETUP.platter)
    for number, operation in enumerate(disk.journal, 1):
        read.advance(operation, number)
        unread.advance(operation, number)
        assert read.ordering.creation(0) is None
    assert unread.micros == read.micros
    assert unread.ordering.needs == read.ordering.needs
    assert unread.ordering.order == read.ordering.order
    assert unread.key == read.key


# -- explore: every crash point, every acknowledgement, crashes inside recovery -------------

Observation = tuple[frozenset[tuple[str, str, int, bytes]], tuple[object, ...], tuple[object, ...]]
"""The arguments of a check: the tree, with the first name of its inode for each path; the
acknowledged values, and those in flight."""


def _observe(tree: Tree, known: Known) -> Observation:
    first: dict[int, str] = {}
    for path, number, _, _ in sorted(tree):
        first.setdefault(number, path)
    named = frozenset((path, first[number], mode, content) for path, number, mode, content in tree)
    return named, known.acknowledged, known.in_flight


class _Observations:
    """A check that records its arguments, and then runs the recovery."""

    def __init__(self, recovery: Program) -> None:
        self.recovery = recovery
        self.seen: set[Observation] = set()

    def __call__(self, process: Process, known: Known) -> None:
        tree = tree_of(process.disk.snapshot())
        self.seen.add(_observe(tree, known))
        run(self.recovery, process)


def _workload(program: Program, process: Process, history: History) -> None:
    """Run a program; the call ``ack`` in it acknowledges its own position."""
    for number, call in enumerate(program):
        if call == ("ack",):
            history(number)
        else:
            run([call], process)


def _brute_force(
    model: PersistenceModel, program: Program, recovery: Program, nested: int
) -> set[Observation]:
    """Return a look at every crash of a program, of its recovery, of the recovery from that..."""
    disk = Disk(SETUP, model)
    history = History(lambda: disk.operations)
    _workload(program, Process(disk), history)
    observations: set[Observation] = set()
    for number in range(len(disk.journal) + 1):
        said = {history.entries_by(number, returned=True)}
        if number:
            before = history.entries_by(number, returned=False)
            said.add(before)
            killed = killed_trees(model, SETUP, disk.journal[:number])
            observations |= {_observe(tree, history.known(before)) for tree in killed}
        known = [history.known(count) for count in sorted(said)]
        naive = NaiveDisk(model, SETUP)
        _crash(naive, disk.journal[:number], SETUP, known, recovery, nested, observations)
    return observations


def _crash(
    naive: NaiveDisk, journal: list[Operation], image: Image, known: list[Known],
    recovery: Program, nested: int, observations: set[Observation],
) -> None:  # fmt: skip
    """Crash after ``journal``, which ran on ``image``; ``naive`` is the disk before it."""
    for number, operation in enumerate(journal, 1):
        naive.advance(operation, number + 1000 * (9 - nested))
    observations |= {_observe(tree, each) for tree in naive.trees() for each in known}
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
        run(recovery, Process(second))
        for number in range(1, len(second.journal) + 1):
            before = NaiveDisk(naive.model, crashed)
            if crashed is killed:
                before = deepcopy(naive)
            _crash(
                before, second.journal[:number], crashed, known, recovery, nested - 1, observations
            )


def _explored(
    model: PersistenceModel, program: Program, recovery: Program, nested: int
) -> set[Observation]:
    observations = _Observations(recovery)
    limits = Limits(states_per_point=10**9, nested=nested)
    recorded = record(lambda process, history: _workload(program, process, history), model, SETUP)
    result = Judge(observations, limits).explore(recorded, model)
    assert result.safe
    assert result.exhaustive
    return observations.seen


def _small(model: PersistenceModel, program: Program) -> bool:
    """Return whether the subsets are few enough to build them all."""
    disk = Disk(SETUP, model)
    _workload(program, Process(disk), History(lambda: disk.operations))
    return len(disk.unsynced().micros) <= MOST_UNSYNCED


_ack = st.just(("ack",))


# A recovery after a kill between two pages of a write is not run on the naive disk.
def _is_whole(call: tuple[object, ...]) -> bool:
    return "write" not in str(call[0]) or call[3] != 4095 or call[2] == "A1"


_WHOLE = CALLS.filter(_is_whole)
_EXPLORED = st.lists(CALLS | _ack, min_size=1, max_size=5)
_SHORT = st.lists(_WHOLE, min_size=1, max_size=3)
_RECOVERIES = st.lists(_WHOLE, min_size=1, max_size=2)


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@given(program=_EXPLORED)
# On btrfs, fsync of g makes its name durable, and not the earlier removal of f.
@example(program=[("unlink", "f"), ("write", "g", "A1", 0), ("fsync", "g")])
# On btrfs, names are out of order from the first barrier on, also those that were changed before.
@example(program=[("link", "f", "g"), ("unlink", "f"), ("fsync", "d/f")])
# On btrfs, the last fsync makes a disk possible that was not: g is gone, and d/f is still there.
@example(
    program=[
        ("link", "f", "g"), ("sync",), ("append", "d/f", "B1"), ("fsync", "d/f"),
        ("rename", "d/f", "g"), ("fsync", "f"),
    ]
)  # fmt: skip
# On btrfs, fsync of e makes a disk possible that was not: e beside x, through which e has passed.
@example(program=[("mkdir", "x"), ("rename", "d", "x"), ("rename", "x", "e"), ("fsync", "e")])
# A kill may leave the first page of a write, and under some models that of a direct one.
@example(program=[("write", "f", "B2", 4095), ("ack",)])
@example(program=[("write_direct", "f", "B2", 4095), ("ack",)])
def test_explore_checks_every_crash_at_every_moment(
    model: PersistenceModel, program: Program
) -> None:
    assume(_small(model, program))
    assert _explored(model, program, [], 0) == _brute_force(model, program, [], 0)


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@given(program=_SHORT, recovery=_RECOVERIES)
# The same disk is reached after one crash and after two.
@example(program=[("append", "f", "B1")], recovery=[("append", "f", "B1")])
# Two kills leave equal page caches, whose unsynced pieces differ.
@example(program=[("rename", "f", "g"), ("rename", "g", "f")], recovery=[("append", "f", "B1")])
# On btrfs, names that the recovery changes are out of order after a barrier before the kill.
@example(program=[("fsync", "f")], recovery=[("link", "f", "g"), ("unlink", "f")])
# On btrfs, a barrier on another file takes the one that the recovery renames out of the log.
@example(
    program=[("write", "g", "A1", 0), ("fsync", "g"), ("fsync", "f")],
    recovery=[("rename", "g", "f"), ("unlink", "d/f")],
)
# A barrier leaves another disk to a recovery although it covers nothing.
@example(program=[("chmod", "f", 0o600), ("fsync", "d")], recovery=[("link", "f", "g")])
def test_explore_checks_every_crash_inside_a_recovery(
    model: PersistenceModel, program: Program, recovery: Program
) -> None:
    assume(_small(model, [*program, *recovery]))
    assert _explored(model, program, recovery, 1) == _brute_force(model, program, recovery, 1)
