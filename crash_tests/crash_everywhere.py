"""Crashes a fixed list of actions of the runtime target at each of its sites.

The actions run once to record their sites (``powercut.fuzz.coverage``). Then they run again for
each site, phase and kind of crash, up to that operation; the next lifetime recovers and is
checked. A crash during an operation needs no run of its own: it leaves a barrier as the crash
before it, and everything else as the crash after it, because ``NothingUnsyncedSurvives`` and no
write is killed between two pages (``faults.crash_counter`` has the table). After a crash behind an
operation the run is also finished, so that liveness is checked.
The boot that follows a crash can be crashed at each of its sites in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from itertools import product
from typing import Any, Final, Protocol

from crash_tests.rig.watched_host import watched
from crash_tests.targets.runtime import RuntimeTarget
from faults.crash_point import CrashKind, Phase
from powercut.fuzz.action import Action, Arguments
from powercut.fuzz.coverage import Coverage, Site, Watch
from powercut.fuzz.crash_runner import PlannedCrash
from powercut.fuzz.target import MakeTarget
from powercut.fuzz.target_run import TargetRun
from sim.choices import PlainChoices
from sim.disk.cache.operation import Sync
from sim.disk.crash.choose_survivors import Pattern
from sim.disk.crash.persistence import POSIX, PersistenceModel
from sim.world import World
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


class Watched(Protocol):
    """A target that records the sites of each lifetime in ``watch``."""

    watch: Watch


def watching(make: Callable[[], Any]) -> Callable[[], Any]:
    """Return the call that makes a target of the runtime with a watch."""

    def made() -> Any:
        target = make()
        attach, recover = target.attach, target.recover

        def attached(world: World[Host]) -> None:
            def recover_watched(host: Host) -> None:
                host, target.watch = watched(host, world.disk)
                recover(host)

            target.recover = recover_watched
            attach(world)

        target.attach = attached
        return target

    return made


class CrashEverywhere:
    """Crashes ``script`` at every site; the crashes are counted in ``coverage``.

    ``make`` returns the target, ``make_watched`` the same one with a watch.
    """

    def __init__(
        self,
        make: MakeTarget,
        make_watched: Callable[[], Any],
        script: Sequence[Action],
        coverage: Coverage,
        model: PersistenceModel = POSIX,
    ) -> None:
        self.coverage = coverage
        self._make = make
        self._make_watched = make_watched
        self._script = script
        self._model = model

    def run(self, names: Collection[str]) -> None:
        """Crash these actions at every site that is not in ``coverage``; raise a ``Violation``."""
        for place, sites in enumerate(self._sites()):
            during = self._script[place].name
            if during not in names:
                continue
            for number, site in enumerate(sites, 1):
                if site in self.coverage.met.get(during, ()):
                    continue
                for phase, kind in product(Phase, CrashKind):
                    self._crash(place, [PlannedCrash(number, phase, kind)], site, during)

    def run_boots(self, names: Collection[str]) -> None:
        """Crash the boots after a kill behind each barrier of these actions, at every site.

        The boots after one action count as one, ``boot after`` its name.
        """
        for place, sites in enumerate(self._sites()):
            if self._script[place].name not in names:
                continue
            during = f"boot after {self._script[place].name}"
            for number, site in enumerate(sites, 1):
                if site.operation != Sync.__name__:
                    continue
                first = PlannedCrash(number, Phase.AFTER, CrashKind.KILL)
                for nested, boot_site in enumerate(self._boot_sites(place, first), 1):
                    if boot_site in self.coverage.met.get(during, ()):
                        continue
                    for phase, kind in product(Phase, CrashKind):
                        crashes = [first, PlannedCrash(nested, phase, kind)]
                        self._crash(place, crashes, boot_site, during)

    def _boot_sites(self, place: int, crash: PlannedCrash) -> Sequence[Site]:
        """Return the sites of the boot that follows a crash in an action of the script."""
        target_run, watched = self._watched()
        self._perform_until(target_run, place)
        self._crash_action(target_run, place, [crash])
        target_run.crash_runner.world.stop()
        return watched.watch.sites

    def _watched(self) -> tuple[TargetRun, Watched]:
        targets: list[Any] = []

        def make() -> Any:
            targets.append(self._make_watched())
            return targets[-1]

        return TargetRun(make, self._model), targets[0]

    def _sites(self) -> list[Sequence[Site]]:
        """Run the whole script; return the sites of each of its actions."""
        target_run, watched = self._watched()
        watch = watched.watch
        found: list[Sequence[Site]] = []
        for action in self._script:
            before = len(watch.sites)
            target_run.perform(action, PlainChoices())
            found.append(watch.sites[before:])
        target_run.finish()
        return found

    def _perform_until(self, target_run: TargetRun, place: int) -> None:
        for action in self._script[:place]:
            target_run.perform(action, PlainChoices())

    def _crash_action(
        self, target_run: TargetRun, place: int, crashes: Sequence[PlannedCrash]
    ) -> None:
        plan: Arguments = {
            "action": self._script[place].plain(), "crashes": [crash.plain() for crash in crashes],
        }  # fmt: skip
        target_run.perform(Action(CRASH, plan), NothingUnsyncedSurvives())

    def _crash(self, place: int, crashes: Sequence[PlannedCrash], site: Site, during: str) -> None:
        """Crash an action of the script, and perhaps the boot after it; ``site`` is the last."""
        last = crashes[-1]
        if last.phase is not Phase.DURING:
            self._run(place, crashes, site)
        self.coverage.hit(during, site, last.phase, last.kind)

    def _run(self, place: int, crashes: Sequence[PlannedCrash], site: Site) -> None:
        target_run = TargetRun(self._make, self._model)
        self._perform_until(target_run, place)
        self._crash_action(target_run, place, crashes)
        *_, met = target_run.crash_runner.crashes
        assert len(target_run.crash_runner.crashes) == len(crashes)
        assert site.operation.startswith(met.operation)
        if crashes[-1].phase is Phase.AFTER:
            target_run.finish()
        else:
            # The disk is as after the previous operation, whose run was finished.
            target_run.crash_runner.world.stop()
