"""Actions in a room: effects that outlive every boot, and answers as a test says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from system.durable.activity import ACTIVITIES, Activity
from system.ports import Action, EffectRefused, Json, JsonObject, Performed, SideEffectClass
from system.runtime import Options
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import SECOND_NS, Room

MAIL = Action("mail", SideEffectClass.IRREVERSIBLE, provider_dedup=False, timeout_ns=SECOND_NS)
PAY = Action("pay", SideEffectClass.IRREVERSIBLE, provider_dedup=True, timeout_ns=SECOND_NS)
READ = Action("read", SideEffectClass.READ_ONLY, provider_dedup=False, timeout_ns=SECOND_NS)

TO_ANNA: JsonObject = {"action": "mail", "arguments": {"to": "Anna"}}
FLY = (
    "action='fly' is not registered, known are: mail, pay, read; see the section on activities in"
    " docs/durable.md"
)


class FakeEffects:
    """``calls`` are the requests that arrived.

    The next ones get ``answers``: an exception is raised, a function is awaited and then the
    request refused, anything else is returned. All later ones are performed.
    """

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, str, JsonObject]] = []
        self.known: list[Action] = [MAIL, PAY, READ]

    def actions(self) -> Sequence[Action]:
        return self.known

    async def perform(self, action: str, key: str, arguments: JsonObject) -> Performed:
        self.calls.append((action, key, arguments))
        answer: Any = self.answers.pop(0) if self.answers else Performed("ref", "ok")
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            await answer()
            raise EffectRefused("not today")
        performed: Performed = answer
        return performed


class ActingRoom(Room):
    """A room whose hosts all have the same ``effects``."""

    def __init__(self, effects: FakeEffects, options: Options | None = None) -> None:
        self.effects = effects
        super().__init__(options)

    def power_on(self) -> None:
        super().power_on()
        self.host = replace(self.host, effects=self.effects)


def acting(*answers: object, options: Options | None = None) -> ActingRoom:
    """Return a room in which actions are performed; it is not open yet."""
    return ActingRoom(FakeEffects(*answers), options)


def activities(room: Room) -> list[Activity]:
    """Return the rows of the ledger, oldest first."""
    state = room.runtime._orchestrator.state
    assert state is not None
    found = state.transact(lambda each: list(ACTIVITIES.select(each, "1 ORDER BY rowid")))
    return [row for _, row in found if isinstance(row, Activity)]


def opened(*answers: object) -> tuple[ActingRoom, str]:
    room = acting(*answers)
    room.open()
    return room, room.create("Ada")


def perform(room: Room, agent_id: str, **call: Json) -> str:
    """Let an agent perform an action, and everything follow; return the id of the activity."""
    room.say(agent_id, script(("perform", {**TO_ANNA, **call})))
    return str(room.provider.results[-1]["activity_id"])


def outcome(room: Room, place: int = 0) -> JsonObject:
    """Return the outcome that the last turn has shown at this place."""
    kind, payload = room.shown()[place]
    assert kind == "activity"
    assert isinstance(payload, dict)
    return payload


def in_turn(room: Room, agent_id: str, *call_ids: str, **call: Json) -> list[JsonObject]:
    """Let the provider of an agent wait for an action, once for each call id."""
    results: list[JsonObject] = []

    async def wait_for_it() -> None:
        room.provider.hooks.clear()
        tools = room.provider.tools
        assert tools is not None
        results.extend(
            [
                await tools.perform(call_id, {"action": "read", **call})
                for call_id in call_ids or ("1",)
            ]
        )

    room.provider.hooks["sent"] = wait_for_it
    room.say(agent_id, "read")
    return results
