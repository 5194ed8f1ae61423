"""The importer of legacy triggers: by the table of producers, and once."""

from __future__ import annotations

from typing import Any

import pytest

from system.durable.errors import BadTrigger
from system.durable.legacy import Imported, checked_legacy, import_legacy
from system.durable.state import Transaction
from system.durable.trigger import Trigger
from system.errors import NotPlainJson
from tests.unit.durable.durable_bench import Bench


def legacy(**changed: Any) -> dict[str, Any]:
    return {
        "fire_at": 1_600_000_000.5, "priority": 7, "next_action_description": "go on",
        "payload": {"type": "scheduled", "a": 1}, "session_id": "s", "waiting_for_reply": True,
        **changed,
    }  # fmt: skip


def imported(bench: Bench, *triggers: Any) -> Imported:
    checked = checked_legacy(triggers)
    return bench.do(import_legacy, bench.stores.emitter, bench.sessions, checked)


def row(bench: Bench, result: Imported) -> Trigger:
    return bench.row(result.created[0])


def test_a_legacy_trigger_keeps_its_members(bench: Bench) -> None:
    found = row(bench, imported(bench, legacy()))
    assert (found.source, found.fire_at, found.priority) == ("SCHEDULED", 1_600_000_000.5, 7)
    assert (found.description, found.session_id) == ("go on", "s")
    assert found.payload == {"type": "scheduled", "a": 1, "waiting_for_reply": True}
    assert (found.dedup_key or "").startswith("legacy:")
    bench.claim(found.id)


@pytest.mark.parametrize(
    ("legacy_type", "source"),
    [
        ("scheduled", "SCHEDULED"), ("memory_processing", "MEMORY"), (None, "MESSAGE"),
        ("proactive_heartbeat", "PROACTIVE"), ("proactive_planner", "PROACTIVE"),
        ("restart_notice", "SYSTEM"), ("living_ui_crash", "LIVING_UI"), ("other", "MESSAGE"),
        (5, "MESSAGE"),
    ],
)  # fmt: skip
def test_the_type_in_the_payload_says_the_source(
    bench: Bench, legacy_type: object, source: str
) -> None:
    assert row(bench, imported(bench, legacy(payload={"type": legacy_type}))).source == source


def test_a_second_import_changes_nothing(bench: Bench) -> None:
    first = imported(bench, legacy(), legacy(priority=8))
    assert (len(first.created), first.known) == (2, 0)
    bench.do(bench.stores.triggers.ack, bench.claim(first.created[0]))
    bench.kill()
    assert imported(bench, legacy(), legacy(priority=8)) == Imported((), 2, ())


def test_a_message_without_a_session_is_routed_and_others_are_refused(bench: Bench) -> None:
    result = imported(
        bench, legacy(payload="hi", session_id=None), legacy(session_id=None),
        legacy(session_id="gone"),
    )  # fmt: skip
    assert row(bench, result).payload == {"content": "hi", "waiting_for_reply": True}
    assert [position for position, _ in result.refused] == [1, 2]
    assert "are not routed" in result.refused[0][1]


@pytest.mark.parametrize(
    ("trigger", "error", "message"),
    [
        ([], BadTrigger, "position=1 is not an object"),
        (legacy(fire_at="soon"), BadTrigger, "fire_at of the legacy trigger at position=1"),
        (legacy(fire_at=float("nan")), BadTrigger, "not a finite number"),
        (legacy(priority="high"), BadTrigger, "priority of the legacy trigger at position=1"),
        (legacy(priority=99), BadTrigger, "priority=99 is not from 1 to 60"),
        (legacy(session_id=5), BadTrigger, "session_id of the legacy trigger at position=1"),
        (legacy(payload={"a": b""}), NotPlainJson, "bytes is not plain JSON"),
    ],
)
def test_a_malformed_list_is_refused_as_a_whole(
    bench: Bench, trigger: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        imported(bench, legacy(), trigger)
    assert bench.do(Transaction.execute, "SELECT count(*) FROM triggers") == [(0,)]
