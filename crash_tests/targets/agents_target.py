"""The base of the targets that run agents: one world, one runtime, schedules, living agents."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from crash_tests.targets.system_target import SystemTarget
from powercut.fuzz.action import Json
from sim.choices import Choices, Diverged, PlainChoices, SeededChoices
from sim.world import World
from system.agents.view import AgentView
from system.ports import Host
from system.runtime import Runtime

T = TypeVar("T")

_SCHEDULES: Final = 255


def choose_schedule(choices: Choices) -> Choices:
    """Choose the order of the tasks in one step: first ready first, or one of 255 others.

    One number determines the whole order, so that a reduction can replace it by the first.
    """
    seed = choices.integer("schedule", 0, _SCHEDULES)
    return SeededChoices(seed) if seed else PlainChoices()


class AgentsTarget(SystemTarget):
    """A target whose lifetimes run one ``Runtime`` on the event loop of its world."""

    changed_by_boot = frozenset(("/runtime.lock", "/state.db", "/state.db-wal", "/state.db-shm"))

    def __init__(self) -> None:
        self._world: World[Host]
        self._runtime: Runtime

    def attach(self, world: World[Host]) -> None:
        """Keep the world."""
        self._world = world

    def before_step(self, choices: Choices) -> None:
        """Choose the schedule of the step."""
        self._world.schedule = choose_schedule(choices)

    async def _start(self) -> None:
        self._runtime.start()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the loop until ``work`` is done; return its result."""
        result = self._world.loop.run_until_complete(work)
        self._raise_failures()
        return result

    async def _pass(self, steps: Json) -> None:
        """Let the loop take this number of steps."""
        assert isinstance(steps, int)
        for _ in range(steps):
            await self._world.clock.sleep(0)

    def _raise_failures(self) -> None:
        """Raise the first exception of a task that is not awaited."""
        for failure in self._runtime.failures:
            raise failure
        self._world.loop.raise_unhandled()

    def _files(self) -> dict[str, bytes]:
        """Return the files of the root by their paths in it."""
        files = self._world.disk.files()
        return {path[1:]: content for path, content in files.items()}

    def _living(self) -> list[AgentView]:
        return [agent for agent in self._runtime.view().agents if agent.alive]

    def _has_agents(self) -> bool:
        return bool(self._living())

    def _chosen(self, place: object) -> AgentView:
        """Return the living agent at a place, counted around the list of them."""
        living = self._living()
        assert isinstance(place, int)
        if not living:
            raise Diverged(0, "an agent", "none lives")
        return living[place % len(living)]
