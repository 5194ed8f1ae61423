"""Rooms whose runtimes collect agents an hour behind their end."""

from __future__ import annotations

from typing import Final

from system.collector import CollectionOptions
from system.durable.ended import ENDED, Ended
from system.runtime import Options
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import SECOND_NS, Room, opened

HOUR: Final = 3600
DAY: Final = 24 * HOUR
AFTER_AN_HOUR: Final = Options(collection=CollectionOptions(HOUR * SECOND_NS))


def archived_for(seconds: int) -> Options:
    """Options by which the lines of an agent are removed so long behind its end."""
    return Options(collection=CollectionOptions(HOUR * SECOND_NS, seconds * SECOND_NS))


def family(options: Options = AFTER_AN_HOUR, *said: str) -> tuple[Room, str, str]:
    """Ada, and her child Bob, who was given these messages and terminated, and has sent nothing."""
    room, ada = opened(options)
    room.say(ada, script(("spawn_agent", {"name": "Bob", "instructions": "work"})))
    bob = room.named("Bob").agent_id
    for text in said:
        room.say(bob, text)
    room.run(room.runtime.terminate(bob))
    return room, ada, bob


def collected() -> tuple[Room, str, str, str]:
    """The same, when Bob was collected; and his session."""
    room, ada, bob = family()
    session_id = room.session(bob)
    room.settle(HOUR + 1)
    return room, ada, bob, session_id


def ended(room: Room, agent_id: str) -> Ended | None:
    """The row of a collected agent."""
    state = room.runtime._orchestrator.state
    return None if state is None else state.transact(lambda each: ENDED.read(each, agent_id))
