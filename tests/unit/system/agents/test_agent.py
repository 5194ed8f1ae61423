"""One agent: its log and its record, and that both are written one step after the other."""

from __future__ import annotations

import asyncio
import errno

import pytest

from system.agents import event
from system.agents.queued_line import QueuedLine
from system.errors import AgentStopped, IllegalTransition, LogStopped, UnknownAgent
from system.sessions.session import SessionState
from tests.unit.system.agents.room import ADA, BOB, ONE, Room, created, enqueued, message, record_of


def opened() -> tuple[Room, str]:
    room = Room()
    room.open(start=False)
    return room, room.create("Ada")


def queued_line(message_id: str) -> QueuedLine:
    return QueuedLine(message_id, event.MESSAGE_ENQUEUED, message(message_id, BOB, ADA))


def test_an_agent_that_is_known_only_by_its_id_is_called_by_it(room: Room) -> None:
    room.open(start=False)

    agent = room.runtime._orchestrator.new_agent(ADA, ONE)

    assert (agent.name(), agent.alive, agent.runnable) == (ADA, True, False)
    agent.log.close()


def test_all_lines_of_the_queue_share_one_barrier() -> None:
    room, ada = opened()
    agent = room.agent(ada)
    agent.log.queue = {key: queued_line(key) for key in ("m1", "m2", "m3")}
    room.files.calls.clear()

    room.run(agent.log.write_queue())

    assert [call.split()[0] for call in room.files.calls] == ["append", "fdatasync"]
    assert list(agent.history.pending) == ["m1", "m2", "m3"]
    assert agent.log.queue == {}


def test_a_line_that_is_enqueued_during_an_append_waits_for_the_next_one() -> None:
    room, ada = opened()
    agent = room.agent(ada)

    async def both() -> None:
        agent.log.queue["m1"] = queued_line("m1")
        first = asyncio.ensure_future(agent.log.write_queue())
        await asyncio.sleep(0)
        agent.log.queue["m2"] = queued_line("m2")
        await first
        assert list(agent.log.queue) == ["m2"]
        await agent.log.write_queue()

    room.run(both())

    assert list(agent.history.pending) == ["m1", "m2"]


def test_a_refused_line_stays_in_the_queue() -> None:
    room, ada = opened()
    agent = room.agent(ada)
    agent.log.queue["m"] = queued_line("m")
    room.files.fail("append", "events.jsonl", errno.EIO)

    with pytest.raises(OSError, match="Input/output error"):
        room.run(agent.log.write_queue())

    assert list(agent.log.queue) == ["m"]
    assert agent.log.stopped == ""


def test_an_ended_or_stopped_agent_receives_nothing() -> None:
    room, ada = opened()
    agent = room.agent(ada)
    agent.history.ended = "operator"
    with pytest.raises(UnknownAgent):
        room.run(agent.log.write_queue())
    agent.history.ended = ""
    agent.log.stopped = "its barrier failed"

    with pytest.raises(AgentStopped):
        room.run(agent.log.write_queue())


def test_an_unsynced_line_that_cannot_be_removed_stops_the_agent() -> None:
    room, ada = opened()
    agent = room.agent(ada)
    room.files.transfer_less("append", "events.jsonl", 9)
    room.files.fail("append", "events.jsonl", errno.ENOSPC, nth=2)
    room.files.fail("truncate", "events.jsonl", errno.EIO)

    with pytest.raises(LogStopped):
        room.run(agent.log.append_unsynced([(event.SUSPEND_RESULT, {"state_size": 0})]))

    assert "a partial line could not be removed" in agent.log.stopped


def test_the_log_of_an_agent_that_is_stopped_is_closed_as_it_is() -> None:
    room, ada = opened()
    agent = room.agent(ada)
    room.run(agent.log.append_unsynced([(event.SUSPEND_RESULT, {"state_size": 0})]))
    agent.log.stopped = "its barrier failed"
    room.files.calls.clear()

    room.run(agent.log.park())

    assert [call for call in room.files.calls if "sync" in call] == []


def test_lines_that_turn_out_to_be_there_already_cost_nothing() -> None:
    room, ada = opened()
    room.files.calls.clear()

    room.run(room.agent(ada).log.commit(list))

    assert room.files.calls == []


def test_a_record_that_says_so_already_is_not_written() -> None:
    room, ada = opened()
    agent = room.agent(ada)
    assert agent.log.record is not None
    room.files.calls.clear()

    room.run(agent.log.save(SessionState.ACTIVE, agent.log.record.provider_state_blob))

    assert room.files.calls == []


def test_a_record_of_the_same_state_may_get_another_blob() -> None:
    room, ada = opened()
    agent = room.agent(ada)

    room.run(agent.log.save(SessionState.ACTIVE, b"new"))

    assert agent.log.record is not None
    assert agent.log.record.provider_state_blob == b"new"


def test_an_agent_that_has_ended_for_good_becomes_nothing_else() -> None:
    room, ada = opened()
    agent = room.agent(ada)
    room.run(agent.log.save(SessionState.TERMINATED, b""))

    with pytest.raises(IllegalTransition, match="it is TERMINATED and cannot become ACTIVE"):
        room.run(agent.log.save(SessionState.ACTIVE, b""))


def test_a_record_that_the_disk_had_refused_is_written_with_the_next_state(room: Room) -> None:
    room.put_session(ONE, [*created(ADA, "Ada"), enqueued("m", "USER", ADA)], state=None)
    room.files.fail("replace", record_of(ONE), errno.ENOSPC)
    room.open(start=False)
    assert not room.exists(record_of(ONE))

    room.run(room.agent(ADA).log.save(SessionState.ACTIVE, b"blob"))

    assert room.state(ONE) == "ACTIVE"


def test_two_states_of_one_record_are_written_one_after_the_other(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada"), SessionState.SUSPENDED)
    room.open(start=False)
    agent = room.agent(ADA)

    async def both() -> None:
        await asyncio.gather(
            agent.log.save(SessionState.ACTIVE, b""), agent.log.save(SessionState.SUSPENDED, b"")
        )

    room.run(both())

    assert room.state(ONE) == "SUSPENDED"


def test_the_record_of_a_newer_version_is_left_as_it_is(room: Room) -> None:
    room.put_session(ONE, [*created(ADA, "Ada"), enqueued("m", "USER", ADA)])
    room.open(start=False)
    agent = room.agent(ADA)
    agent.log.record, agent.log.foreign_record = None, True
    before = room.read(record_of(ONE))

    room.run(agent.log.save(SessionState.TERMINATED, b""))

    assert room.read(record_of(ONE)) == before
