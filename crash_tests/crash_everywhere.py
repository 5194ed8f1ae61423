"""Crashes a fixed list of actions of the runtime target at each of its sites.

The actions run once to record their sites (``powercut.fuzz.coverage``). Then they run again for
each site, phase and kind of crash, up to that operation; the next lifetime recovers and is
checked. After a crash behind an operation the run is also finished, so that liveness is checked.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, Final

from crash_tests.rig.watched_host import watched
from crash_tests.targets.runtime import RuntimeTarget
from faults.crash_point import CrashKind, Phase
from powercut.fuzz.action import Action, Arguments
from powercut.fuzz.coverage import Coverage, Site, Watch
from powercut.fuzz.crash_runner import PlannedCrash
from powercut.fuzz.target_run import TargetRun
from sim.choices import PlainChoices
from sim.disk.crash.choose_survivors import Pattern
from sim.disk.crash.persistence import POSIX, PersistenceModel
from system.ports import Host, Provider
from system.runtime import Options, Runtime
from system.storage.framing import Framing

CRASH: Final = "crash_and_recover"


class NothingUnsyncedSurvives(PlainChoices):
    """The simplest choices, except that a power cut loses all unsynced operations."""

    def integer(self, label: str, lo: int, hi: int) -> int:
        """Return the simplest choice, or the empty survivor set."""
        return int(Pattern.NONE) if label == "survivors" else super().integer(label, lo, hi)


class WatchedRuntime(RuntimeTarget):
    """The runtime target, which records the sites of each lifetime in ``watch``."""

    def __init__(self, framing: Framing) -> None:
        super().__init__("runtime", framing, self._recovered)
        self.watch: Watch

    def recover(self, host: Host) -> None:
        """Recover on a watched host."""
        host, self.watch = watched(host, self._world.disk)
        super().recover(host)

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
    """Crashes ``script`` at every site; ``run`` counts the crashes in ``coverage``."""

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
        """Crash the script at every site that is not in ``coverage``; raise a ``Violation``."""
        for place, sites in enumerate(self._sites()):
            during = self._script[place].name
            for number, site in enumerate(sites, 1):
                if site in self.coverage.met.get(during, ()):
                    continue
                for phase, kind in product(Phase, CrashKind):
                    self._crash(place, PlannedCrash(number, phase, kind), site)

    def _sites(self) -> list[Sequence[Site]]:
        """Run the whole script; return the sites of each of its actions."""
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
        target_run.perform(Action(CRASH, plan), NothingUnsyncedSurvives())
        (met,) = target_run.crash_runner.crashes
        assert site.operation.startswith(met.operation)
        if crash.phase is Phase.AFTER:
            target_run.finish()
        else:
            # The disk is as after the previous operation, whose run was finished.
            target_run.crash_runner.world.kill()
        self.coverage.hit(crashed.name, site, crash.phase, crash.kind)
