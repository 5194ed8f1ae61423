"""The walk over crash states against a naive enumeration of every subset, on random programs.

``StateSpace`` shares work between states and leaves out pieces that no program can observe,
and ``explore`` builds only the states that are new since the last operation. None of that may
lose a state or add one: ``naive.py`` builds every subset, and keeps those that the table of
models allows.
"""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from oracles.history import History, Known
from powercut.explorer.judge import Judge
from powercut.explorer.limits import Limits
from powercut.explorer.recorded_workload import record
from sim.disk.cache.operation import Operation
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, PersistenceModel
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk
from tests.litmus.naive import NaiveDisk, Tree, tree_of
from tests.litmus.programs import CALLS, PROGRAMS, SETUP, Program, run

MOST_UNSYNCED = 8
NEXT_INODE = 99


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
# A truncation that extends the file brings back what a durable one cut off.
@example(program=[("truncate", "f", 1), ("fsync", "f"), ("truncate", "f", 512)])
@example(program=[("truncate", "f", 1), ("append", "f", "B1"), ("truncate", "f", 1),
                  ("fsync", "f"), ("truncate", "f", 2)])  # fmt: skip
# A name that a durable rename removed does not come back: of a file, of a directory.
@example(program=[("mkdir", "e"), ("write", "e/g", "A1", 0), ("rename", "e/g", "f"), ("fsync", "")])
@example(program=[("mkdir", "h"), ("rename", "h", "e"), ("rename", "f", "e/g"), ("fsync", "e")])
# Moves of directories keep their order.
@example(program=[("mkdir", "e"), ("fsync", ""), ("rename", "d", "g"), ("rename", "e", "h")])
# A file that moved to another directory is not lost when another file takes its old name.
@example(program=[("rename", "d/f", "g"), ("link", "f", "d/f"), ("fsync", "f"), ("fsync", "d")])
@example(program=[("rename", "d/f", "g"), ("write", "d/f", "B2", 0), ("fsync", "d/f"),
                  ("unlink", "d/f"), ("fsync", "d")])  # fmt: skip
# While the removal of its old name is unsynced, it gets that name back.
@example(program=[("rename", "d/f", "g"), ("rename", "f", "d/f"), ("fsync", "d"), ("fsync", "d"),
                  ("unlink", "d/f")])  # fmt: skip
# A file that was changed before the last barrier on the file that it replaces.
@example(program=[("mkdir", "e"), ("write", "g", "B2", 0), ("write", "e/g", "A1", 0),
                  ("fsync", "e/g"), ("fsync", "g"), ("rename", "g", "e/g")])  # fmt: skip
# A name that a file had for a time brings no directory.
@example(program=[("mkdir", "e"), ("write", "e/g", "A1", 0), ("rename", "e/g", "g"),
                  ("fsync", "g")])  # fmt: skip
# A file that made room for another has the names that it has by then.
@example(program=[("rename", "f", "g"), ("write", "f", "A1", 0), ("rename", "g", "h"),
                  ("fsync", "f")])  # fmt: skip
@example(program=[("write", "g", "B2", 0), ("fsync", "g"), ("fsync", ""), ("rename", "g", "f"),
                  ("write", "g", "A1", 0), ("unlink", "f"), ("fsync", "g")])  # fmt: skip
# So has a file that made room for it, but a directory has not, and not by a barrier on a directory.
@example(program=[("write", "g", "B2", 0), ("fsync", "g"), ("fsync", ""), ("rename", "g", "h"),
                  ("rename", "f", "e"), ("rename", "d/f", "f"), ("rename", "e", "g"),
                  ("rename", "h", "k"), ("fsync", "f")])  # fmt: skip
@example(program=[("rename", "d", "g"), ("rename", "f", "d"), ("rename", "g", "h"), ("fsync", "d")])
@example(program=[("rename", "f", "g"), ("rename", "d/f", "f"), ("rename", "g", "h"),
                  ("fsync", "d")])  # fmt: skip
# Its name in a new directory stays unsynced.
@example(program=[("rename", "f", "g"), ("write", "f", "A1", 0), ("mkdir", "e"),
                  ("rename", "g", "e/g"), ("fsync", "f")])  # fmt: skip
# A file that has a name again does not lose it by an earlier rename.
@example(program=[("link", "f", "g"), ("rename", "d/f", "g"), ("rename", "f", "g"), ("fsync", "g")])
# A link gives a name anew, whatever the name was before.
@example(program=[("rename", "f", "g"), ("rename", "g", "f"), ("link", "f", "g"),
                  ("rename", "g", "d/f"), ("fsync", "d/f")])  # fmt: skip
# Of two files that were replaced, the first returns.
@example(program=[("write", "g", "B2", 0), ("rename", "g", "d/f"), ("rename", "f", "d/f"),
                  ("fsync", ""), ("rename", "d/f", "h")])  # fmt: skip
# A name whose removal is durable does not return.
@example(program=[("rename", "f", "d/f"), ("write", "f", "A1", 0), ("fsync", "f"),
                  ("fsync", "d/f"), ("rename", "f", "d/f")])  # fmt: skip
# The first of three files that had a name returns.
@example(program=[("write", "g", "B2", 0), ("fsync", "g"), ("rename", "g", "f"),
                  ("write", "g", "C3", 0), ("rename", "g", "f")])  # fmt: skip
# A file never gets back the name that it loses itself.
@example(program=[("link", "f", "h"), ("create", "g"), ("rename", "g", "f"), ("fsync", "f"),
                  ("rename", "h", "f"), ("rename", "f", "k")])  # fmt: skip
# A name that a file had twice, and has no more, brings no directory.
@example(program=[("write", "f", "A1", 0), ("fsync", "f"), ("mkdir", "e"), ("create", "e/g"),
                  ("link", "e/g", "h"), ("rename", "f", "e/g"), ("rename", "h", "e/g"),
                  ("rename", "e/g", "k"), ("fsync", "k")])  # fmt: skip
# Nor do renames between such names; the name that the file keeps brings them all.
@example(program=[("mkdir", "e"), ("create", "e/g"), ("rename", "e/g", "e/h"),
                  ("rename", "e/h", "h"), ("fsync", "h")])  # fmt: skip
@example(program=[("create", "g"), ("mkdir", "e"), ("rename", "g", "e/f"), ("rename", "e/f", "h"),
                  ("fsync", "h")])  # fmt: skip
@example(program=[("mkdir", "e"), ("create", "e/g"), ("rename", "e/g", "e/h"), ("fsync", "e/h")])
@example(program=[("mkdir", "e"), ("mkdir", "e/h"), ("create", "e/h/g"), ("fsync", "e/h/g")])
# A removal belongs to the file of the barrier only if that had the name for a time.
@example(program=[("unlink", "f"), ("link", "d/f", "f"), ("unlink", "f"), ("fsync", "d/f")])
@example(program=[("link", "f", "h"), ("rename", "d/f", "f"), ("fsync", "h")])
# A file made room only if it had the name durably, and another file keeps it.
@example(program=[("link", "d/f", "g"), ("rename", "g", "f"), ("create", "g"), ("fsync", "g")])
@example(program=[("create", "h"), ("rename", "h", "g"), ("rename", "g", "h"), ("link", "f", "g"),
                  ("fsync", "f")])  # fmt: skip
@example(program=[("rename", "d", "g"), ("rename", "f", "d"), ("rename", "g", "e"),
                  ("rename", "d", "f"), ("rename", "e/f", "d"), ("fsync", "e")])  # fmt: skip
@example(program=[("rename", "d/f", "d/g"), ("create", "d/f"), ("rename", "d/f", "f"),
                  ("fsync", "f")])  # fmt: skip
@example(program=[("rename", "d", "h"), ("rename", "f", "d"), ("rename", "d", "f"), ("fsync", "f")])
# A barrier covers all later changes of its names, and no other change of it.
@example(program=[("rename", "f", "g"), ("create", "f"), ("link", "g", "h"), ("link", "g", "k"),
                  ("fsync", "f")])  # fmt: skip
@example(program=[("rename", "f", "g"), ("unlink", "g"), ("rename", "d/f", "h"), ("link", "h", "f"),
                  ("fsync", "f")])  # fmt: skip
@example(program=[("mkdir", "e"), ("link", "f", "e/f"), ("rename", "f", "g"), ("create", "f"),
                  ("unlink", "e/f"), ("fsync", "f")])  # fmt: skip
@example(program=[("rename", "f", "d/f"), ("rename", "d/f", "f"), ("rename", "f", "g"),
                  ("create", "f"), ("fsync", "f")])  # fmt: skip
@example(program=[("rename", "f", "g"), ("append", "g", "B1"), ("create", "f"), ("fsync", "f")])
# One of its two names suffices for the earlier changes of a name by the same file.
@example(program=[("create", "g"), ("link", "g", "d/g"), ("rename", "g", "f"),
                  ("rename", "d/g", "g"), ("fsync", "d")])  # fmt: skip
@example(program=[("rename", "f", "d/f"), ("write", "f", "A1", 0), ("fsync", ""), ("unlink", "f"),
                  ("fsync", "")])  # fmt: skip
# The old directory of a rename covers the removal of the old name once the new one is durable.
@example(program=[("create", "h"), ("rename", "h", "d/f"), ("fsync", "d"), ("fsync", "")])
# Attributes, directories and sizes of other inodes; fdatasync covers no attributes.
@example(program=[("chmod", "f", 0o600), ("fsync", "d/f")])
@example(program=[("chmod", "f", 0o600), ("fdatasync", "f")])
@example(program=[("mkdir", "e"), ("fdatasync", "f")])
@example(program=[("allocate", "f", 2, 4096), ("fsync", "d/f")])
# It covers no name but the first one.
@example(program=[("create", "g"), ("rename", "g", "d/f"), ("fdatasync", "d/f")])
# After sync nothing is unsynced.
@example(program=[("rename", "d/f", "f"), ("create", "d/f"), ("sync",), ("rename", "d/f", "f")])
# A barrier covers the loss of a name that it gave for a time, if that is in its directory.
@example(program=[("rename", "f", "d/f"), ("unlink", "d/f"), ("fsync", "d")])
@example(program=[("rename", "f", "g"), ("rename", "g", "f"), ("unlink", "f"), ("fsync", "")])
@example(program=[("mkdir", "h"), ("rename", "d/f", "f"), ("rename", "f", "d/f"), ("fsync", "")])
# A directory that was replaced does not return, and loses a name that another had for a time.
@example(program=[("mkdir", "h"), ("fsync", ""), ("rename", "d", "h"), ("fsync", "h"),
                  ("rename", "h", "e")])  # fmt: skip
@example(program=[("mkdir", "h"), ("fsync", ""), ("rename", "d", "h"), ("rename", "h", "e"),
                  ("fsync", "")])  # fmt: skip
# The removal of a durable name ends when the file has that name again, also after another file.
@example(program=[("write", "f", "A1", 0), ("fsync", "f"), ("create", "k"), ("rename", "f", "g"),
                  ("rename", "g", "h"), ("rename", "k", "f"), ("rename", "h", "f"),
                  ("fsync", "")])  # fmt: skip
# A part of a rename that is left over makes no other part obsolete.
@example(program=[("create", "g"), ("rename", "g", "f"), ("rename", "d/f", "f"),
                  ("rename", "f", "g"), ("rename", "g", "f"), ("fsync", "f"),
                  ("sync",)])  # fmt: skip
@example(program=[("unlink", "d/f"), ("rename", "f", "d/f"), ("fsync", "d/f"),
                  ("rename", "d/f", "f"), ("rename", "f", "d/f"), ("unlink", "d/f")])  # fmt: skip
# A name that was logged without replacing a file covers none.
@example(program=[("link", "f", "g"), ("fsync", "g"), ("rename", "d/f", "g"), ("fsync", "d"),
                  ("rename", "g", "d/f")])  # fmt: skip
# A barrier on a directory leaves data that durable truncations cut: at the least size of all.
@example(program=[("write", "g", "C3", 0), ("truncate", "g", 1), ("create", "d/g"), ("fsync", "d")])
@example(program=[("write", "g", "C3", 0), ("truncate", "g", 2), ("truncate", "g", 1),
                  ("create", "d/g"), ("fsync", "d"), ("truncate", "g", 2)])  # fmt: skip
@example(program=[("write", "g", "C3", 0), ("truncate", "g", 1), ("truncate", "g", 2),
                  ("create", "d/g"), ("fsync", "d")])  # fmt: skip
@example(program=[("write", "g", "A600", 1), ("truncate", "g", 500), ("create", "d/g"),
                  ("fsync", "d"), ("truncate", "g", 700)])  # fmt: skip
# A piece of the file that is neither data nor a size is left as it is.
@example(program=[("create", "h"), ("rename", "h", "d/f"), ("truncate", "d/f", 1),
                  ("rename", "d/f", "f"), ("fsync", "f")])  # fmt: skip
def test_all_states_are_those_of_a_naive_enumeration(
    model: PersistenceModel, program: Program
) -> None:
    disk = Disk(SETUP)
    run(program, Process(disk))
    unsynced, naive = Unsynced(model, SETUP.platter), NaiveDisk(model, SETUP)
    for number, operation in enumerate(disk.journal, 1):
        unsynced.advance(operation, number)
        naive.advance(operation, number)
    assume(len(naive.unsynced) <= MOST_UNSYNCED)
    assert _trees(unsynced) == naive.trees()


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@given(program=PROGRAMS)
@example(program=[("append", "f", "B1"), ("truncate", "f", 1), ("write", "f", "C3", 0)])
@example(program=[("append", "f", "B1"), ("write", "f", "C3", 4095), ("fdatasync", "f")])
@example(program=[("append", "f", "B1"), ("fsync", "d/f"), ("append", "d/f", "C2"), ("fsync", "")])
@example(program=[("truncate", "f", 1), ("fsync", "f"), ("truncate", "f", 9)])
def test_reading_the_unsynced_pieces_changes_nothing(
    model: PersistenceModel, program: Program
) -> None:
    disk = Disk(SETUP)
    run(program, Process(disk))
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
            said.add(history.entries_by(number, returned=False))
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
            before = deepcopy(naive) if crashed is killed else NaiveDisk(naive.model, crashed)
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


# A kill may interrupt a write between two pages, which the naive enumeration leaves out.
def _is_whole(call: tuple[object, ...]) -> bool:
    return call[0] != "write" or call[3] != 4095 or call[2] == "A1"


_WHOLE = CALLS.filter(_is_whole)
_EXPLORED = st.lists(_WHOLE | _ack, min_size=1, max_size=5)
_SHORT = st.lists(_WHOLE, min_size=1, max_size=3)
_RECOVERIES = st.lists(_WHOLE, min_size=1, max_size=2)


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@given(program=_EXPLORED)
# On btrfs, fsync of g makes its name durable, and not the earlier removal of f.
@example(program=[("unlink", "f"), ("write", "g", "A1", 0), ("fsync", "g")])
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
def test_explore_checks_every_crash_inside_a_recovery(
    model: PersistenceModel, program: Program, recovery: Program
) -> None:
    assume(_small(model, [*program, *recovery]))
    assert _explored(model, program, recovery, 1) == _brute_force(model, program, recovery, 1)
