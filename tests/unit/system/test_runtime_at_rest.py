"""The runtime at rest: agents that have ended, and work that is done, cost nothing."""

from __future__ import annotations

import pytest

from system.collector import CollectionOptions
from system.runtime import Options
from tests.unit.system.agents.fake_provider import play
from tests.unit.system.agents.room import SECOND_NS, Room, opened

HOUR = 3600
AFTER_AN_HOUR = Options(collection=CollectionOptions(HOUR * SECOND_NS))


def test_boot_makes_the_same_calls_with_and_without_collected_agents() -> None:
    calls = []
    for ended in (1, 12):
        room = Room(AFTER_AN_HOUR)
        room.open()
        room.create("Ada")
        for number in range(ended):
            room.run(room.runtime.terminate(room.create(f"agent {number}")))
        room.settle(HOUR + 1)
        assert room.runtime.report.collected == ended
        room.run(room.runtime.close())
        room.kill()
        room.files.calls.clear()
        room.open()
        calls.append(list(room.files.calls))

    assert calls[0] == calls[1]


def test_a_day_without_work_costs_no_call_and_needs_no_timer() -> None:
    room = Room(AFTER_AN_HOUR)
    room.open()
    for number in range(1000):
        room.create(f"agent {number}")
    done = room.world.disk.operations

    room.settle(24 * HOUR)

    assert room.world.disk.operations == done
    assert room.runtime._collector is not None
    assert room.runtime._collector.tasks() == []


@pytest.mark.parametrize("work", [1, 10])
def test_the_space_of_the_living_is_bounded_however_much_work_was_done(work: int) -> None:
    options = Options(collection=CollectionOptions(HOUR * SECOND_NS), snapshot_lines=16)
    room, ada = opened(options)
    for number in range(2 * work):
        room.say(ada, play(("spawn_agent", {"name": "Bob", "instructions": "work"})))
        room.say(room.named("Bob").agent_id, play(("complete", {"result": number})))
    room.settle(3 * HOUR)

    files = {
        path: content
        for path, content in room.world.disk.files().items()
        if not path.startswith(("/archive/", "/records/", "/wal/", "/snapshots/"))
    }
    assert [agent.name for agent in room.runtime.view().agents] == ["Ada"]
    old_segments = [path for path in files if path.count("events.") and path.endswith(".jsonl")]
    # Three for each living agent, one for each of its old segments, and eight.
    assert len(files) <= 3 + len(old_segments) + 8
    conversation = sum(
        len(exchange.prompt) + len(exchange.response)
        for exchange in room.run(room.agent(ada).log.conversation())
    )
    kept = sum(len(content) for path, content in files.items() if "state.db" not in path)
    snapshot = max(len(line) for path in old_segments for line in files[path].splitlines())
    # A line has a prompt, an answer, and what the turn did; a snapshot names no collected child.
    assert kept <= 8 * conversation + 64 * 1024
    assert snapshot < 16 * 1024
