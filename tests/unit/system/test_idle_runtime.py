"""The laws of an idle runtime: the calls of a boot, the cost of a day, the space on the disk."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import apsw
import pytest

from system.agents import event
from system.collector import CollectionOptions
from system.durable.emitter import checked_spec
from system.durable.state import Transaction
from system.durable.stores import Stores
from system.durable.trigger import TriggerSpec
from system.ports import Database, JsonObject
from system.runtime import Options
from tests.sample import in_the_gate
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import SECOND_NS, Room, opened

HOUR = 3600
DAY = 24 * HOUR
COLLECTING = Options(collection=CollectionOptions(HOUR * SECOND_NS), recording=None)


class TracedDatabase:
    """A database that notes the statements of its connections among the calls of the files."""

    def __init__(self, database: Database, calls: list[str]) -> None:
        self._database = database
        self._calls = calls

    def open(self, path: str) -> apsw.Connection:
        self._calls.append(f"open {path}")
        connection = self._database.open(path)

        def note(_cursor: apsw.Cursor, statement: str, _bindings: object) -> bool:
            self._calls.append(statement)
            return True

        connection.exec_trace = note
        return connection


def boot_calls(families: int) -> list[str]:
    """The calls of a boot with one living agent, after so many families have ended."""
    room = Room(COLLECTING)
    room.open()
    room.run(room.runtime._orchestrator.durable.opened())
    room.say(room.create("Ada"), "hello")
    for number in range(families):
        parent = room.create(f"parent {number}", request_id=f"request {number}")
        room.say(parent, script(("spawn_agent", {"name": "child", "instructions": "work"})))
        room.say(room.named("child").agent_id, script(("complete", {"result": number})))
        room.run(room.runtime.terminate(parent))
    room.settle(2 * HOUR)
    assert room.runtime.report.collected == 2 * families
    # A provider that keeps the conversations of agents that have ended is asked about each.
    del room.provider.kept[1:]
    room.run(room.runtime.close())
    room.kill()
    room.files.calls.clear()
    room.host = replace(room.host, database=TracedDatabase(room.host.database, room.files.calls))
    room.open()
    room.settle()
    return room.files.calls


def test_a_boot_makes_the_same_calls_with_and_without_ended_agents() -> None:
    calls = boot_calls(0)
    assert len(calls) > 50
    assert boot_calls(6) == calls


SIZES = ((100, 5_000), (1_000, 100_000))
"""Numbers of agents and of triggers; the gate runs the smaller ones."""


@pytest.mark.parametrize(("agents", "triggers"), in_the_gate(SIZES, lambda size: size == SIZES[0]))
def test_an_idle_day_costs_no_operation_and_has_one_timer(agents: int, triggers: int) -> None:
    room = Room(COLLECTING)
    room.open()
    sessions = [room.session(room.create(f"agent {number}")) for number in range(agents)]
    stores = room.run(room.runtime._durable().opened())
    emit_in_a_year(room, stores, sessions, triggers)
    done = room.world.disk.operations
    assert room.runtime._orchestrator.durable.due_in_ns() is not None

    room.settle(DAY)

    assert room.world.disk.operations == done
    timers = [timer for *_, timer in room.world.loop._timers.heap if timer.callback is not None]
    assert len(timers) == 1
    room.check_no_failures()


def emit_in_a_year(room: Room, stores: Stores, sessions: list[str], triggers: int) -> None:
    """Emit triggers of all sessions for the time after a year, in one transaction."""
    after = room.host.clock.wall_ns() / SECOND_NS + 365 * DAY
    specs = [
        checked_spec(TriggerSpec("IMMEDIATE", "wake", session_id=session_id, fire_at=after))
        for session_id in sessions
    ]

    def emit(transaction: Transaction) -> None:
        # In kibibytes: no page is written before the commit.
        transaction.execute("PRAGMA cache_size=-262144")
        for number in range(triggers):
            stores.emitter.insert(transaction, specs[number % len(specs)])

    room.run(room.runtime._orchestrator.durable.run(emit))


@dataclass(frozen=True)
class Space:
    """What a closed root has outside of its archive, and what it may have."""

    files: int
    most_files: int
    size: int
    most_bytes: int


def space_of(room: Room, ended: int, peak_rows: int) -> Space:
    """Measure a root; the law is that of docs/runtime.md."""
    room.run(room.runtime.close())
    files = {
        path: content
        for path, content in room.world.disk.files().items()
        if not path.startswith("/archive/")
    }
    living = {path.split("/")[2] for path in files if path.startswith("/agents/")}
    logs = [path for path in files if path.startswith("/agents/") and path.endswith(".jsonl")]
    return Space(
        len(files),
        3 * len(living) + (len(logs) - len(living)) + 8,
        sum(map(len, files.values())),
        int(1.5 * sum(conversation_in(files[path]) for path in logs))
        + 64 * 1024 * len(living)
        + 512 * ended
        + 2 * 1024 * peak_rows,
    )


def conversation_in(log: bytes) -> int:
    """The bytes of the messages and turns in a log."""
    names = (event.MESSAGE_ENQUEUED, event.TURN_START, event.TURN_COMPLETE)
    return sum(len(line) for line in log.splitlines() if json.loads(line)["event"] in names)


SUPERSEDED = 100
"""Triggers of a day that are replaced by newer ones."""


def a_day_of_work(room: Room, ada: str) -> None:
    """Agents come and go, triggers are run or replaced, the operator talks and reads."""
    for number in range(3):
        room.say(ada, script(("spawn_agent", {"name": "Bob", "instructions": "work"})))
        room.say(room.named("Bob").agent_id, script(("complete", {"result": number})))
        spec = TriggerSpec("IMMEDIATE", "wake", session_id=room.session(ada))
        room.run(room.runtime.emit(spec))
        room.settle()
        room.say(ada, script(("send_message", {"to": "USER", "payload": number})))
    eve = room.create("Eve")
    note: JsonObject = {"to": "USER", "payload": "a" * 500}
    room.say(eve, script(*[("send_message", note)] * 20))
    room.run(room.runtime.terminate(eve))
    for message in room.runtime.view().user:
        room.run(room.runtime.acknowledge(message.message_id))
    replace_triggers(room, ada)
    room.settle(DAY)
    room.run(room.runtime.close())
    room.kill()
    room.open()


def replace_triggers(room: Room, ada: str) -> None:
    """Emit triggers of one family, of which only the last one is run."""
    stores, session_id = room.run(room.runtime._durable().opened()), room.session(ada)
    specs = [
        TriggerSpec("MEMORY", "tidy", session_id=session_id, key=f"memory:m:{number}")
        for number in range(SUPERSEDED)
    ]

    def emit(transaction: Transaction) -> None:
        for spec in specs:
            stores.emitter.emit(transaction, spec)

    room.run(room.runtime._orchestrator.durable.run(emit))


@pytest.mark.parametrize("days", in_the_gate([2, 6, 20], lambda days: days < 20))
def test_the_space_is_bounded_by_the_conversations_of_the_living(days: int) -> None:
    room, ada = opened(replace(COLLECTING, snapshot_lines=32))
    for _ in range(days):
        a_day_of_work(room, ada)
    room.settle(31 * DAY)
    room.run(room.runtime.terminate(room.create("Eve")))
    room.settle(2 * HOUR)
    room.run(room.runtime.close())
    room.open()
    assert [agent.name for agent in room.runtime.view().agents] == ["Ada"]

    # The rows of two days.
    space = space_of(room, ended=4 * days + 1, peak_rows=2 * (SUPERSEDED + 10))

    assert space.files <= space.most_files
    assert space.size <= space.most_bytes
