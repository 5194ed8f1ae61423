"""How many descriptors a runtime holds: as many as it has conversations open, not sessions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from system.host import real_host, run
from system.providers.scripted import ScriptedProvider
from system.runtime import Options, Runtime
from tests.meta.source_tree import ROOT
from tests.unit.system.agents.room import opened as opened_room

SLOTS = 2
AGENTS = 12


SEGMENT = "00000001.wal"
"""The recording has one descriptor, for all sessions."""


def held(root: Path) -> list[str]:
    """The files below ``root`` that this process has open, by their names."""
    names = []
    for number in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            continue
        if path.startswith(f"{root}/"):
            names.append(path.rpartition("/")[2])
    return sorted(names)


async def opened(root: Path) -> Runtime:
    providers = {"scripted": ScriptedProvider()}
    return await Runtime.recover(real_host(str(root)), providers, Options(slots=SLOTS))


async def work(root: Path) -> list[str]:
    """Let more agents than there are slots take a turn each."""
    runtime = await opened(root)
    runtime.start()
    for number in range(AGENTS):
        agent_id = await runtime.create_agent(f"agent {number}")
        await runtime.send(agent_id, {"do": [["send_message", {"to": "USER", "payload": 1}]]})
    await runtime.idle()
    found = held(root)
    await runtime.close()
    return found


async def end(root: Path) -> list[str]:
    runtime = await opened(root)
    runtime.start()
    for agent in runtime.view().agents:
        await runtime.send(agent.agent_id, {"do": [["complete", {"result": 1}]]})
    await runtime.idle()
    found = held(root)
    await runtime.close()
    return found


async def recover(root: Path) -> list[str]:
    runtime = await opened(root)
    found = held(root)
    await runtime.close()
    return found


async def send_without_turns(root: Path) -> list[str]:
    runtime = await opened(root)
    for agent in runtime.view().agents:
        await runtime.send(agent.agent_id, "for later")
    found = held(root)
    await runtime.close()
    return found


def test_only_sessions_with_a_conversation_have_their_logs_open(tmp_path: Path) -> None:
    assert run(work(tmp_path)) == [SEGMENT, *["events.jsonl"] * SLOTS, "runtime.lock"]


def test_after_recovery_only_the_lock_is_open(tmp_path: Path) -> None:
    run(work(tmp_path))

    assert run(recover(tmp_path)) == ["runtime.lock"]


def test_after_the_recovery_of_a_killed_runtime_only_the_lock_is_open() -> None:
    room, ada = opened_room()
    room.say(ada, "hello")
    room.reopen(start=False)
    calls = room.files.calls

    opened = Counter(call.split()[1] for call in calls if call.startswith("open-"))
    closed = Counter(call.split()[1] for call in calls if call.startswith("close "))

    assert f"wal/{SEGMENT}" in opened
    assert opened - closed == Counter(["runtime.lock"])


def test_agents_that_receive_messages_and_take_no_turn_hold_no_descriptor(tmp_path: Path) -> None:
    run(work(tmp_path))

    assert run(send_without_turns(tmp_path)) == ["runtime.lock"]


def test_agents_that_have_ended_hold_nothing(tmp_path: Path) -> None:
    run(work(tmp_path))

    assert run(end(tmp_path)) == ["00000002.wal", "runtime.lock"]


def test_sixty_sessions_need_far_fewer_descriptors(tmp_path: Path) -> None:
    for jobs in (60, 66):
        script = (
            f"ulimit -n 32; exec {sys.executable} -m system demo --root {tmp_path} --jobs {jobs}"
        )
        ran = subprocess.run(
            ["/bin/sh", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip

        assert (ran.returncode, ran.stderr) == (0, "")
