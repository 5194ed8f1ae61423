"""A root whose runtime was killed between the line of a turn and the record of its response.

The record of Dan is in a pack. Cleo has two in the log, the first of which is invalidated. The
turn of Bob was interrupted. The turn of Ada is committed, and its record has no response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, Final, NamedTuple

from crash_tests.rig.host import simulated_host
from faults.crash_counter import CrashCounter
from faults.crash_point import Phase
from oracles.runtime.shadow_runtime import ShadowRuntime
from sim.choices import PlainChoices
from sim.disk.cache.operation import Operation
from sim.disk.crash.image import Image
from sim.errors import PowerOff, SimulatedCrash
from sim.world import World
from system.ports import Host, Provider
from system.providers.scripted import ScriptedProvider
from system.runtime import Options, Runtime
from tests.crash_tests.stage import durable
from tests.unit.system.agents.fake_provider import FakeProvider

OPTIONS: Final = Options()
NAMES: Final = ("Dan", "Cleo", "Bob", "Ada")
SLOW: Final = "Bob"
SENT: Final = (("Dan", "1"), ("Cleo", "2"), ("Cleo", "3"), ("Bob", "4"), ("Ada", "5"))
"""The messages, each with a digit of its id."""


class RecordedTeam(NamedTuple):
    """The disk after the kill, and the ids of the agents by name."""

    image: Image
    agents: Mapping[str, str]

    def shadow(self) -> ShadowRuntime:
        """Return an oracle with the calls of the operator."""
        oracle = ShadowRuntime()
        for name, agent_id in self.agents.items():
            oracle.operator.creates.begin(name, name, "", provider_of(name), "")
            oracle.operator.acknowledge_create(name, agent_id)
        for name, digit in SENT:
            oracle.operator.sends.begin(digit * 32, self.agents[name], digit)
            oracle.operator.sends.acknowledge(digit * 32)
        return oracle


def provider_of(name: str) -> str:
    return "slow" if name == SLOW else "scripted"


class Team:
    """The operator of one root over two lifetimes."""

    def __init__(self, scripted: Provider | None = None) -> None:
        self.world = World(simulated_host, PlainChoices())
        self.agents: dict[str, str] = {}
        slow = FakeProvider()
        slow.hooks["send"] = asyncio.Event().wait
        self._providers = {"scripted": scripted or ScriptedProvider(), "slow": slow}
        self._runtime: Runtime
        self._boot()

    def prepare(self) -> None:
        """Do everything but the turn of Ada."""
        for name in NAMES:
            created = self._runtime.create_agent(name, "", provider_of(name), request_id=name)
            self.agents[name] = self._run(created)
        self._send(*SENT[0])
        self._run(self._runtime.close())
        self.world.kill()
        self._boot()
        self._send(*SENT[1])
        records = self._runtime.records
        assert records is not None
        records.invalidate(list(records.list_all())[-1], "wrong answer", "Anna")
        for name, digit in SENT[2:-1]:
            self._send(name, digit)

    def perform(self) -> None:
        """Let Ada answer her message."""
        self._send(*SENT[-1])

    def kill(self) -> RecordedTeam:
        """Kill the process; all of its writes are durable."""
        image = self.world.disk.snapshot()
        self.world.kill()
        return RecordedTeam(Image.of_platter(image.cached, image.next_inode), self.agents)

    def _boot(self) -> None:
        host: Host = self.world.boot()
        self._runtime = self._run(Runtime.open(host, self._providers, OPTIONS))

    def _send(self, name: str, digit: str) -> None:
        self._run(self._runtime.send(self.agents[name], digit, digit * 32))
        self.world.loop.advance(0)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.world.loop.run_until_complete(work)


@cache
def recorded_team() -> RecordedTeam:
    """Kill the runtime when the line of Ada's turn is durable."""
    return killed_at_commit(Team)


def killed_at_commit(make_team: Callable[[], Team]) -> RecordedTeam:
    """Kill the runtime of a team when the line of the turn in ``perform`` is durable."""
    team = make_team()
    team.prepare()
    disk = team.world.disk
    disk.interposer = counter = CrashCounter(
        disk, durable(_operations(make_team), "turn.complete"), Phase.AFTER
    )
    with suppress(SimulatedCrash, PowerOff):
        team.perform()
    assert counter.hit is not None
    return team.kill()


def _operations(make_team: Callable[[], Team]) -> list[Operation]:
    """Return the operations of ``perform``."""
    team = make_team()
    team.prepare()
    before = team.world.disk.operations
    team.perform()
    operations = list(team.world.disk.journal[before:])
    team.kill()
    return operations
