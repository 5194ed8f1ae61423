"""Triggers in a room: emitted, read, and a disk that fails under them."""

from __future__ import annotations

from faults.fault_plan import FaultPlan
from faults.injector import FaultInjector
from system.durable.trigger import TRIGGERS, Trigger, TriggerSpec
from system.ports import Json
from tests.unit.system.agents.room import SECOND_NS, Room

DAY = 86_400


def spec(room: Room, agent_id: str | None, payload: Json = "tea", in_s: float = 0) -> TriggerSpec:
    session_id = None if agent_id is None else room.session(agent_id)
    return TriggerSpec("IMMEDIATE", payload, "brew", session_id, now(room) + in_s)


def now(room: Room) -> float:
    return room.host.clock.wall_ns() / SECOND_NS


def emit(room: Room, agent_id: str | None, payload: Json = "tea", in_s: float = 0) -> str:
    """Emit a trigger, and let everybody finish who may run now."""
    emitted = room.run(room.runtime.emit(spec(room, agent_id, payload, in_s)))
    room.settle()
    return emitted.trigger_id


def row(room: Room, trigger_id: str) -> Trigger:
    state = room.runtime._orchestrator.state
    assert state is not None
    found = state.transact(lambda each: TRIGGERS.read(each, trigger_id))
    assert found is not None
    return found


def status(room: Room, trigger_id: str) -> tuple[str, int]:
    found = row(room, trigger_id)
    return str(found.status), found.attempts


def fail_disk(room: Room, plan: str) -> FaultInjector:
    injector = FaultInjector(FaultPlan.parse(plan))
    injector.install(room.world.disk)
    return injector


def fail_when_asked(room: Room, plan: str) -> FaultInjector:
    """Let the disk fail from the moment at which the provider is asked."""
    injector = FaultInjector(FaultPlan.parse(plan))

    async def install() -> None:
        injector.install(room.world.disk)
        room.provider.hooks.clear()

    room.provider.hooks["send"] = install
    return injector
