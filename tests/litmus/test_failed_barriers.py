"""The disk after failed barriers: the rules of docs/disk.md, and random programs with kills.

The disk and the naive disk must agree on the page cache and on every state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import assume, example, given

from sim.disk.cache.operation import SyncFailure
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, PersistenceModel
from sim.disk.crash.state_space import StateSpace
from sim.disk.disk import Disk
from tests.litmus.body import line_of
from tests.litmus.failing_programs import FAILING_BOOTS
from tests.litmus.naive import NaiveDisk, Tree, tree_of
from tests.litmus.observer import run_program
from tests.litmus.programs import SETUP, Program

MOST_UNSYNCED = 8
EXT4, XFS, EXT4_JOURNAL, BTRFS = (
    SyncFailure.EXT4, SyncFailure.XFS, SyncFailure.EXT4_JOURNAL, SyncFailure.BTRFS,
)  # fmt: skip

_APPENDED: Program = [("append", "f", "B1")]
_BLOCK_APPENDED: Program = [("write", "f", "B1", 4096)]
_CUT_AND_EXTENDED: Program = [("truncate", "f", 1), ("write", "f", "B1", 4096)]
_AGAIN: Program = [("write", "f", "C1", 4096), ("fsync", "f")]

# A program on f, which begins as A3, and what f may be after a power cut under the model ext4.
RULES: Final[tuple[tuple[Program, str], ...]] = (
    # Sizes are still to be written under ext4 and btrfs only.
    ([*_APPENDED, ("failed fsync", "f", EXT4)], "f=A3 | f=A3,01"),
    ([*_APPENDED, ("failed fsync", "f", BTRFS)], "f=A3 | f=A3,01"),
    ([*_APPENDED, ("failed fsync", "f", XFS)], "f=A3"),
    ([*_APPENDED, ("failed fsync", "f", EXT4_JOURNAL)], "f=A3"),
    ([*_APPENDED, ("failed fsync", "f", EXT4), ("fsync", "f")], "f=A3,01"),
    # Lost data that adjoins a write is one write with it.
    ([*_APPENDED, ("failed fsync", "f", XFS), ("append", "f", "C1")],
     "f=A3 | f=A3,02 | f=A3,B1,C1"),
    # Other lost data of the block is a write of its own, which has its size.
    ([("write", "f", "B1", 0), ("failed fsync", "f", XFS), ("write", "f", "C1", 2), ("fsync", "f")],
     "f=B1,A1,C1"),
    ([("write", "f", "B1", 4), ("failed fsync", "f", XFS), ("write", "f", "C1", 0), ("fsync", "f")],
     "f=C1,A2,01,B1"),
    # That of another block stays lost.
    ([*_BLOCK_APPENDED, ("sync",), ("write", "f", "B1", 0), ("failed fsync", "f", XFS), *_AGAIN],
     "f=A3,04093,C1"),
    # A truncation that ends in the block, or sets the same size, writes it; not under btrfs.
    ([("write", "f", "B1", 0), ("failed fsync", "f", XFS), ("truncate", "f", 2), ("fsync", "f")],
     "f=B1,A1"),
    ([("write", "f", "B1", 0), ("failed fsync", "f", BTRFS), ("truncate", "f", 2), ("fsync", "f")],
     "f=A2"),
    ([*_APPENDED, ("failed fsync", "f", XFS), ("truncate", "f", 4), ("fsync", "f")], "f=A3,B1"),
    ([*_APPENDED, ("failed fsync", "f", BTRFS), ("truncate", "f", 4), ("fsync", "f")], "f=A3,01"),
    # Growth of a file that ended in the block writes it.
    ([*_APPENDED, ("failed fsync", "f", XFS), ("truncate", "f", 5), ("fsync", "f")],
     "f=A3,B1,01"),
    ([*_APPENDED, ("failed fsync", "f", XFS), ("allocate", "f", 0, 5), ("fsync", "f")],
     "f=A3,B1,01"),
    ([*_APPENDED, ("failed fsync", "f", XFS), ("allocate", "f", 0, 4), ("fsync", "f")], "f=A3,01"),
    ([*_APPENDED, ("failed fsync", "f", BTRFS), ("truncate", "f", 5), ("fsync", "f")],
     "f=A3,B1,01"),
    ([*_APPENDED, ("failed fsync", "f", XFS), *_AGAIN], "f=A3,B1,04092,C1"),
    # If data is lost twice, the policy of the last failure counts.
    ([("write", "f", "B1", 0), ("failed fsync", "f", BTRFS), ("write", "f", "B1", 0),
      ("failed fsync", "f", XFS), ("truncate", "f", 2), ("fsync", "f")], "f=B1,A1"),
    # Neither truncation nor growth writes the lost data of a new block, but under btrfs.
    ([*_BLOCK_APPENDED, ("failed fsync", "f", XFS), ("truncate", "f", 4099), ("fsync", "f")],
     "f=A3,04096"),
    ([*_BLOCK_APPENDED, ("failed fsync", "f", XFS), ("truncate", "f", 4097), ("fsync", "f")],
     "f=A3,04094"),
    ([*_BLOCK_APPENDED, ("failed fsync", "f", BTRFS), ("truncate", "f", 4099), ("fsync", "f")],
     "f=A3,04093,B1,02"),
    # A truncation drops what is behind the new end.
    ([("write", "f", "B3", 0), ("failed fsync", "f", XFS), ("truncate", "f", 1),
      ("truncate", "f", 3), ("write", "f", "C1", 0), ("fsync", "f")], "f=C1,02"),
    # It drops unsynced data behind the new end before the barrier fails.
    ([*_APPENDED, ("truncate", "f", 1), ("failed fsync", "f", XFS), ("truncate", "f", 5),
      ("write", "f", "C1", 0), ("fsync", "f")], "f=C1,04"),
    # Zeros of a truncation are lost with their page, up to the end of the file.
    ([("truncate", "f", 1), ("append", "f", "B1"), ("failed fsync", "f", EXT4), ("fsync", "f")],
     "f=A2"),
    ([("truncate", "f", 1), ("truncate", "f", 3), ("failed fsync", "f", EXT4), ("fsync", "f")],
     "f=A3"),
    ([*_CUT_AND_EXTENDED, ("failed fsync", "f", BTRFS), *_AGAIN], "f=A3,04093,C1"),
    ([*_CUT_AND_EXTENDED, ("failed fsync", "f", XFS), *_AGAIN], "f=A3,04093,C1"),
    # A change of the block writes them again.
    ([*_CUT_AND_EXTENDED, ("failed fsync", "f", XFS), ("write", "f", "C1", 0), *_AGAIN],
     "f=C1,04095,C1"),
    # xfs has written them if a truncation has extended the file, btrfs too if an allocation has.
    ([("truncate", "f", 1), ("truncate", "f", 3), ("failed fsync", "f", XFS), ("fsync", "f")],
     "f=A1,02"),
    *(
        ([("truncate", "f", 1), ("allocate", "f", 0, 3), ("failed fsync", "f", policy),
          ("fsync", "f")], outcome)
        for policy, outcome in ((XFS, "f=A1,02"), (BTRFS, "f=A1,02"), (EXT4, "f=A3"))
    ),
    # Those in other pages stay unsynced, as do those in a block of which nothing is durable.
    ([("truncate", "f", 1), ("truncate", "f", 3),
      ("failed write_synced", "f", "C1", 4096, EXT4), ("fsync", "f")], "f=A1,04096"),
    ([("truncate", "f", 8192), ("fsync", "f"), ("truncate", "f", 4097), ("truncate", "f", 4099),
      ("failed fsync", "f", EXT4), ("write", "f", "C1", 4097), ("fsync", "f")],
     "f=A3,04094,C1,01"),
    # An unwritten block has no data until a truncation frees it, or its pages are dropped.
    ([*_BLOCK_APPENDED, ("failed fsync", "f", EXT4), *_AGAIN], "f=A3,04094"),
    ([*_BLOCK_APPENDED, ("failed fsync", "f", EXT4), ("truncate", "f", 4096), *_AGAIN],
     "f=A3,04093,C1"),
    ([*_BLOCK_APPENDED, ("failed fsync", "f", EXT4), ("truncate", "f", 4097), *_AGAIN],
     "f=A3,04094"),
    ([*_BLOCK_APPENDED, ("failed fsync", "f", EXT4), ("drop_pages", "f", 0, 0), *_AGAIN],
     "f=A3,04093,C1"),
    ([*_BLOCK_APPENDED, ("failed fsync", "f", EXT4), ("drop_pages", "f", 0, 4096), *_AGAIN],
     "f=A3,04094"),
    # Only ext4 has unwritten blocks.
    ([*_BLOCK_APPENDED, ("failed fsync", "f", XFS), *_AGAIN], "f=A3,04093,C1"),
    ([*_BLOCK_APPENDED, ("failed fsync", "f", BTRFS), *_AGAIN], "f=A3,04093,C1"),
    # A block that an unsynced truncation has freed is new.
    ([("truncate", "f", 0), ("write", "f", "B2", 0), ("failed fsync", "f", EXT4),
      ("write", "f", "C1", 2), ("fsync", "f")], "f=03"),
    ([("truncate", "f", 0), ("write", "f", "B2", 0), ("failed fsync", "f", XFS),
      ("truncate", "f", 4), ("fsync", "f")], "f=04"),
    # Dropped pages show what is on the disk; those in which something is unsynced stay.
    ([("write", "f", "B1", 0), ("failed fsync", "f", XFS), ("drop_pages", "f", 0, 0),
      ("write", "f", "C1", 2), ("fsync", "f")], "f=A2,C1"),
    ([("write", "f", "B1", 0), ("failed fsync", "f", XFS), ("write", "f", "C1", 2),
      ("drop_pages", "f", 0, 0), ("fsync", "f")], "f=B1,A1,C1"),
    ([("write", "f", "B1", 0), ("failed fsync", "f", BTRFS), ("truncate", "f", 2),
      ("drop_pages", "f", 0, 0), ("write", "f", "C1", 1), ("fsync", "f")], "f=A1,C1"),
    ([("truncate", "f", 1), ("append", "f", "B1"), ("failed fsync", "f", XFS),
      ("drop_pages", "f", 0, 0), ("append", "f", "C1"), ("fsync", "f")], "f=A2,C1"),
    # Those of an unwritten block stay if a truncation ends in it, or the file has grown in it.
    ([*_BLOCK_APPENDED, ("failed fsync", "f", EXT4), ("truncate", "f", 4097),
      ("drop_pages", "f", 0, 0), *_AGAIN], "f=A3,04094"),
    ([*_BLOCK_APPENDED, ("failed fsync", "f", EXT4), ("truncate", "f", 4098),
      ("drop_pages", "f", 0, 0), *_AGAIN], "f=A3,04095"),
    ([*_BLOCK_APPENDED, ("failed fsync", "f", EXT4), ("truncate", "f", 4097), ("fsync", "f"),
      ("drop_pages", "f", 0, 0), *_AGAIN], "f=A3,04093,C1"),
    # A failed sync after a synchronous write concerns its own pages.
    ([("write", "f", "B1", 0), ("failed write_synced", "f", "C1", 4096, XFS), ("fsync", "f")],
     "f=B1,A2,04093"),
)  # fmt: skip


def _with_examples(test: Callable[..., None]) -> Callable[..., None]:
    for program, _ in reversed(RULES):
        test = example(boots=(program,))(test)
    return test


@pytest.mark.parametrize(("program", "outcomes"), RULES)
def test_a_failed_barrier_leaves_what_the_rules_say(program: Program, outcomes: str) -> None:
    disk, naive = Disk(SETUP, MODELS["ext4"]), NaiveDisk(MODELS["ext4"], SETUP)
    run_program(program, Process(disk))
    for number, operation in enumerate(disk.journal, 1):
        naive.advance(operation, number)
    expected = set(outcomes.split(" | "))
    assert {_line(tree) for tree in naive.trees()} == expected
    assert {_line(tree) for tree in _trees(disk)} == expected


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@given(boots=FAILING_BOOTS)
@_with_examples
# The barrier has forgotten the size behind the block that is written and synced then.
@example(
    boots=([
        ("write", "f", "B2", 4095), ("failed fsync", "f", XFS), ("write", "f", "A1", 1),
        ("fsync", "f"),
    ],)
)  # fmt: skip
# The same, while attributes of another file are unsynced.
@example(
    boots=([
        ("chmod", "d/f", 0o600), ("write", "f", "B2", 4095), ("failed fsync", "f", XFS),
        ("write", "f", "A1", 1), ("fsync", "f"),
    ],)
)  # fmt: skip
# A truncation that waits for a commit does so no more.
@example(
    boots=([
        ("fsync", "f"), ("unlink", "d/f"), ("truncate", "f", 0), ("failed fsync", "f", XFS),
    ],)
)  # fmt: skip
# A barrier on another page has made a truncation durable, but not its zeros over lost data.
@example(
    boots=([
        ("append", "f", "B2"), ("truncate", "f", 1), ("write_synced", "f", "C1", 4096),
        ("failed fsync", "f", XFS), ("write", "f", "C1", 0), ("fsync", "f"),
    ],)
)  # fmt: skip
# A write within the file, to an unwritten block, has no pieces, so a barrier on it covers none.
@example(
    boots=([
        ("append", "f", "A1"), ("failed write_synced", "f", "A1", 8191, EXT4),
        ("append", "f", "A1"), ("write_synced", "f", "A1", 4096), ("failed fsync", "f", EXT4),
    ],)
)  # fmt: skip
# The zeros of a truncation that ends in a hole allocate no block.
@example(
    boots=([
        ("truncate", "f", 4100), ("truncate", "f", 4097), ("failed fsync", "f", EXT4),
        ("fsync", "f"), ("failed write_synced", "f", "C1", 4099, EXT4), ("append", "f", "B2"),
    ],)
)  # fmt: skip
# A block of which data is durable behind the end of the file is not unwritten.
@example(
    boots=([
        ("truncate", "f", 0), ("failed write_synced", "f", "A1", 4096, EXT4),
        ("write_synced", "f", "A1", 0), ("failed write_synced", "f", "B1", 0, EXT4),
        ("write", "f", "C1", 1),
    ],)
)  # fmt: skip
# The end of a write is lost, and not its size, which is in other pages than its beginning.
@example(
    boots=([
        ("truncate", "f", 4097), ("write", "f", "C3", 4095),
        ("failed write_synced", "f", "B1", 4099, EXT4), ("write_synced", "f", "A1", 0),
    ],)
)  # fmt: skip
# A truncation whose first zeros are lost leaves its old tail behind its own size.
@example(
    boots=([
        ("truncate", "f", 1), ("append", "f", "B1"), ("failed fsync", "f", EXT4), ("fsync", "f"),
        ("truncate", "f", 3),
    ],)
)  # fmt: skip
# A write that ends in an unwritten block does not make the file grow, whose size is unsynced.
@example(
    boots=([
        ("write", "f", "A2", 8191), ("failed write_synced", "f", "B2", 8192, EXT4),
        ("write", "f", "C2", 8191), ("failed fsync", "f", EXT4), ("write_synced", "f", "A1", 4096),
    ],)
)  # fmt: skip
# Lost data behind a write comes after the blocks before its own.
@example(
    boots=([
        ("write", "f", "B1", 4100), ("failed fsync", "f", XFS), ("write", "f", "C2", 4095),
    ],)
)  # fmt: skip
# A kill keeps lost data and unwritten blocks.
@example(boots=([*_APPENDED, ("failed fsync", "f", XFS)], [("append", "f", "C1")]))
@example(boots=([*_BLOCK_APPENDED, ("failed fsync", "f", EXT4)], _AGAIN))
# The data and the size of a write in two blocks, of which one was lost.
@example(
    boots=([
        ("write", "f", "A1", 4095), ("sync",), ("write", "f", "B2", 4095),
        ("failed write_synced", "f", "A1", 4096, EXT4),
    ],)
)  # fmt: skip
# The same, and the size of the block behind it is larger than the end of the data.
@example(
    boots=([
        ("failed write_synced", "f", "A1", 4096, EXT4), ("write", "f", "C3", 4095),
    ],)
)  # fmt: skip
def test_page_cache_and_states_are_those_of_a_naive_disk(
    model: PersistenceModel, boots: tuple[Program, ...]
) -> None:
    """A kill ends every boot but the last."""
    image, naive = SETUP, NaiveDisk(model, SETUP)
    for boot, program in enumerate(boots):
        disk = Disk(image, model)
        run_program(program, Process(disk))
        for number, operation in enumerate(disk.journal, 1 + 100 * boot):
            naive.advance(operation, number)
        image = disk.snapshot()
        assert tree_of(image) == naive.cached()
        assume(len(naive.unsynced) <= MOST_UNSYNCED)
        assert _trees(disk) == naive.trees()


def _trees(disk: Disk) -> set[Tree]:
    states = StateSpace(disk.unsynced()).all()
    return {tree_of(Image.of_platter(state.inodes, disk.next_inode)) for state in states}


def _line(tree: Tree) -> str:
    return line_of(["/f"], {path: content for path, _, _, content in tree})
