"""The laws of triggers in turns: each was emitted, and runs once, in time, as it was emitted."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from oracles.durable.rows import Rows
from oracles.durable.violations import EarlyTrigger
from oracles.runtime.shadow_triggers import ShadowTriggers
from oracles.runtime.violations import MisroutedMessage
from oracles.violation import Duplicated, Phantom, Resurrected, TornRecord, Violation
from tests.unit.oracles.runtime.story import NOW_NS, Story, hexed
from tests.unit.oracles.runtime.team import team

NOW = NOW_NS / 1e9
TRIGGER = "trigger-1"


def run_trigger(
    story: Story, name: str = "boss", trigger_id: str = TRIGGER, **changes: object
) -> None:
    """A trigger runs a turn of an agent; ``changes`` are members of what is shown of it."""
    number = len(story.logs[name])
    story.turn(name, f"x{number}")
    shown: dict[str, Any] = {
        "message_id": trigger_id, "sender": "RUNTIME", "kind": "trigger",
        "payload": {"source": "IMMEDIATE", "payload": "go", "fire_at": NOW},
    }  # fmt: skip
    start, line = (entry.data for entry in story.logs[name][number:])
    start.update(trigger_id=trigger_id, prompt=json.dumps([shown | changes]))
    line.update(trigger_id=trigger_id)


def occurrence(fire_at: float = NOW, source: str = "SCHEDULED") -> dict[str, object]:
    return {"source": source, "payload": None, "fire_at": fire_at}


def check(story: Story, *rows: dict[str, object]) -> None:
    """Check the story, in which the operator has emitted a trigger to the boss."""
    triggers = ShadowTriggers()
    triggers.begin(TRIGGER, hexed("boss"), "go", NOW)
    triggers.acknowledge(TRIGGER)
    found = Rows(list(rows), {}, {}, {}, {}, {})
    triggers.check(story.snapshot(), found, NOW_NS)


def _twice(story: Story) -> None:
    run_trigger(story)
    run_trigger(story)


def _elsewhere(story: Story) -> None:
    story.root("other")
    run_trigger(story, "other")


WRONG: dict[str, tuple[type[Violation], Callable[[Story], object]]] = {
    "two turns": (Duplicated, _twice),
    "emitted by nothing": (Phantom, lambda story: run_trigger(story, trigger_id="trigger-2")),
    "another agent": (MisroutedMessage, _elsewhere),
    "other payload": (TornRecord, lambda story: run_trigger(story, payload={"payload": "stop"})),
    "another sender": (TornRecord, lambda story: run_trigger(story, sender="USER")),
    "an occurrence before its time": (
        EarlyTrigger,
        lambda story: run_trigger(story, trigger_id="s1", payload=occurrence(NOW + 1)),
    ),
}


def test_a_reminder_that_a_turn_has_cancelled_is_not_shown() -> None:
    story = team()
    story.turn("boss", "t9", "r1", cancelled=["r2"])
    assert story.snapshot().agents[hexed("a-boss")].violation is None
    run_trigger(story, trigger_id="r2")
    violation = story.snapshot().agents[hexed("a-boss")].violation
    assert isinstance(violation, Resurrected)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_turn_that_settles_a_trigger_wrongly_is_reported_as_what_it_is(wrong: str) -> None:
    violation, change = WRONG[wrong]
    story = team()
    change(story)
    with pytest.raises(Violation) as raised:
        check(story)
    assert type(raised.value) is violation, str(raised.value)


def test_a_turn_of_a_trigger_before_its_time_is_early() -> None:
    story, triggers = team(), ShadowTriggers()
    triggers.begin(TRIGGER, None, "go", NOW + 1)
    run_trigger(story)
    with pytest.raises(EarlyTrigger):
        triggers.check(story.snapshot(), Rows([], {}, {}, {}, {}, {}), NOW_NS)


@pytest.mark.parametrize("is_settled", [True, False])
@pytest.mark.parametrize(
    "wrong",
    [
        {}, {"source": "MEMORY"}, {"description": "about it"}, {"payload_json": '"stop"'},
        {"fire_at": NOW + 1},
    ],
)  # fmt: skip
def test_the_row_of_a_trigger_has_what_the_operator_has_given(
    wrong: dict[str, object], is_settled: bool
) -> None:
    status, payload = ("DONE", "null") if is_settled else ("PENDING", '"go"')
    row: dict[str, object] = {
        "id": TRIGGER, "source": "IMMEDIATE", "dedup_key": None, "session_id": hexed("boss"),
        "description": None, "payload_json": payload, "fire_at": NOW, "status": status,
        "resolution": None,
    }  # fmt: skip
    if not wrong:
        check(team(), row)
        return
    with pytest.raises(TornRecord, match="a trigger has other contents"):
        check(team(), row | wrong)


@pytest.mark.parametrize("keys", [("scheduled:s:60", "scheduled:s:120"), ("scheduled:s:60",) * 2])
def test_an_occurrence_of_a_schedule_runs_once(keys: tuple[str, str]) -> None:
    story = team()
    run_trigger(story)
    rows: list[dict[str, object]] = []
    for number, key in enumerate(keys):
        run_trigger(story, trigger_id=f"s{number}", payload=occurrence())
        rows.append({"id": f"s{number}", "dedup_key": key, "status": "DONE", "resolution": None})
    if len(set(keys)) == len(keys):
        check(story, *rows)
    else:
        with pytest.raises(Duplicated, match="an occurrence of a schedule was run twice"):
            check(story, *rows)
