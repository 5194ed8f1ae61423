"""A stronger model allows nothing that a weaker one forbids, whatever a program does.

Random short programs on two files in two directories; after every call, every state that
is legal under the stronger model must be legal under the weaker one.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.disk.cache.operation import Operation
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import STRONGER_THAN, PersistenceModel
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk
from tests.litmus.body import Calls, prepared

FILES = ("f", "g", "d/f")
DIRECTORIES = ("", "d", "e")
NAMES = (*FILES, "e/g")

_write = st.tuples(
    st.just("write"),
    st.sampled_from(FILES),
    st.sampled_from(("A1", "B2", "C3")),
    st.sampled_from((0, 1, 511, 4095)),
)
_append = st.tuples(st.just("append"), st.sampled_from(FILES), st.sampled_from(("B1", "C2")))
_truncate = st.tuples(st.just("truncate"), st.sampled_from(FILES), st.sampled_from((0, 1, 4096)))
_rename = st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES))
_link = st.tuples(st.just("link"), st.sampled_from(NAMES), st.sampled_from(NAMES))
_unlink = st.tuples(st.just("unlink"), st.sampled_from(NAMES))
_mkdir = st.tuples(st.just("mkdir"), st.just("e"))
_fsync = st.tuples(st.just("fsync"), st.sampled_from((*FILES, *DIRECTORIES)))
_fdatasync = st.tuples(st.just("fdatasync"), st.sampled_from(FILES))

PROGRAMS = st.lists(
    _write | _append | _truncate | _rename | _link | _unlink | _mkdir | _fsync | _fdatasync,
    max_size=7,
)


def _setup(disk: Calls) -> None:
    disk.mkdir("d")
    disk.write("f", "A3")
    disk.write("d/f", "A2")


SETUP = prepared(_setup)


def _journal(program: list[tuple[str, ...]]) -> list[Operation]:
    """Run a program; a call that the file system refuses must leave no operation."""
    disk = Disk(SETUP)
    calls = Calls(Process(disk))
    for name, *arguments in program:
        before = disk.operations
        try:
            getattr(calls, name)(*arguments)
        except OSError:
            assert disk.operations == before, (name, arguments)
    return list(disk.journal)


def _states(model: PersistenceModel, journal: list[Operation]) -> list[set[int]]:
    """Return the keys of all states, after each operation; every key is seen by its digest."""
    unsynced = Unsynced(model, SETUP.platter)
    found = []
    for number, operation in enumerate(journal, 1):
        unsynced.advance(operation, number)
        found.append({state.key for state in StateSpace(unsynced).all()})
    return found


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    STRONGER_THAN,
    ids=[f"{stronger.name} < {weaker.name}" for stronger, weaker in STRONGER_THAN],
)
@given(program=PROGRAMS)
def test_every_state_of_the_stronger_model_is_one_of_the_weaker(
    stronger: PersistenceModel, weaker: PersistenceModel, program: list[tuple[str, ...]]
) -> None:
    journal = _journal(program)
    for number, (few, many) in enumerate(
        zip(_states(stronger, journal), _states(weaker, journal), strict=True), 1
    ):
        assert few <= many, f"after {journal[number - 1]}"


@given(program=PROGRAMS)
def test_states_have_equal_keys_exactly_if_they_look_equal(program: list[tuple[str, ...]]) -> None:
    """Looks are the digest of the whole tree, and inode numbers, which keys tell apart."""
    unsynced = Unsynced(STRONGER_THAN[-1][1], SETUP.platter)
    for number, operation in enumerate(_journal(program), 1):
        unsynced.advance(operation, number)
    looks: dict[int, tuple[str, tuple[int, ...]]] = {}
    for state, _ in zip(StateSpace(unsynced).all(), range(300), strict=False):
        image = Image.of_platter(state.inodes, 99)
        numbers = tuple(inode.number for _, inode in image.tree())
        look = (image.digest(), numbers)
        assert looks.setdefault(state.key, look) == look
    assert len(set(looks.values())) == len(looks)
