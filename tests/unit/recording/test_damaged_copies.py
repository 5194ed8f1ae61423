"""Damage to a copy of a record in an older pack: it stays, and concerns only that pack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from crash_tests.targets.recording_reads import (
    WHOLE_PACK,
    DamagedCopy,
    check_record_files,
    read_store,
)
from oracles.recording.pack_reader import with_member
from oracles.recording.violations import BrokenRecord
from system.recording.stores.file_store import FileExecutionStore
from system.recording.stores.pack import pack_pieces
from tests.unit.recording.recorded_log import Machine
from tests.unit.recording.test_wal_cases import executed

OLD, NEW = "00000001.pack", "00000002.pack"
EXECUTION: Final = executed(["a", "intent", "failed"])
ID: Final = EXECUTION.execution_id
PACK: Final = b"".join(pack_pieces([EXECUTION.view()]))
DAMAGED: Final = with_member(PACK, ID, b"damaged")


def check(
    packs: Mapping[str, bytes],
    known: set[DamagedCopy],
    *,
    excused: bool = False,
    silent: bool = False,
) -> frozenset[DamagedCopy]:
    host = Machine({f"records/{name}": content for name, content in packs.items()}).host
    observed = read_store(FileExecutionStore(host))
    assert observed[ID] is not None
    return check_record_files(
        host.files, observed, (ID,) if excused else (), known, is_silent=silent
    )


def test_a_damaged_copy_is_known_from_the_recovery_that_excuses_it() -> None:
    packs, copy = {OLD: DAMAGED, NEW: PACK}, DamagedCopy(OLD, ID)
    assert check(packs, set(), excused=True) == {copy}
    assert check(packs, {copy}) == {copy}
    assert check({OLD: PACK, NEW: PACK}, {copy}) == set()


def test_a_pack_without_a_table_is_known_after_silent_damage() -> None:
    packs, copy = {OLD: PACK[:-1], NEW: PACK}, DamagedCopy(OLD, WHOLE_PACK)
    assert check(packs, set(), silent=True) == {copy}
    assert check(packs, {copy}) == {copy}


@pytest.mark.parametrize(
    "known",
    [set(), {DamagedCopy(NEW, ID)}, {DamagedCopy(OLD, "exec-b")}],
    ids=["none", "pack", "id"],
)
@pytest.mark.parametrize("content", [DAMAGED, PACK[:-1]], ids=["member", "pack"])
def test_any_other_damage_is_a_violation(content: bytes, known: set[DamagedCopy]) -> None:
    with pytest.raises(BrokenRecord):
        check({OLD: content, NEW: PACK}, known)
