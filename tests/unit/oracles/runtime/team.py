"""A small team of agents: the story that is right, and how it may go on or be broken.

USER writes to boss; boss spawns worker and idle, writes to worker, subscribes to its end
and asks for a reminder (turn t1); worker reads its three messages and completes (t2);
boss gets the response and the notice, gates and permits idle, and writes to USER (t3).
"""

from __future__ import annotations

from typing import Any

import pytest

from oracles.violation import Violation
from tests.unit.oracles.runtime.story import NOW_NS, Break, Data, Story, hexed, message


def spawn(name: str) -> Data:
    return {
        "agent_id": hexed(f"a-{name}"),
        "session_id": hexed(name),
        "name": name,
        "instructions": f"be {name}",
        "provider": "scripted",
        "model": "m",
        "bootstrap_id": f"boot-{name}",
    }


def spawning(name: str) -> tuple[str, Data, Data]:
    arguments = {"name": name, "instructions": f"be {name}"}
    return ("spawn_agent", arguments, {"agent_id": hexed(f"a-{name}")})


BOSS, WORKER, IDLE = hexed("a-boss"), hexed("a-worker"), hexed("a-idle")


def team() -> Story:
    """Return the story that is right."""
    story = Story()
    _boss_starts(story)
    _worker_completes(story)
    _boss_reports(story)
    return story


def _boss_starts(story: Story) -> None:
    story.root("boss")
    story.send("m1", "boss", "start")
    story.send("m2", "boss", "soon")
    hello = message("m3", BOSS, WORKER, "text", {"n": 1})
    again = message("m4", BOSS, WORKER, "text", {"n": 2})
    story.turn(
        "boss", "t1", "m1",
        calls=[
            spawning("worker"),
            spawning("idle"),
            ("send_message", {"to": "worker", "payload": {"n": 1}}, {"message_id": "m3"}),
            ("send_message", {"to": WORKER, "payload": {"n": 2}}, {"message_id": "m4"}),
            ("send_message", {"to": "nobody", "payload": 0}, {"error": "no such agent"}),
            ("subscribe", {"name": "worker"}, {"subscription_id": "s1"}),
            ("remind_me", {"delay_ns": 5, "payload": "tick"}, {"reminder_id": "r1"}),
            ("set_agent_metadata", {"key": "mood", "value": "calm"}, {}),
        ],
        outbox=[hello, again], spawned=[spawn("worker"), spawn("idle")],
        subscribed=[{"subscription_id": "s1", "target": WORKER}],
        reminders=[{"reminder_id": "r1", "due_ns": NOW_NS - 5, "payload": "tick"}],
        metadata={"mood": "calm"},
    )  # fmt: skip
    for name in ("worker", "idle"):
        story.create(name, "boss")
        agent_id = hexed(f"a-{name}")
        story.add(
            name, "message.enqueued",
            **message(f"boot-{name}", BOSS, agent_id, "bootstrap", f"be {name}"),
        )  # fmt: skip
    story.add("worker", "message.enqueued", **hello)
    story.add("worker", "message.enqueued", **again)


def _worker_completes(story: Story) -> None:
    response = message("m5", WORKER, BOSS, "response", "done")
    story.turn(
        "worker", "t2", "boot-worker", "m3", "m4",
        calls=[("complete", {"result": "done"}, {})], outbox=[response], terminate=True,
    )  # fmt: skip
    story.add("worker", "agent.terminated", agent_id=WORKER, reason="completed", returned=[])
    story.records["worker"]["state"] = "TERMINATED"
    end = {"event": "terminated", "agent_id": WORKER, "name": "worker"}
    story.add("boss", "message.enqueued", **response)
    story.add("boss", "message.enqueued", **message("s1.notice", WORKER, BOSS, "notice", end))
    story.add("boss", "message.enqueued", **message("r1", BOSS, BOSS, "reminder", "tick"))


def _boss_reports(story: Story) -> None:
    report = message("m6", BOSS, "USER", "text", "all done")
    story.turn(
        "boss", "t3", "m2", "m5", "s1.notice",
        calls=[
            ("gate", {"name": "idle"}, {}),
            ("permit_turn", {"name": "idle"}, {}),
            ("send_message", {"to": "USER", "payload": "all done"}, {"message_id": "m6"}),
        ],
        outbox=[report],
        controls=[
            {"control_id": "c1", "target": IDLE, "op": "gate"},
            {"control_id": "c2", "target": IDLE, "op": "permit_turn"},
        ],
    )  # fmt: skip
    story.add("user", "message.enqueued", **report)
    story.add("idle", "tool.gate", control_id="c1", by=BOSS)
    story.add("idle", "tool.permit_turn", control_id="c2", by=BOSS)


def receive(story: Story, name: str, kind: str, **members: Any) -> Data:
    """Add a message of the boss to a log, without a turn that sends it."""
    to = "USER" if name == "user" else hexed(f"a-{name}")
    return story.add(name, "message.enqueued", **message("x", BOSS, to, kind, 0) | members)


def bounce(story: Story) -> Data:
    """The boss writes to the worker that has ended; return the error."""
    story.turn(
        "boss", "t4", "r1", outbox=[message("m8", BOSS, WORKER, "text", 0)],
        calls=[("send_message", {"to": "worker", "payload": 0}, {"message_id": "m8"})],
    )  # fmt: skip
    return receive(
        story, "boss", "error", message_id="m8.error", sender=WORKER, reply_to="m8",
        payload={"reason": "it has ended", "message_id": "m8"},
    )  # fmt: skip


def poison(story: Story, times: int) -> Data:
    """The boss fails ``times`` times on a message of the operator; return the error."""
    story.send("m7", "boss", "poison")
    for number in range(times):
        story.start("boss", f"p{number}", "r1", "m7")
        story.add("boss", "turn.failed", turn_id=f"p{number}", reason="timeout")
    story.add("boss", "message.dead", message_id="m7", reason="too often")
    return receive(
        story, "user", "error", message_id="m7.error", reply_to="m7",
        payload={"reason": "too often", "message_id": "m7"},
    )  # fmt: skip


def lose_turn(story: Story) -> Data:
    """A crash takes the turn t4 of the boss; return the recovery notice."""
    story.start("boss", "t4", "r1")
    payload = {"notice": "recovery", "v": 1, "downtime_ns": 7, "lost_turns": ["t4"], "pending": 1}
    return receive(story, "boss", "system", message_id="t4.lost", sender="RUNTIME", payload=payload)


def run_gated(story: Story, turns: int) -> None:
    """The idle child runs with its permit, and then ``turns`` times without one."""
    story.turn("idle", "g0", "boot-idle", permitted=True)
    for number in range(1, turns + 1):
        story.send(f"n{number}", "idle", number)
        story.turn("idle", f"g{number}", f"n{number}")


Case = tuple[str, type[Violation], Break]
"""A title, the one violation that must be reported, and the change that breaks the story."""


def title_of(parameter: object) -> str:
    """Return the title of a case, for the name of its test."""
    return parameter[0] if isinstance(parameter, tuple) else str(parameter)


def check_allowed(change: Break) -> None:
    """Apply the change to the correct story, and require that no law is broken."""
    story = team()
    change(story)
    story.settle()


def check_case(case: Case) -> None:
    """Apply the change to the correct story, and require exactly this violation."""
    _, expected, change = case
    story = team()
    change(story)
    with pytest.raises(Violation) as caught:
        story.settle()
    assert type(caught.value) is expected, str(caught.value)
