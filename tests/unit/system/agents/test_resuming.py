"""Pass 9: notices of lost turns, and agents that run again."""

from __future__ import annotations

import pytest

from system.ports import JsonObject
from system.recovery.resume import Resume
from system.runtime import Options
from system.sessions.session import SessionState
from tests.meta.page_tables import quoted, table_rows
from tests.meta.source_tree import ROOT
from tests.unit.system.agents.boot import END, recovered
from tests.unit.system.agents.room import (
    ADA,
    BOB,
    ONE,
    TWO,
    Room,
    completed,
    created,
    enqueued,
    message,
    started,
)


def test_an_agent_whose_turns_were_lost_receives_one_notice(room: Room) -> None:
    lines = [
        *created(ADA, "Ada"),
        enqueued("m", "USER", ADA),
        started("t1", "m"),
        started("t2", "m"),
    ]
    room.put_session(ONE, lines)
    room.world.clock.advance(5_000_000_000)

    recovered(room)

    assert room.runtime.report.lost_turns == {ADA: ("t1", "t2")}
    reported = room.lines(ONE)[-1].data
    assert (reported["message_id"], reported["sender"], reported["kind"]) == (
        "t2.lost",
        "RUNTIME",
        "system",
    )
    payload = reported["payload"]
    assert isinstance(payload, dict)
    page = (ROOT / "docs" / "runtime.md").read_text("utf-8")
    [row] = [row for row in table_rows(page, "notice") if row[0] == "recovery"]
    assert set(payload) == {"notice", *quoted(row[3])[0].split(", ")}
    assert 5_000_000_000 <= int(str(payload.pop("downtime_ns"))) < 6_000_000_000
    assert payload == {"notice": "recovery", "v": 1, "lost_turns": ["t1", "t2"], "pending": 1}
    room.reopen(start=False)
    assert room.runtime.report.lost_turns == {}
    assert room.events(ONE).count("message.enqueued") == 2


def notice_after_a_redelivery(room: Room) -> JsonObject:
    sent: JsonObject = message("m2", BOB, ADA)
    room.put_session(ONE, [*created(ADA, "Ada"), enqueued("m1", "USER", ADA), started("t1", "m1")])
    room.put_session(TWO, [*created(BOB, "Bob"), completed("t2", outbox=[sent])])
    room.world.clock.advance(5_000_000_000)
    recovered(room)
    reported = room.lines(ONE)[-1].data["payload"]
    assert isinstance(reported, dict)
    return reported


def test_the_notice_of_a_recovery_counts_what_the_recovery_has_redelivered(room: Room) -> None:
    reported = notice_after_a_redelivery(room)
    assert (reported["notice"], reported["pending"]) == ("recovery", 2)


def test_what_the_recovery_has_redelivered_does_not_end_the_downtime(room: Room) -> None:
    reported = notice_after_a_redelivery(room)
    assert 5_000_000_000 <= int(str(reported["downtime_ns"])) < 6_000_000_000


def test_an_ended_agent_receives_no_notice_of_a_lost_turn(room: Room) -> None:
    room.put_session(ONE, [*created(ADA, "Ada"), started("t"), END], SessionState.TERMINATED)

    recovered(room)

    assert room.runtime.report.lost_turns == {}


def test_a_clock_that_was_set_back_makes_no_downtime(room: Room) -> None:
    room.put_session(ONE, [*created(ADA, "Ada"), started("t")])
    room.world.clock.step_wall(-3600 * 10**9)

    recovered(room)

    payload = room.lines(ONE)[-1].data["payload"]
    assert isinstance(payload, dict)
    assert payload["downtime_ns"] == 0


@pytest.mark.parametrize(
    ("resume", "shown"),
    [(Resume.ALL, ["to Ada", "to Bob"]), (Resume.ROOTS, ["to Ada"]), (Resume.NONE, [])],
)
def test_a_boot_wakes_whom_the_policy_names(resume: Resume, shown: list[str]) -> None:
    room = Room(Options(resume=resume))
    room.put_session(ONE, [*created(ADA, "Ada"), enqueued("m1", "USER", ADA, payload="to Ada")])
    room.put_session(
        TWO, [*created(BOB, "Bob", ONE), enqueued("m2", "USER", BOB, payload="to Bob")]
    )

    room.open()
    room.settle()

    assert [room.shown(turn)[0][1] for turn in range(len(room.provider.prompts))] == shown


def test_an_agent_that_was_not_woken_runs_at_the_next_message() -> None:
    room = Room(Options(resume=Resume.NONE))
    room.put_session(ONE, [*created(ADA, "Ada"), enqueued("m1", "USER", ADA, payload="old")])
    room.open()

    room.say(ADA, "new")

    assert room.shown() == [("text", "old"), ("text", "new")]
