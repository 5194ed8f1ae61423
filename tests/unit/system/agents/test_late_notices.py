"""The notice of a recovery that the disk refused at first: it comes while a turn is under way."""

from __future__ import annotations

import asyncio
import errno

from tests.unit.system.agents.room import Room, log_of, opened


def with_late_notice() -> tuple[Room, str, asyncio.Event]:
    """Ada's first turn was lost; its notice has come during the next one, which an event ends."""
    room, ada = opened()
    room.provider.hooks["send"] = asyncio.Event().wait
    room.say(ada, "first")
    session_id = room.session(ada)
    room.kill()
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.files.fail("append", log_of(session_id), errno.ENOSPC)
    room.open()
    assert room.runtime.report.undispatched == 1
    room.settle(3)
    assert room.events(session_id)[-2:] == ["turn.start", "message.enqueued"]
    return room, ada, gate


def test_the_turn_that_is_under_way_keeps_its_prompt() -> None:
    room, ada, gate = with_late_notice()

    gate.set()
    room.settle()

    kinds = [[kind for kind, _payload in room.shown(turn)] for turn in (-2, -1)]
    assert kinds == [["text"], ["system"]]
    prompts = [exchange.prompt for exchange in room.agent(ada).history.exchanges]
    assert prompts == room.provider.prompts[-2:]


def test_a_running_turn_that_is_lost_too_is_reported() -> None:
    room, ada, _ = with_late_notice()
    room.kill()
    room.provider.hooks.clear()

    room.open(start=False)

    starts = [line for line in room.lines(room.session(ada)) if line.event == "turn.start"]
    assert room.runtime.report.lost_turns == {ada: (starts[-1].data["turn_id"],)}
