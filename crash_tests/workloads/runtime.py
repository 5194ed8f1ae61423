"""The whole runtime: a small team of agents, crashed everywhere, recovered and fully checked.

The workload runs once, without a shadow. It records each **observation**: an operator's call
that began or returned, a request to a provider, a provider's answer. The check of a crash
replays the observations made before the crash on a new shadow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from crash_tests.targets.false_alarms import check_report
from crash_tests.targets.watched_providers import WatchedProviders
from crash_tests.workloads.host import host_of
from crash_tests.workloads.workload import Run, Workload
from oracles.history import History, Known
from oracles.runtime.root_snapshot import SnapshotReader
from oracles.runtime.shadow_runtime import ShadowRuntime
from oracles.runtime.shadow_turns import ShadowTurns
from powercut.explorer.judge import Check
from powercut.explorer.limits import Limits
from sim.choices import PlainChoices
from sim.disk.calls.process import Process
from sim.loop.clock import SimulatedClock
from sim.loop.event_loop import SimulatedLoop
from system.ports import Host, JsonObject
from system.runtime import Options, Runtime
from system.storage.framing import Framing

T = TypeVar("T")

Observation: TypeAlias = Callable[[ShadowRuntime, ShadowTurns], object]

_LIMITS: Final = Limits(states_per_point=16, samples=4)
_MESSAGE: Final = "1" * 32
_END: Final[JsonObject] = {"do": [["complete", {"result": "it is done"}]]}
_ASK: Final[JsonObject] = {"do": [["send_message", {"to": "Bob", "payload": _END}]]}
_BEGIN: Final[JsonObject] = {"do": [["send_message", {"to": "Ada", "payload": _ASK}]]}
_SCRIPT: Final[JsonObject] = {
    "do": [
        ["spawn_agent", {"name": "Bob", "instructions": json.dumps(_BEGIN)}],
        ["send_message", {"to": "USER", "payload": "Bob is on it"}],
    ]
}
"""Ada spawns Bob and writes to the operator; Bob asks her what to do, and does it."""


@dataclass(frozen=True, slots=True)
class _Recorded:
    """An observation in the history of the workload: its ``number`` among ``all``."""

    all: Sequence[Observation]
    number: int


class _Recorder:
    """Records the observations of a workload in its history."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._observations: list[Observation] = []

    def attempt(self, observation: Observation) -> None:
        """Record that an effect may be durable from now on."""
        self._history.attempt(self._recorded(observation))

    def acknowledge(self, observation: Observation) -> None:
        """Record that an effect must be durable from now on."""
        self._history(self._recorded(observation))

    def end(self) -> None:
        """Record that no observation follows."""
        self._history.attempt(_Recorded(self._observations, len(self._observations)))

    def _recorded(self, observation: Observation) -> _Recorded:
        self._observations.append(observation)
        return _Recorded(self._observations, len(self._observations) - 1)


def _shadow_of(known: Known, reader: SnapshotReader) -> ShadowRuntime:
    """Return a shadow with all observations that were made before the crash."""
    turns = ShadowTurns()
    shadow = ShadowRuntime(turns, reader)
    # The last one in flight is the one that would have followed.
    following = known.in_flight[-1]
    assert isinstance(following, _Recorded)
    for observation in following.all[: following.number]:
        observation(shadow, turns)
    return shadow


class _RecordedTurns(ShadowTurns):
    """Records the calls of the watched providers, for the shadow of any check."""

    def __init__(self, recorder: _Recorder) -> None:
        super().__init__()
        self._record = recorder.attempt

    def record_request(self, *values: Any, **named: Any) -> None:
        self._record(lambda _, turns: turns.record_request(*values, **named))

    def record_call(self, *values: Any, **named: Any) -> None:
        self._record(lambda _, turns: turns.record_call(*values, **named))

    def record_answer(self, turn_id: str, response: str) -> None:
        self._record(lambda _, turns: turns.record_answer(turn_id, response))


class _Lifetime:
    """A host and its event loop, both abandoned at the end."""

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
    """The operator of one lifetime; ``recorder`` takes its observations."""

    def __init__(self, loop: SimulatedLoop, runtime: Runtime, recorder: _Recorder) -> None:
        self._loop = loop
        self._runtime = runtime
        self._recorder = recorder

    def work(self) -> None:
        """Create Ada, send her a script, acknowledge her message, terminate her."""
        runtime, recorder = self._runtime, self._recorder
        self._call(self._started())
        recorder.attempt(
            lambda shadow, _: shadow.operator.creates.begin("ada", "Ada", "lead", "bare", "")
        )
        ada = self._call(runtime.create_agent("Ada", "lead", "bare", request_id="ada"))
        recorder.acknowledge(lambda shadow, _: shadow.operator.acknowledge_create("ada", ada))
        recorder.attempt(lambda shadow, _: shadow.operator.sends.begin(_MESSAGE, ada, _SCRIPT))
        self._call(runtime.send(ada, _SCRIPT, _MESSAGE))
        recorder.acknowledge(lambda shadow, _: shadow.operator.sends.acknowledge(_MESSAGE))
        self._call(runtime.idle())
        view = runtime.view()
        recorder.acknowledge(lambda shadow, _: shadow.observe(view))
        (message,) = view.user
        message_id = message.message_id
        recorder.attempt(lambda shadow, _: shadow.operator.deliveries.begin(message_id))
        self._call(runtime.acknowledge(message_id))
        recorder.acknowledge(lambda shadow, _: shadow.operator.deliveries.acknowledge(message_id))
        recorder.attempt(lambda shadow, _: shadow.operator.terminations.begin(ada))
        self._call(runtime.terminate(ada))
        recorder.acknowledge(lambda shadow, _: shadow.operator.terminations.acknowledge(ada))
        self._call(runtime.close())
        recorder.end()

    async def _started(self) -> None:
        self._runtime.start()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        result = self._loop.run_until_complete(work)
        self._loop.raise_unhandled()
        return result


def _work(framing: Framing) -> Run:
    def work(process: Process, ack: History) -> None:
        recorder = _Recorder(ack)
        providers = WatchedProviders(_RecordedTurns(recorder))
        with _Lifetime(process) as (host, loop):
            options = Options(framing=framing, recording=None)
            recover = Runtime.recover(host, providers.by_name, options)
            _Team(loop, loop.run_until_complete(recover), recorder).work()
        providers.check()

    return work


def _check(framing: Framing) -> Check:
    reader = SnapshotReader()
    options = Options(framing=framing, recording=None)

    def check(process: Process, known: Known) -> None:
        shadow = _shadow_of(known, reader)
        providers = WatchedProviders(ShadowTurns()).by_name
        with _Lifetime(process) as (host, loop):
            recover = Runtime.recover(host, providers, options)
            runtime = loop.run_until_complete(recover)
            loop.raise_unhandled()
        check_report(runtime.report)
        files = process.disk.files()
        snapshot = shadow.read({path[1:]: content for path, content in files.items()})
        shadow.settle(snapshot)
        shadow.check_view(runtime.view(), snapshot, idle=True)

    return check


def _team(framing: Framing) -> Workload:
    return Workload(
        f"a team of agents with framing {framing.value}: create, send, spawn, complete; recover",
        _work(framing),
        _check(framing),
        _LIMITS,
    )


runtime = _team(Framing.FRAMED)
runtime_pending = _team(Framing.PENDING)
