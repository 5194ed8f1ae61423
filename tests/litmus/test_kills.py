"""A kill changes nothing for a power cut: the kernel goes on with what the process has left.

After kills and recoveries, a power cut leaves what it leaves after one process that did it all.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sim.disk.cache.operation import Operation
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS, PersistenceModel
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk
from tests.litmus.programs import CALLS, FILES, SETUP, Program, run

_file = st.sampled_from(("f", "f", "g"))
# Calls on which the log of btrfs depends, mostly on two files.
_logging: st.SearchStrategy[tuple[Any, ...]] = (
    st.tuples(st.just("write"), _file, st.just("B1"), st.just(0))
    | st.tuples(st.just("fsync"), _file)
    | st.tuples(st.just("fsync"), st.sampled_from((*FILES, "")))
    | st.tuples(st.sampled_from(("rename", "link")), _file, st.sampled_from(("g", "h", "d/f")))
    | st.tuples(st.just("truncate"), _file, st.sampled_from((0, 1)))
    | st.tuples(st.just("unlink"), st.sampled_from(FILES))
)
_PROGRAMS = st.lists(CALLS, max_size=5) | st.lists(_logging, max_size=5)


def _pieces(unsynced: Unsynced) -> tuple[object, ...]:
    """Return the platter, and the unsynced pieces with their predecessors."""
    ordering = unsynced.ordering
    return unsynced.key, [str(each) for each in ordering.micros], ordering.needs, ordering.order


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@given(boots=st.lists(_PROGRAMS, min_size=2, max_size=3))
# On btrfs, the recovery does not overtake a rename that was logged before the kill.
@example(
    boots=[
        [("write", "g", "B1", 0), ("fsync", "g"), ("rename", "g", "f")],
        [("unlink", "d/f")],
    ]
)
# Nor one of its own, of a file that was logged before, whatever the number of kills.
@example(
    boots=[
        [("write", "g", "B1", 0)],
        [("fsync", "g")],
        [("rename", "g", "f"), ("unlink", "d/f")],
    ]
)
# A barrier before the kill ends the time of a logged rename.
@example(
    boots=[
        [
            ("write", "g", "B1", 0), ("fsync", "g"), ("rename", "g", "h"), ("unlink", "d/f"),
            ("fsync", "f"),
        ],
        [("unlink", "f")],
    ]
)  # fmt: skip
# A truncation of a file that was synced before the kill waits for a commit.
@example(boots=[[("append", "f", "B1"), ("fsync", "f")], [("truncate", "f", 0)]])
# A file that was changed before the kill is in the log after a barrier of the recovery.
@example(
    boots=[
        [("chmod", "f", 0o600), ("append", "f", "B1")],
        [("fsync", "f"), ("rename", "f", "g"), ("unlink", "d/f")],
    ]
)
# It is not if a barrier on another file came between, in the recovery or before the kill.
@example(
    boots=[
        [("chmod", "f", 0o600), ("append", "f", "B1")],
        [("fsync", "d/f"), ("fsync", "f"), ("rename", "f", "g"), ("unlink", "d/f")],
    ]
)
@example(
    boots=[
        [("append", "f", "B1"), ("fsync", "d/f")],
        [("fsync", "f"), ("rename", "f", "g"), ("unlink", "d/f")],
    ]
)
# The rename of a file that was synced before the kill takes no name away by itself.
@example(
    boots=[
        [("append", "f", "B1"), ("fsync", "f"), ("link", "d/f", "g")],
        [("rename", "f", "d/f")],
    ]
)
def test_a_power_cut_after_kills_is_one_without_them(
    model: PersistenceModel, boots: list[Program]
) -> None:
    image, operations = SETUP, list[Operation]()
    for program in boots:
        disk = Disk(image, model)
        run(program, Process(disk))
        image = disk.snapshot()
        operations += disk.journal
    joined = Unsynced(model, SETUP.platter)
    for number, operation in enumerate(operations, 1):
        joined.advance(operation, number)
    assert _pieces(Disk(image, model).unsynced()) == _pieces(joined)
