"""Routing: which root agent gets a trigger that names none."""

from __future__ import annotations

from asyncio import Event
from collections.abc import Sequence
from typing import Any

from system.ports import JsonObject
from system.router import Candidate
from system.runtime import Options
from tests.unit.system.agents.emitting import emit, fail_disk, row, spec, status
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import Room


class FakeRouter:
    """``asked`` are the calls; the answers are names, or what is raised, the last for ever."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[JsonObject, list[Candidate]]] = []

    async def route(self, trigger: JsonObject, candidates: Sequence[Candidate]) -> str | None:
        self.asked.append((trigger, list(candidates)))
        answer: Any = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            answer = await answer()
        ids = {candidate.name: candidate.agent_id for candidate in candidates}
        chosen: str | None = ids.get(answer, answer)
        return chosen


def rooms(*answers: object, names: Sequence[str] = ("Ada", "Bob")) -> tuple[Room, FakeRouter]:
    router = FakeRouter(*answers)
    room = Room(Options(router=router, most_attempts=2))
    room.open()
    for name in names:
        room.create(name)
    return room, router


def ran(room: Room) -> dict[str, int]:
    return {agent.name: agent.turns for agent in room.runtime.view().agents}


def test_the_router_chooses_among_several_roots() -> None:
    room, router = rooms("Bob")
    room.say(room.named("Ada").agent_id, script(("spawn_agent", {"name": "Kim"}), (
        "set_agent_metadata", {"key": "for", "value": "mail"},
    )))  # fmt: skip
    trigger_id = emit(room, None, "tea")
    [(trigger, candidates)] = router.asked
    assert trigger == {
        "trigger_id": trigger_id, "source": "IMMEDIATE", "description": "brew", "payload": "tea",
        "key": None,
    }  # fmt: skip
    assert [(each.name, each.metadata) for each in candidates] == [
        ("Ada", {"for": "mail"}), ("Bob", {}),
    ]  # fmt: skip
    found = row(room, trigger_id)
    assert (found.session_id, found.routed, found.attempts) == (
        room.session(room.named("Bob").agent_id), True, 1,
    )  # fmt: skip
    assert ran(room)["Bob"] == 1
    room.check_no_failures()


def test_no_model_is_called_before_emit_has_returned() -> None:
    room, router = rooms("Ada")
    trigger_id = room.run(room.runtime.emit(spec(room, None))).trigger_id
    assert (router.asked, room.provider.prompts) == ([], [])
    room.kill()
    room.open(start=False)
    assert status(room, trigger_id) == ("PENDING", 0)
    room.start()
    room.settle()
    assert (len(router.asked), len(room.provider.prompts)) == (1, 1)


def test_one_candidate_is_not_worth_a_question() -> None:
    room, router = rooms("Ada", names=("Ada",))
    emit(room, None)
    assert router.asked == []
    assert ran(room) == {"Ada": 1}


def test_without_a_router_a_trigger_waits_until_one_candidate_is_left() -> None:
    room = Room()
    room.open()
    ada, _ = room.create("Ada"), room.create("Bob")
    trigger_id = emit(room, None)
    assert status(room, trigger_id) == ("PENDING", 0)
    room.run(room.runtime.terminate(ada))
    room.settle()
    assert ran(room) == {"Ada": 0, "Bob": 1}


def test_a_trigger_that_fits_no_candidate_waits_for_others() -> None:
    room, router = rooms(None, None, "Cleo")
    first, second = emit(room, None), emit(room, None)
    room.settle(3600)
    assert len(router.asked) == 2
    assert (status(room, first), status(room, second)) == (("PENDING", 0), ("PENDING", 0))
    room.create("Cleo")
    room.settle()
    assert len(router.asked) == 4
    assert ran(room) == {"Ada": 0, "Bob": 0, "Cleo": 2}


def test_a_trigger_that_fits_no_candidate_is_asked_about_after_a_boot() -> None:
    room, router = rooms(None)
    trigger_id = emit(room, None)
    room.reopen(start=False)
    assert len(router.asked) == 1
    room.start()
    room.settle()
    assert len(router.asked) == 2
    assert status(room, trigger_id) == ("PENDING", 0)


def test_a_router_that_fails_is_asked_again_after_a_pause() -> None:
    room, router = rooms(OSError("no model"), "Ada")
    trigger_id = emit(room, None)
    found = row(room, trigger_id)
    assert (found.status, found.attempts, found.reason) == ("PENDING", 1, "OSError('no model')")
    room.settle(40)
    assert len(router.asked) == 2
    assert status(room, trigger_id) == ("DONE", 1)


def test_an_answer_that_is_no_candidate_is_a_failure() -> None:
    room, _ = rooms("Zoe")
    trigger_id = emit(room, None)
    assert (row(room, trigger_id).reason or "").startswith("LookupError(")
    room.settle(40)
    assert status(room, trigger_id) == ("DEAD", 2)
    assert [message.message_id for message in room.runtime.view().user] == [f"{trigger_id}.dead"]


def test_a_router_that_never_answers_is_given_up() -> None:
    room, router = rooms(lambda: Event().wait(), "Ada")
    trigger_id = emit(room, None)
    ada = room.named("Ada").agent_id
    # Meanwhile the other triggers are run.
    assert status(room, emit(room, ada)) == ("DONE", 1)
    room.settle(60)
    assert (row(room, trigger_id).status, len(router.asked)) == ("PENDING", 1)
    room.settle(40)
    assert status(room, trigger_id) == ("DONE", 1)


def test_a_route_that_kills_the_process_counts() -> None:
    room, router = rooms(lambda: Event().wait())
    trigger_id = emit(room, None)
    for _ in range(4):
        room.reopen()
        room.settle()
    assert len(router.asked) == 2
    assert status(room, trigger_id) == ("DEAD", 2)


def test_a_candidate_that_ends_while_the_router_thinks_gets_nothing() -> None:
    gate = Event()

    async def ada() -> str:
        await gate.wait()
        return "Ada"

    room, router = rooms(ada, "Bob", names=("Ada", "Bob", "Cleo"))
    trigger_id = emit(room, None)
    room.run(room.runtime.terminate(room.named("Ada").agent_id))
    gate.set()
    room.settle()
    assert len(router.asked) == 2
    assert row(room, trigger_id).session_id == room.session(room.named("Bob").agent_id)
    assert status(room, trigger_id) == ("DONE", 1)
    room.check_no_failures()


def test_a_routed_trigger_whose_agent_ends_is_routed_again() -> None:
    room, router = rooms("Ada", "Bob", names=("Ada", "Bob", "Cleo"))
    ada = room.named("Ada").agent_id
    gate = Event()
    room.provider.hooks["send"] = gate.wait
    room.run(room.runtime.send(ada, script(("complete", {"result": 1}))))
    room.settle()
    trigger_id = emit(room, None)
    assert row(room, trigger_id).session_id == room.session(ada)
    room.provider.hooks.clear()
    gate.set()
    room.settle()
    assert len(router.asked) == 2
    assert status(room, trigger_id) == ("DONE", 1)
    assert ran(room)["Bob"] == 1


def test_a_full_disk_only_delays_a_route() -> None:
    room, router = rooms("Ada")
    emit(room, room.named("Bob").agent_id)
    trigger_id = emit(room, None, in_s=1)
    injector = fail_disk(room, "write *state.db-wal #1+ ENOSPC")
    room.settle(5)
    assert router.asked == []
    idle = room.world.loop.create_task(room.runtime.idle())
    room.settle(5)
    assert not idle.done()
    injector.remove()
    room.run(idle)
    assert status(room, trigger_id) == ("DONE", 1)
    room.check_no_failures()


def test_closing_waits_for_the_router() -> None:
    gate = Event()

    async def ada() -> str:
        await gate.wait()
        return "Ada"

    room, _ = rooms(ada)
    trigger_id = emit(room, None)
    closing = room.world.loop.create_task(room.runtime.close())
    room.settle()
    assert not closing.done()
    gate.set()
    room.run(closing)
    room.reopen(start=False)
    assert row(room, trigger_id).session_id == room.session(room.named("Ada").agent_id)
    assert status(room, trigger_id) == ("PENDING", 0)
