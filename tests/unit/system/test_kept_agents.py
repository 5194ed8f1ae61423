"""Agents that have ended and are not collected: something may still need their files."""

from __future__ import annotations

import asyncio
import errno

from system.collector import CollectionOptions
from system.runtime import Options
from tests.unit.system.agents.damage import spoil
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import SECOND_NS, Room, log_of
from tests.unit.system.collected import AFTER_AN_HOUR, HOUR, ended, family


def with_eve() -> tuple[Room, str, str]:
    """Ada, and her children Bob and Eve."""
    room = Room(AFTER_AN_HOUR)
    room.open()
    ada = room.create("Ada")
    room.say(ada, script(("spawn_agent", {"name": "Bob"}), ("spawn_agent", {"name": "Eve"})))
    return room, ada, room.named("Bob").agent_id


def with_bob() -> tuple[Room, str, str]:
    """Ada, and her child Bob; an agent is collected as soon as it has ended."""
    room = Room(Options(collection=CollectionOptions(0)))
    room.open()
    ada = room.create("Ada")
    room.say(ada, script(("spawn_agent", {"name": "Bob"})))
    return room, ada, room.named("Bob").agent_id


def test_an_agent_whose_log_was_damaged_is_kept_and_so_is_its_parent() -> None:
    room, ada, bob = family()
    session_id = room.session(bob)
    room.kill()
    spoil(room, session_id, "turn.start")
    assert list(room.open().report.missing) == [session_id]
    room.settle(2 * HOUR)
    assert ended(room, bob) is None

    room.run(room.runtime.terminate(ada))
    room.settle(2 * HOUR)

    assert {agent.agent_id for agent in room.runtime.view().agents} == {ada, bob}


def test_an_agent_whose_message_has_not_arrived_is_kept() -> None:
    room, _, bob = with_eve()
    log = log_of(room.named("Eve").session_id)
    room.files.fail("append", log, errno.ENOSPC, sticky=True)
    room.say(bob, script(("send_message", {"to": "Eve", "payload": "hello"})))
    room.run(room.runtime.terminate(bob))
    room.settle(2 * HOUR)
    assert ended(room, bob) is None

    room.reopen()
    room.settle()
    assert room.shown() == [("text", "hello")]
    room.settle(2 * HOUR)
    assert ended(room, bob) is not None


def test_an_agent_that_a_turn_may_name_is_kept() -> None:
    (room, ada, bob), gate = with_bob(), asyncio.Event()
    room.provider.hooks["sent"] = gate.wait
    room.say(ada, "a turn that began before the end")
    room.run(room.runtime.terminate(bob))
    room.settle(1)
    assert ended(room, bob) is None

    gate.set()
    room.settle(2 * HOUR)

    assert ended(room, bob) is not None


def test_an_agent_that_a_turn_may_name_is_kept_although_the_clock_is_set_back() -> None:
    (room, ada, bob), gate = with_bob(), asyncio.Event()
    room.provider.hooks["sent"] = gate.wait
    room.say(ada, script(("subscribe", {"name": "Bob"})))
    room.world.clock.step_wall(-HOUR * SECOND_NS)
    room.run(room.runtime.terminate(bob))
    room.settle(1)
    assert ended(room, bob) is None

    room.provider.hooks.clear()
    gate.set()
    room.settle(1)

    assert [kind for kind, _ in room.shown()] == ["notice"]
    room.settle(2 * HOUR)
    assert ended(room, bob) is not None


def test_an_agent_that_a_turn_in_doubt_may_name_is_kept() -> None:
    room, ada, bob = with_bob()
    # The line of this turn says that the child is created.
    room.say(ada, "hello")

    async def fail_barrier() -> None:
        room.files.fail("fdatasync", log_of(room.session(ada)), errno.EIO)

    room.provider.hooks["sent"] = fail_barrier
    room.say(ada, script(("subscribe", {"name": "Bob"})))
    room.provider.hooks.clear()
    assert room.named("Ada").stopped
    room.run(room.runtime.terminate(bob))
    room.settle(2 * HOUR)
    assert ended(room, bob) is None

    room.reopen()
    room.settle(1)

    assert [kind for kind, _ in room.shown()] == ["notice"]
    room.settle(2 * HOUR)
    assert ended(room, bob) is not None


def test_an_agent_whose_end_was_noticed_is_collected() -> None:
    room, ada, bob = with_eve()
    room.say(ada, script(("subscribe", {"name": "Bob"})))
    room.run(room.runtime.terminate(bob))
    room.settle()
    assert [kind for kind, _ in room.shown()] == ["notice"]

    room.settle(2 * HOUR)

    assert ended(room, bob) is not None


def test_an_agent_is_kept_until_the_watermark_of_the_others_is_durable() -> None:
    room, ada, bob = with_eve()
    room.say(ada, script(("send_message", {"to": "Bob", "payload": "hello"})))
    room.run(room.runtime.terminate(bob))
    room.files.fail("append", log_of(room.session(ada)), errno.ENOSPC)
    room.settle(HOUR + 1)
    assert ended(room, bob) is None

    room.settle(HOUR + 1)

    assert ended(room, bob) is not None


def test_an_agent_that_ends_during_a_checkpoint_is_collected_an_hour_later() -> None:
    room, _, bob = family()
    room.kill()
    room.files.fail("replace", "00000001.pack", errno.ENOSPC)
    room.open()
    recording = room.runtime._orchestrator.recording
    assert recording is not None
    assert recording.waiting
    # As long as a checkpoint is under way.
    room.run(recording._checkpointing.acquire())
    room.settle(HOUR + 1)
    room.check_no_failures()
    assert ended(room, bob) is None

    recording._checkpointing.release()
    room.settle(HOUR + 1)

    room.check_no_failures()
    assert ended(room, bob) is not None


def test_garbage_that_cannot_be_removed_is_reported_and_stops_nothing() -> None:
    room, ada, bob = family()
    path = f"agents/{room.session(bob)}"
    room.host.files.mkdir(f"{path}/notes")
    room.settle(HOUR + 1)

    report = room.reopen().report

    (problem,) = report.problems
    assert (problem.session_id, report.collected) == (path.removeprefix("agents/"), 0)
    assert f"{path}/notes" in problem.detail
    assert room.run(room.runtime.create_agent("Eve", request_id="new"))
    room.say(ada, "go on")
    assert room.named("Ada").turns == 2
    room.host.files.rmdir(f"{path}/notes")
    report = room.reopen().report
    assert (report.problems, report.collected, room.exists(path)) == ([], 1, False)
