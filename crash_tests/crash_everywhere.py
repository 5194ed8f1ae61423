"""Crashes a fixed script of a runtime at every site of it, and says which sites were hit.

The script runs once to learn its sites. Then it runs again for each of them, in each phase,
for each kind of crash, up to that one operation; the next lifetime recovers, and the oracle
judges it. After the crashes behind an operation it judges also that all comes to rest.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, Final

from crash_tests.targets.runtime import RuntimeTarget
from faults.crash_point import CrashKind, Phase
from powercut.fuzz.action import Action, Arguments
from powercut.fuzz.coverage import Coverage, Site, Watch, WatchedWorkers
from powercut.fuzz.crash_plan import PlannedCrash
from powercut.fuzz.target_run import TargetRun
from sim.choices import PlainChoices
from sim.disk.crash.choose_survivors import Pattern
from sim.disk.crash.persistence import POSIX, PersistenceModel
from system.ports import Host, Provider
from system.runtime import Options, Runtime
from system.storage.framing import Framing

CRASH: Final = "crash_and_recover"


class NothingPendingSurvives(PlainChoices):
    """The plainest run, but what no barrier has covered is lost with the power."""

    def integer(self, label: str, lo: int, hi: int) -> int:
        """Return the simplest choice, except for what survives."""
        return int(Pattern.NONE) if label == "survivors" else super().integer(label, lo, hi)


class WatchedRuntime(RuntimeTarget):
    """The runtime, with a watch over the operations of each lifetime."""

    def __init__(self, framing: Framing) -> None:
        super().__init__("runtime", framing, self._recovered)
        self.watch: Watch

    def recover(self, host: Host) -> None:
        """Recover under the watch."""
        self.watch = Watch(self._world.disk)
        workers = WatchedWorkers(host.workers, self.watch)
        super().recover(replace(host, workers=workers))

    async def _recovered(
        self, host: Host, providers: Mapping[str, Provider], options: Options
    ) -> Runtime:
        recovery: Coroutine[Any, Any, Runtime] = Runtime.recover(host, providers, options)
        self.watch.main = recovery
        try:
            return await recovery
        finally:
            self.watch.main = None


class CrashEverywhere:
    """``coverage`` grows by ``run``; what the oracle finds is raised there."""

    def __init__(
        self,
        framing: Framing,
        script: Sequence[Action],
        coverage: Coverage,
        model: PersistenceModel = POSIX,
    ) -> None:
        self.coverage = coverage
        self._framing = framing
        self._script = script
        self._model = model

    def run(self) -> None:
        """Crash every site that the script has not been crashed at before."""
        for place, sites in enumerate(self._sites()):
            during = self._script[place].name
            for number, site in enumerate(sites, 1):
                if site in self.coverage.met.get(during, ()):
                    continue
                for phase, kind in product(Phase, CrashKind):
                    self._crash(place, PlannedCrash(number, phase, kind), site)

    def _sites(self) -> list[Sequence[Site]]:
        """Run the script whole; return the sites of each of its actions."""
        targets: list[WatchedRuntime] = []

        def make() -> WatchedRuntime:
            targets.append(WatchedRuntime(self._framing))
            return targets[-1]

        target_run = TargetRun(make, self._model)
        watch = targets[0].watch
        found: list[Sequence[Site]] = []
        for action in self._script:
            before = len(watch.sites)
            target_run.perform(action, PlainChoices())
            found.append(watch.sites[before:])
        target_run.finish()
        return found

    def _crash(self, place: int, crash: PlannedCrash, site: Site) -> None:
        target_run = TargetRun(partial(RuntimeTarget, "runtime", self._framing), self._model)
        for action in self._script[:place]:
            target_run.perform(action, PlainChoices())
        crashed = self._script[place]
        plan: Arguments = {"action": crashed.plain(), "crashes": [crash.plain()]}
        target_run.perform(Action(CRASH, plan), NothingPendingSurvives())
        (met,) = target_run.crash_runner.crashes
        assert site.operation.startswith(met.operation_name)
        if crash.phase is Phase.AFTER:
            target_run.finish()
        else:
            # It comes to rest as the crash after the operation before did.
            target_run.crash_runner.world.kill()
        self.coverage.hit(crashed.name, site, crash.phase, crash.kind)
