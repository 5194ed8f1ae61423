"""The numbers of distinct outcomes of a power cut at any point, as published by Ferrite.

[Ferrite] Bornholt et al., ASPLOS'16, table 2 and section 5. Where our number differs, the
test gives the reason.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.crash.persistence import (
    EXT4,
    EXT4_ORDERED,
    MODELS,
    SCC,
    XFS,
    DataBeforeSize,
    RenameWaits,
)
from tests.litmus.body import Calls, outcomes

# Ferrite measured kernels before 5.6: a size waited for the data of new blocks, and a page was
# written as a whole.
ORDERED_BLOCKS = replace(
    EXT4_ORDERED, unit_bytes=BLOCK_BYTES, data_before_size=DataBeforeSize.NEW_BLOCKS
)


def _old(disk: Calls) -> None:
    disk.write("f", "A2")


def _nothing(_: Calls) -> None:
    pass


def _replace(disk: Calls) -> None:
    disk.write("t", "B2")
    disk.rename("t", "f")


def _replace_fsync(disk: Calls) -> None:
    disk.write("t", "B2")
    disk.fsync("t")
    disk.rename("t", "f")


def _two_appends(disk: Calls) -> None:
    disk.create("f", "g")
    disk.append("f", "B2")
    disk.append("g", "B1")
    disk.fsync("g")


def _two_appends_fsync(disk: Calls) -> None:
    disk.create("f", "g")
    disk.append("f", "B2")
    disk.fsync("f")
    disk.append("g", "B1")
    disk.fsync("g")


def _a2509(disk: Calls) -> None:
    disk.write("f", "A2509")


def _prefix_append(disk: Calls) -> None:
    disk.append("f", "C13")
    disk.append("f", "B2500")


def test_create_rename_leaves_four_outcomes_in_sequence() -> None:
    assert len(outcomes(SCC, _old, _replace, anywhere=True)) == 4
    assert len(outcomes(SCC, _old, _replace_fsync, anywhere=True)) == 4


def test_create_rename_on_ext4_has_a_fifth_outcome_which_fsync_removes() -> None:
    without = outcomes(ORDERED_BLOCKS, _old, _replace, anywhere=True)
    with_fsync = outcomes(ORDERED_BLOCKS, _old, _replace_fsync, anywhere=True)
    assert (len(without), len(with_fsync)) == (5, 4)
    assert without - with_fsync == {"f=empty t=-"}


def test_since_linux_5_6_new_blocks_may_read_as_zeros() -> None:
    without = outcomes(EXT4_ORDERED, _old, _replace, anywhere=True)
    added = without - outcomes(ORDERED_BLOCKS, _old, _replace, anywhere=True)
    assert added == {"f=02 t=-", "f=A2 t=02"}


def test_a_rename_that_waits_for_the_size_removes_the_fifth_outcome_too() -> None:
    model = replace(ORDERED_BLOCKS, rename_waits=RenameWaits.SIZE)
    assert len(outcomes(model, _old, _replace, anywhere=True)) == 4
    assert "f=empty t=-" not in outcomes(EXT4, _old, _replace, anywhere=True)


def test_two_appends_leave_five_outcomes_in_sequence() -> None:
    assert len(outcomes(SCC, _nothing, _two_appends, anywhere=True)) == 5
    assert len(outcomes(SCC, _nothing, _two_appends_fsync, anywhere=True)) == 5


def test_prefix_append_leaves_three_outcomes_in_sequence() -> None:
    assert outcomes(SCC, _a2509, _prefix_append, anywhere=True) == {
        "f=A2509", "f=A2509,C13", "f=A2509,C13,B2500",
    }  # fmt: skip


def test_prefix_append_without_delayed_allocation_leaves_four_and_two_more() -> None:
    """Ferrite counts 4 for ``ext4-nodelalloc``, where data precedes the size, page by page.

    The two appends cross one page boundary: nothing, the first, the page filled, both. The
    other two have the second page without the first (docs/disk.md, class P1).
    """
    found = outcomes(replace(XFS, unit_bytes=BLOCK_BYTES), _a2509, _prefix_append)
    assert found - {"f=A2509,01587,B926", "f=A2509,C13,01574,B926"} == {
        "f=A2509", "f=A2509,C13", "f=A2509,C13,B1574", "f=A2509,C13,B2500",
    }  # fmt: skip
    assert len(found) == 6


def test_prefix_append_on_ext4_leaves_the_seven_of_ferrite_and_two_more() -> None:
    """The tail block is written whole: unchanged, with C, or with C and B. Sizes keep their order.

    That makes 1 + 2 + 3 + 3 outcomes for the sizes 2509, 2522, 4096 and 5022. Ferrite counts
    7, because its new block waits for every earlier write of the file. Kernels since 5.3 flush
    only the allocated range (``ext4_jbd2_inode_add_write``), so the tail below it may be
    missing. The model gives the weaker guarantee.
    """
    found = outcomes(ORDERED_BLOCKS, _a2509, _prefix_append, anywhere=True)
    assert "f=A2509,013" in found
    assert len(found) == 9
    assert len(found - {"f=A2509,01587,B926", "f=A2509,C13,01574,B926"}) == 7


@pytest.mark.parametrize("model", ["scc", "ext4-journal"])
def test_replace_via_rename_is_safe(model: str) -> None:
    found = outcomes(MODELS[model], _old, _replace, anywhere=True)
    assert {outcome.split()[0] for outcome in found} == {"f=A2", "f=B2"}


@pytest.mark.parametrize("model", ["ext4-ordered", "ext4-writeback", "xfs", "btrfs", "posix"])
def test_replace_via_rename_is_violated(model: str) -> None:
    """Ferrite calls it safe on btrfs; Linux 6.18 is not (docs/disk.md, class B1)."""
    assert "f=empty t=-" in outcomes(MODELS[model], _old, _replace, anywhere=True)


@pytest.mark.parametrize(
    "model", ["ext4", "ext4-ordered", "ext4-writeback", "xfs", "btrfs", "posix"]
)
def test_create_via_rename_is_violated_on_every_real_file_system(model: str) -> None:
    assert "f=empty t=-" in outcomes(MODELS[model], _nothing, _replace, anywhere=True)
