"""The whole runtime: a small team at work, crashed everywhere; recovered, and judged by all laws.

The workload runs once. Whatever somebody learns meanwhile is a **moment** of its story: a call
of the operator began or returned, a provider was asked, or answered. The shadow that judges a
crash is told the moments before it, and so knows exactly what was known then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from crash_tests.targets.report import check_report
from crash_tests.targets.watched_providers import WatchedProviders
from crash_tests.workloads.host import host_of
from crash_tests.workloads.workload import Scenario
from oracles.history import History, Known
from oracles.runtime.root_snapshot import SnapshotReader
from oracles.runtime.shadow_runtime import ShadowRuntime
from oracles.runtime.shadow_turns import ShadowTurns
from powercut.explorer.explore import Check, Workload
from powercut.explorer.limits import Limits
from sim.choices import PlainChoices
from sim.disk.calls.process import Process
from sim.loop.clock import SimulatedClock
from sim.loop.event_loop import SimulatedLoop
from system.ports import Host, JsonObject
from system.runtime import Options, Runtime
from system.storage.framing import Framing

T = TypeVar("T")

Moment: TypeAlias = Callable[[ShadowRuntime, ShadowTurns], object]

_LIMITS: Final = Limits(states_per_point=16, samples=4)
_MESSAGE: Final = "1" * 32
_END: Final[JsonObject] = {"do": [["complete", {"result": "it is done"}]]}
_ASK: Final[JsonObject] = {"do": [["send_message", {"to": "Bob", "payload": _END}]]}
_BEGIN: Final[JsonObject] = {"do": [["send_message", {"to": "Ada", "payload": _ASK}]]}
_PLAY: Final[JsonObject] = {
    "do": [
        ["spawn_agent", {"name": "Bob", "instructions": json.dumps(_BEGIN)}],
        ["send_message", {"to": "USER", "payload": "Bob is on it"}],
    ]
}
"""Ada spawns Bob and writes to the operator; Bob asks her what to do, and does it."""


@dataclass(frozen=True, slots=True)
class _Said:
    """A moment as the history of the workload keeps it: its ``number`` in the ``story``."""

    story: Sequence[Moment]
    number: int


class _Story:
    """Everything that became known, in order."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._moments: list[Moment] = []

    def begin(self, moment: Moment) -> None:
        """Something may be seen from here on."""
        self._history.attempt(self._said(moment))

    def know(self, moment: Moment) -> None:
        """Something must be seen from here on."""
        self._history(self._said(moment))

    def end(self) -> None:
        """Nothing will become known any more."""
        self._history.attempt(_Said(self._moments, len(self._moments)))

    def _said(self, moment: Moment) -> _Said:
        self._moments.append(moment)
        return _Said(self._moments, len(self._moments) - 1)


def _shadow_of(known: Known, reader: SnapshotReader) -> ShadowRuntime:
    """Return a shadow that was told everything that came before the crash."""
    turns = ShadowTurns()
    shadow = ShadowRuntime(turns, reader)
    # The last one is that which would have come next.
    coming = known.in_flight[-1]
    assert isinstance(coming, _Said)
    for moment in coming.story[: coming.number]:
        moment(shadow, turns)
    return shadow


class _ToldTurns(ShadowTurns):
    """Passes on what a provider does as moments, to whichever shadow will judge."""

    def __init__(self, story: _Story) -> None:
        super().__init__()
        self._say = story.begin

    def record_request(self, *told: Any, **more: Any) -> None:
        self._say(lambda _, turns: turns.record_request(*told, **more))

    def record_call(self, *told: Any, **more: Any) -> None:
        self._say(lambda _, turns: turns.record_call(*told, **more))

    def record_answer(self, turn_id: str, response: str) -> None:
        self._say(lambda _, turns: turns.record_answer(turn_id, response))


class _Lifetime:
    """A host and its event loop; what is left of them at the end is dropped."""

    __slots__ = ("_disk", "host", "loop")

    def __init__(self, process: Process) -> None:
        clock = SimulatedClock()
        self._disk = process.disk
        self.host = host_of(process, clock)
        self.loop = SimulatedLoop(clock, PlainChoices(), process.disk)

    def __enter__(self) -> tuple[Host, SimulatedLoop]:
        return self.host, self.loop

    def __exit__(self, *_failure: object) -> None:
        self._disk.power_off()
        self.loop.abandon()


class _Team:
    """The operator of one lifetime, who tells the story of it."""

    def __init__(self, loop: SimulatedLoop, runtime: Runtime, story: _Story) -> None:
        self._loop = loop
        self._runtime = runtime
        self._story = story

    def work(self) -> None:
        """Create Ada, give her something to do, and read what she writes."""
        runtime, story = self._runtime, self._story
        self._call(self._started())
        story.begin(
            lambda shadow, _: shadow.operator.begin_create("ada", "Ada", "lead", "bare", "")
        )
        ada = self._call(runtime.create_agent("Ada", "lead", "bare", request_id="ada"))
        story.know(lambda shadow, _: shadow.operator.acknowledge_create("ada", ada))
        story.begin(lambda shadow, _: shadow.operator.begin_send(_MESSAGE, ada, _PLAY))
        self._call(runtime.send(ada, _PLAY, _MESSAGE))
        story.know(lambda shadow, _: shadow.operator.acknowledge_send(_MESSAGE))
        self._call(runtime.idle())
        view = runtime.view()
        story.know(lambda shadow, _: shadow.observe(view))
        (told,) = view.user
        story.begin(lambda shadow, _: shadow.operator.begin_delivery(told.message_id))
        self._call(runtime.acknowledge(told.message_id))
        story.know(lambda shadow, _: shadow.operator.acknowledge_delivery(told.message_id))
        story.begin(lambda shadow, _: shadow.operator.begin_terminate(ada))
        self._call(runtime.terminate(ada))
        story.know(lambda shadow, _: shadow.operator.acknowledge_terminate(ada))
        self._call(runtime.close())
        story.end()

    async def _started(self) -> None:
        self._runtime.start()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        result = self._loop.run_until_complete(work)
        self._loop.raise_unhandled()
        return result


def _working(framing: Framing) -> Workload:
    def workload(disk: Process, ack: History) -> None:
        story = _Story(ack)
        providers = WatchedProviders(_ToldTurns(story))
        with _Lifetime(disk) as (host, loop):
            recover = Runtime.recover(host, providers.by_name, Options(framing=framing))
            _Team(loop, loop.run_until_complete(recover), story).work()
        providers.check()

    return workload


def _recovering(framing: Framing) -> Check:
    reader = SnapshotReader()
    options = Options(framing=framing)

    def check(disk: Process, known: Known) -> None:
        shadow = _shadow_of(known, reader)
        providers = WatchedProviders(ShadowTurns()).by_name
        with _Lifetime(disk) as (host, loop):
            recover = Runtime.recover(host, providers, options)
            runtime = loop.run_until_complete(recover)
            loop.raise_unhandled()
        check_report(runtime.report)
        snapshot = shadow.read({path[1:]: content for path, content in disk.disk.files().items()})
        shadow.settle(snapshot)
        shadow.check_view(runtime.view(), snapshot, at_rest=True)

    return check


def _scenario(tag: str, framing: Framing) -> Scenario:
    return Scenario(
        tag,
        f"a team of agents with framing {framing.value}: create, send, spawn, complete; recover",
        _working(framing),
        _recovering(framing),
        _LIMITS,
    )


runtime = _scenario("runtime", Framing.FRAMED)
runtime_pending = _scenario("runtime-pending", Framing.PENDING)
SCENARIOS: Sequence[Scenario] = (runtime, runtime_pending)
