"""Every recovery of a wreck that is crashed, and what the next one makes of it.

What an uncrashed recovery leaves is the measure. A crashed one that is recovered must leave
**the same**: the same files, the same records, the same lines in the same order, but for what
tells when a line was written (``ts``, ``durable``, timestamps of messages, ``downtime_ns``)
and the epoch in the lock. What a power cut tore of the recovery's own lines may lie beside
them, put aside.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from crash_tests.rig.host import simulated_host
from crash_tests.rig.watched_host import watched as watched_host
from faults.crash_counter import CrashCounter
from faults.crash_point import CrashKind, Phase
from oracles.runtime.shadow_runtime import check_idempotent
from oracles.violation import Violation
from powercut.fuzz.coverage import Coverage, Site
from sim.choices import PlainChoices
from sim.disk.crash.image import Image
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk
from sim.errors import PowerOff, SimulatedCrash
from sim.world import World
from system.agents.view import AgentView
from system.providers.scripted import ScriptedProvider
from system.recovery.recovery import PASSES
from system.runtime import Options, Runtime
from system.storage.framing import Framing
from tests.crash_tests.wreck import shadow, wreck

PASS_NAMES: Final = tuple(recover.__name__ for recover in PASSES)
MOST_STATES: Final = 12
NESTED_EVERY: Final = 24
"""The recovery from every so many crashes is crashed again, at every operation."""

_WHEN: Final = frozenset(("timestamp", "downtime_ns"))


class NotTheSame(Violation):
    """Two recoveries of one disk have left different things."""


@dataclass(frozen=True)
class Recovered:
    """What a recovery has left: on the disk, and in memory."""

    files: dict[str, bytes]
    agents: tuple[AgentView, ...]
    user: tuple[str, ...]
    image: Image
    disk: Disk
    sites: tuple[Site, ...]


def recover(image: Image, framing: Framing, *, watched: bool = False) -> Recovered:
    """Boot an image and recover it; judge what is there by the oracle's laws."""
    world = World(simulated_host, PlainChoices(), image=image)
    host, sites = world.boot(), list[Site]()
    recovery = Runtime.recover(host, {"scripted": ScriptedProvider()}, Options(framing=framing))
    if watched:
        recovery.close()
        host, watch = watched_host(host, world.disk)
        sites = watch.sites
        recovery = Runtime.recover(host, {"scripted": ScriptedProvider()}, Options(framing=framing))
        watch.main = recovery
    try:
        view = world.loop.run_until_complete(recovery).view()
        disk, left = world.disk, world.disk.snapshot()
    finally:
        world.kill()
    files = {path[1:]: content for path, content in left.files().items()}
    told = shadow()
    seen = told.read(files)
    told.settle(seen)
    told.check_view(view, seen, idle=True)
    user = tuple(message.message_id for message in view.user)
    return Recovered(files, view.agents, user, left, disk, tuple(sites))


def same(recovered: Recovered) -> dict[str, object]:
    """Return everything that a crash in a recovery must not change."""
    files: dict[str, object] = dict(recovered.files)
    del files["runtime.lock"]
    for path, content in recovered.files.items():
        if path.endswith("events.jsonl"):
            files[path] = [_without_time(json.loads(line)) for line in content.splitlines()]
    aside = [content for path, content in recovered.files.items() if ".quarantine." in path]
    if len(set(aside)) < len(aside):
        raise NotTheSame("one damage was put aside twice", aside=aside)
    agents = {look.agent_id: look for look in recovered.agents}
    return {**files, "agents": agents, "user": recovered.user}


def _without_time(line: Any) -> Any:
    """Return a line without what tells when it was written."""
    data = {name: value for name, value in line["data"].items() if name not in _WHEN}
    if isinstance(data.get("payload"), dict):
        data["payload"] = {k: v for k, v in data["payload"].items() if k not in _WHEN}
    return line["seq"], line["session_id"], line["event"], data


@dataclass
class Crashes:
    """``violations``: the first of each pass. ``judged``: how many images came of each pass."""

    framing: Framing
    coverage: Coverage = field(default_factory=Coverage)
    judged: Counter[str] = field(default_factory=Counter)
    nested: Counter[str] = field(default_factory=Counter)
    violations: dict[str, Exception] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._measure = recover(wreck(), self.framing, watched=True)
        self._same = same(self._measure)
        self._known: set[object] = set()

    def at_every_operation(self) -> None:
        """Crash the recovery of the wreck in each phase of each operation."""
        again: list[tuple[str, Image]] = []
        for number, site in enumerate(self._measure.sites, 1):
            name = pass_of(site)
            for phase in Phase:
                disk = self._crashed(number, phase)
                kill, cuts = disk.snapshot(), list(_cuts(StateSpace(disk.unsynced()), disk))
                for kind, images in ((CrashKind.KILL, [kill]), (CrashKind.POWER_CUT, cuts)):
                    for image in images:
                        self.judged[name] += self._judge(name, image)
                    self.coverage.hit(name, site, phase, kind)
                if phase is Phase.AFTER and number % NESTED_EVERY == 0:
                    again += [(name, kill), (name, cuts[-1])]
        for name, image in again:
            self._crash_again(name, image)

    def _crashed(self, number: int, phase: Phase) -> Disk:
        world = World(simulated_host, PlainChoices(), image=wreck())
        host, disk = world.boot(), world.disk
        disk.interposer = counter = CrashCounter(disk, number, phase)
        options = Options(framing=self.framing)
        with suppress(SimulatedCrash, PowerOff):
            world.loop.run_until_complete(
                Runtime.recover(host, {"scripted": ScriptedProvider()}, options)
            )
        assert counter.hit is not None
        world.kill()
        return disk

    def _judge(self, name: str, image: Image, *, twice: bool = True) -> bool:
        """Recover an image, perhaps twice; return False if an equal one was judged before."""
        files = image.files()
        del files["/runtime.lock"]
        key = tuple(files.items())
        if key in self._known:
            return False
        self._known.add(key)
        try:
            first = recover(image, self.framing)
            self._must_be_same(first)
            if twice:
                check_idempotent(first.files, recover(first.image, self.framing).files)
        except Exception as failure:  # noqa: BLE001 - the test of this pass raises it
            self.violations.setdefault(name, failure)
        return True

    def _must_be_same(self, recovered: Recovered) -> None:
        found = same(recovered)
        changed = sorted(
            path for path in found.keys() | self._same.keys()
            if found.get(path) != self._same.get(path)
            and not (path not in self._same and ".quarantine." in path)
        )  # fmt: skip
        if changed:
            raise NotTheSame(
                "a crash in a recovery has changed what is left", paths=changed,
                crashed=found.get(changed[0]), uncrashed=self._same.get(changed[0]),
            )  # fmt: skip

    def _crash_again(self, name: str, image: Image) -> None:
        """Crash the recovery of a crashed recovery after every operation."""
        for nested in _images_of(recover(image, self.framing).disk):
            self.nested[name] += self._judge(name, nested, twice=False)


def pass_of(site: Site) -> str:
    """Return the name of the pass that an operation is done for."""
    return next(name for name in PASS_NAMES if site.is_for(f"Recovery.{name}"))


def _cuts(space: StateSpace, disk: Disk) -> Iterator[Image]:
    """Yield what a power cut may leave: everything while it is little, else what tells most.

    The last one is that where nothing unsynced has survived.
    """
    states = list(islice(space.all(), MOST_STATES))
    if not space.complete:
        states = [
            space.state_of(survivors) for survivors in islice(space.representative(), MOST_STATES)
        ]
    lost = SurvivorSet(lost=tuple(range(len(space.micros))))
    for state in (*states, space.state_of(lost)):
        yield Image.of_platter(state.inodes, disk.next_inode)


def _images_of(disk: Disk) -> Iterator[Image]:
    """Yield what a kill, and a power cut with nothing kept, leaves after each operation."""
    unsynced = Unsynced(disk.model, disk.image.platter, disk.image.unsynced)
    for number, operation in enumerate(disk.journal, 1):
        unsynced.advance(operation, number)
        space = StateSpace(unsynced)
        kept = space.state_of(SurvivorSet()).inodes
        yield Image(unsynced.platter, unsynced.carried_over(number), kept, disk.next_inode)
        lost = SurvivorSet(lost=tuple(range(len(space.micros))))
        yield Image.of_platter(space.state_of(lost).inodes, disk.next_inode)
