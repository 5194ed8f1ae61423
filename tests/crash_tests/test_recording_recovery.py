"""The recovery of a recording with work to do, crashed at every operation, and again.

The root has executions in all states (``recorded_root.py``): written to a pack, in a snapshot,
only in the log, streamed, invalidated, not replayable, unfinished. Each recovery must
lead to the same records.
"""

from __future__ import annotations

import pytest

from oracles.recording.pack_reader import members_of
from oracles.recording.wal_reader import PART, log_record_of, read_segment
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.verdicts import Exploration
from sim.disk.crash.persistence import MODELS
from tests.crash_tests.recorded_root import RecordedRoot, recorded_root
from tests.crash_tests.recording_recovery import Bad, explored, with_file

LAZY = Limits(nested=0, engine=Engine.LAZY)
NESTED = Limits(nested=1, engine=Engine.LAZY)
MANY = Limits(states_per_point=1_024, samples=128, engine=Engine.BRUTE)
SAMPLED = Limits(states_per_point=8, samples=2, engine=Engine.BRUTE)

every_model = pytest.mark.parametrize("model", MODELS)


def require_safe(found: Exploration) -> None:
    assert found.safe, found.failures[0].violation
    assert found.how.startswith("exhaustive")


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes((content[place] ^ 1,)) + content[place + 1 :]


def damaged(part: str) -> tuple[RecordedRoot, Bad]:
    """Return a durable root with damage to one of its files."""
    root = recorded_root().durable()
    files = root.image.files()
    if part == "checkpoint":
        path, place = "checkpoint", 10
        bad = Bad(path, flipped(files[f"/{path}"], place))
    elif part == "snapshot":
        path, lost = "snapshots/00000001.pack", root.ids["under way"]
        content = files[f"/{path}"]
        member = members_of(content)[lost]
        place = content.index(member) + 30
        bad = Bad(path, flipped(member, 30), (lost,))
    elif part == "missing":
        path = "snapshots/00000001.pack"
        bad = Bad(path, None, members_of(files[f"/{path}"]))
        return with_file(root, path, lambda _: None), bad
    else:
        path = "wal/00000002.wal"
        segment = read_segment(files[f"/{path}"])
        assert segment is not None
        entry = segment.entries[2]
        place = entry.end - 2
        content = flipped(files[f"/{path}"], place)
        bad = Bad(path, content[entry.start : entry.end], (log_record_of(entry).execution_id,))
    return with_file(root, path, lambda content: flipped(content, place)), bad


def test_the_root_has_everything_that_a_recovery_can_meet() -> None:
    root = recorded_root()
    names = {path for path, _ in root.image.tree()}
    withdrawn = root.ids["withdrawn"]
    assert names >= {
        "/checkpoint", "/records/00000001.pack", "/snapshots/00000001.pack",
        f"/records/{withdrawn}.json", "/wal/00000002.wal", "/wal/00000003.wal",
    }  # fmt: skip
    segments = [
        read_segment(content)
        for path, content in root.image.files().items()
        if path.endswith(".wal")
    ]
    parts = [each.entry_type for found in segments if found is not None for each in found.entries]
    assert parts.count(PART) > 1
    assert root.image.unsynced
    assert not root.shadow().settled


@pytest.mark.parametrize(
    "limits", [LAZY, pytest.param(NESTED, marks=pytest.mark.stress)], ids=["once", "nested"]
)
def test_every_crash_of_a_recovery_leads_to_the_same_records(limits: Limits) -> None:
    require_safe(explored(recorded_root().durable(), "posix", limits))


def test_a_recovery_of_entries_without_a_barrier_keeps_what_it_has_read() -> None:
    found = explored(recorded_root(), "posix", SAMPLED)
    assert found.safe, found.failures[0].violation


@pytest.mark.parametrize("part", ["checkpoint", "snapshot", "missing", "segment"])
def test_every_crash_while_damage_is_put_aside_leaves_it_reported(part: str) -> None:
    root, bad = damaged(part)
    require_safe(explored(root, "posix", LAZY, bad))


@pytest.mark.stress
@every_model
def test_every_crash_of_two_recoveries_under_every_model(model: str) -> None:
    require_safe(explored(recorded_root().durable(), model, NESTED))


@pytest.mark.stress
@pytest.mark.parametrize("model", [model for model in MODELS if model != "posix"])
def test_a_recovery_without_barriers_under_every_model_of_a_file_system(model: str) -> None:
    require_safe(explored(recorded_root(), model, LAZY))


@pytest.mark.stress
def test_a_recovery_without_barriers_under_the_weakest_model() -> None:
    # All crashes take more than two minutes.
    found = explored(recorded_root(), "posix", MANY)
    assert found.safe, found.failures[0].violation
