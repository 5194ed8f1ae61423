"""Crashes of the recovery of a damaged root, compared with its uncrashed recovery.

A crashed recovery that is recovered must leave the same files, records and lines, in the same
order, as an uncrashed one. Times (``ts``, ``durable``, timestamps of messages, ``downtime_ns``)
and the epoch in the lock may differ, and there may be more quarantine files: lines of the
recovery itself that a power cut has torn.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any, Final

from crash_tests.rig.host import simulated_host
from crash_tests.rig.watched_host import watched as watched_host
from faults.crash_point import CrashKind, Phase
from oracles.recording.pack_reader import read_pack
from oracles.recording.record_reader import ObservedRecord
from oracles.recording.turn_records import check_turn_records
from oracles.runtime.shadow_runtime import check_idempotent
from oracles.violation import Violation
from powercut.fuzz.coverage import Coverage, Site
from sim.choices import PlainChoices
from sim.disk.cache.operation import Sync
from sim.disk.crash.image import Image
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk
from sim.world import World
from system.agents.view import AgentView
from system.providers.scripted import ScriptedProvider
from system.recovery.recovery import PASSES
from system.runtime import Options, Runtime
from system.storage.framing import Framing
from tests.crash_tests.damaged_root import DAMAGED, EXECUTION, SESSION, damaged_root, shadow

PASS_NAMES: Final = tuple(recover.__name__ for recover in PASSES)
MOST_STATES: Final = 12

RECORDING: Final = ("wal/", "records/", "snapshots/", "checkpoint")

_WHEN: Final = frozenset(("timestamp", "downtime_ns"))


class NotTheSame(Violation):
    """Two recoveries of one disk have different results."""


@dataclass(frozen=True)
class Recovered:
    """The result of a recovery, on the disk and in memory."""

    files: dict[str, bytes]
    agents: tuple[AgentView, ...]
    user: tuple[str, ...]
    image: Image
    disk: Disk
    sites: tuple[Site, ...]


def recover(image: Image, framing: Framing, *, watched: bool = False) -> Recovered:
    """Boot an image and recover it; check the result by the oracle's laws."""
    world = World(simulated_host, PlainChoices(), image=image)
    host, sites = world.boot(), list[Site]()
    options = Options(framing=framing)
    recovery = Runtime.recover(host, {"scripted": ScriptedProvider()}, options)
    if watched:
        recovery.close()
        host, watch = watched_host(host, world.disk)
        sites = watch.sites
        recovery = Runtime.recover(host, {"scripted": ScriptedProvider()}, options)
        watch.main = recovery
    try:
        view = world.loop.run_until_complete(recovery).view()
        disk, left = world.disk, world.disk.unmounted()
    finally:
        world.stop()
    files = {path[1:]: content for path, content in left.files().items()}
    oracle = shadow()
    seen = oracle.read(files)
    oracle.settle(seen)
    oracle.check_view(view, seen, idle=True)
    records = check_turn_records(files, [SESSION[name] for name in DAMAGED])
    if records != len(EXECUTION):
        raise NotTheSame("a recovery has lost a record", found=records)
    user = tuple(message.message_id for message in view.user)
    return Recovered(files, view.agents, user, left, disk, tuple(sites))


def same(recovered: Recovered) -> dict[str, object]:
    """Return the part of a result that a crash in the recovery must not change."""
    files: dict[str, object] = dict(recovered.files)
    records = dict[str, ObservedRecord]()
    del files["runtime.lock"]
    for path, content in recovered.files.items():
        if path.startswith(RECORDING):
            # A crashed recovery leaves packs of other numbers.
            del files[path]
        if path.startswith("records/"):
            records |= read_pack(path, content)
        if path.endswith("events.jsonl"):
            files[path] = [_without_time(json.loads(line)) for line in content.splitlines()]
    aside = [content for path, content in recovered.files.items() if ".quarantine." in path]
    if len(set(aside)) < len(aside):
        raise NotTheSame("the same bytes were quarantined twice", aside=aside)
    agents = {agent.agent_id: agent for agent in recovered.agents}
    return {**files, "agents": agents, "user": recovered.user, "records": records}


def _without_time(line: Any) -> Any:
    """Return a line without the times in it."""
    data = {name: value for name, value in line["data"].items() if name not in _WHEN}
    if isinstance(data.get("payload"), dict):
        data["payload"] = {k: v for k, v in data["payload"].items() if k not in _WHEN}
    return line["seq"], line["session_id"], line["event"], data


@dataclass
class Crashes:
    """The crashes of one recovery.

    Of ``nested_every`` operations one has a recovery that is crashed again, at every operation of
    its own. ``violations`` holds the first failure of each pass, ``checked`` the number of crash
    images.
    """

    framing: Framing
    nested_every: int
    coverage: Coverage = field(default_factory=Coverage)
    checked: Counter[str] = field(default_factory=Counter)
    nested: Counter[str] = field(default_factory=Counter)
    violations: dict[str, Exception] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._measure = recover(damaged_root(), self.framing, watched=True)
        self._same = same(self._measure)
        self._known: set[object] = set()

    def at_every_operation(self) -> None:
        """Crash the recovery of the root in each phase of each operation."""
        again: list[tuple[str, Image]] = []
        disk, sites = self._measure.disk, self._measure.sites
        crashes = pairwise(_crashes_of(disk))
        for number, (site, operation, (before, after)) in enumerate(
            zip(sites, disk.journal, crashes, strict=True), 1
        ):
            name = pass_of(site)
            # A part of a barrier makes nothing durable; all of any other operation happens.
            during = before if isinstance(operation, Sync) else after
            for phase, (kill, *cuts) in zip(Phase, (before, during, after), strict=True):
                for kind, images in ((CrashKind.KILL, [kill]), (CrashKind.POWER_CUT, cuts)):
                    for image in images:
                        self.checked[name] += self._check(name, image)
                    self.coverage.hit(name, site, phase, kind)
            if number % self.nested_every == 0:
                again += [(name, after[0]), (name, after[-1])]
        for name, image in again:
            self._crash_again(name, image)

    def _check(self, name: str, image: Image, *, twice: bool = True) -> bool:
        """Recover an image, perhaps twice; return False if an equal one was checked before."""
        files = image.files()
        del files["/runtime.lock"]
        key = tuple(files.items())
        if key in self._known:
            return False
        self._known.add(key)
        try:
            first = recover(image, self.framing)
            self._require_same(first)
            if twice:
                check_idempotent(first.files, recover(first.image, self.framing).files)
        except Exception as failure:  # noqa: BLE001 - the test of this pass raises it
            self.violations.setdefault(name, failure)
        return True

    def _require_same(self, recovered: Recovered) -> None:
        found = same(recovered)
        changed = sorted(
            path for path in found.keys() | self._same.keys()
            if found.get(path) != self._same.get(path)
            and not (path not in self._same and ".quarantine." in path)
        )  # fmt: skip
        if changed:
            raise NotTheSame(
                "a crash in a recovery has changed its result", paths=changed,
                crashed=found.get(changed[0]), uncrashed=self._same.get(changed[0]),
            )  # fmt: skip

    def _crash_again(self, name: str, image: Image) -> None:
        """Crash the recovery of an image after every operation."""
        _, *crashes = _crashes_of(recover(image, self.framing).disk)
        for kill, *_, lost in crashes:
            for nested in (kill, lost):
                self.nested[name] += self._check(name, nested, twice=False)


def pass_of(site: Site) -> str:
    """Return the name of the pass that makes an operation."""
    return next(name for name in PASS_NAMES if site.is_for(name))


def _crashes_of(disk: Disk) -> Iterator[list[Image]]:
    """Yield the images of the crashes at the boot and after each operation: a kill, power cuts."""
    unsynced = Unsynced(disk.model, disk.image.platter, disk.image.unsynced)
    for number, operation in enumerate((None, *disk.journal)):
        if operation is not None:
            unsynced.advance(operation, number)
        space = StateSpace(unsynced)
        kept, carried = space.state_of(SurvivorSet()).inodes, unsynced.carried_over(number)
        kill = Image(unsynced.platter, carried, kept, disk.next_inode)
        yield [kill, *_cuts(space, disk.next_inode)]


def _cuts(space: StateSpace, next_inode: int) -> Iterator[Image]:
    """Yield the images of a power cut: all if they are few, else the representative ones.

    In the last one no unsynced operation has survived.
    """
    states = list(islice(space.all(), MOST_STATES))
    if not space.complete:
        states = [
            space.state_of(survivors) for survivors in islice(space.representative(), MOST_STATES)
        ]
    lost = SurvivorSet(lost=tuple(range(len(space.micros))))
    for state in (*states, space.state_of(lost)):
        yield Image.of_platter(state.inodes, next_inode)
