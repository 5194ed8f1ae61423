"""The whole runtime: a small team of agents, crashed everywhere, recovered and fully checked.

With the recording, a team has too many states (docs/explanation/exhaustive.md), so the recorded
workload has one agent with one turn. A workload runs once, without a shadow. An observation is an
operator's call that began or returned, a request to a provider, or a provider's answer.
"""

from __future__ import annotations

import json
from collections.abc import Coroutine
from contextlib import nullcontext
from typing import Any, Final, TypeVar

from crash_tests.targets.false_alarms import check_report
from crash_tests.targets.watched_providers import WatchedProviders
from crash_tests.workloads.lifetime import Lifetime
from crash_tests.workloads.log_units import log_units
from crash_tests.workloads.observations import Observer, replay_observations
from crash_tests.workloads.workload import Run, Workload
from oracles.history import History, Known
from oracles.recording.turn_records import check_turn_records
from oracles.runtime.root_snapshot import SnapshotReader
from oracles.runtime.shadow_runtime import ShadowRuntime
from oracles.runtime.shadow_turns import ShadowTurns
from oracles.runtime.view_laws import check_idle_view
from oracles.violation import FalseAlarm
from powercut.explorer.limits import Limits
from powercut.explorer.two_phases import TwoPhases
from sim.disk.calls.process import Process
from sim.loop.event_loop import SimulatedLoop
from system.ports import JsonObject
from system.runtime import Options, Runtime
from system.storage.framing import Framing

T = TypeVar("T")

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
_ONE_TURN: Final[JsonObject] = {"do": [["send_message", {"to": "USER", "payload": "it is done"}]]}


def _shadow_of(known: Known, reader: SnapshotReader) -> ShadowRuntime:
    """Return a shadow with all observations that were made before the crash."""
    turns = ShadowTurns()
    shadow = ShadowRuntime(turns, reader)
    replay_observations(known, shadow, turns)
    return shadow


class _ObservedTurns(ShadowTurns):
    """Records the calls of the watched providers, for the shadow of any check."""

    def __init__(self, observer: Observer) -> None:
        super().__init__()
        self._record = observer.attempt

    def record_request(self, *values: Any, **named: Any) -> None:
        self._record(lambda _, turns: turns.record_request(*values, **named))

    def record_call(self, *values: Any, **named: Any) -> None:
        self._record(lambda _, turns: turns.record_call(*values, **named))

    def record_answer(self, turn_id: str, response: str) -> None:
        self._record(lambda _, turns: turns.record_answer(turn_id, response))


class _Team:
    """The operator of one lifetime; ``observer`` takes its observations.

    Ada gets ``script``, in which she writes to the operator once.
    """

    def __init__(
        self, loop: SimulatedLoop, runtime: Runtime, observer: Observer, script: JsonObject
    ) -> None:
        self._loop = loop
        self._runtime = runtime
        self._observer = observer
        self._script = script

    def work(self) -> None:
        """Create Ada, send her a script, acknowledge her message, terminate her."""
        runtime, observer, script = self._runtime, self._observer, self._script
        self._call(self._started())
        observer.attempt(
            lambda shadow, _: shadow.operator.creates.begin("ada", "Ada", "lead", "bare", "")
        )
        ada = self._call(runtime.create_agent("Ada", "lead", "bare", request_id="ada"))
        observer.acknowledge(lambda shadow, _: shadow.operator.acknowledge_create("ada", ada))
        observer.attempt(lambda shadow, _: shadow.operator.sends.begin(_MESSAGE, ada, script))
        self._call(runtime.send(ada, script, _MESSAGE))
        observer.acknowledge(lambda shadow, _: shadow.operator.sends.acknowledge(_MESSAGE))
        self._call(runtime.idle())
        view = runtime.view()
        observer.acknowledge(lambda shadow, _: shadow.observe(view))
        (message,) = view.user
        message_id = message.message_id
        observer.attempt(lambda shadow, _: shadow.operator.deliveries.begin(message_id))
        self._call(runtime.acknowledge(message_id))
        observer.acknowledge(lambda shadow, _: shadow.operator.deliveries.acknowledge(message_id))
        observer.attempt(lambda shadow, _: shadow.operator.terminations.begin(ada))
        self._call(runtime.terminate(ada))
        observer.acknowledge(lambda shadow, _: shadow.operator.terminations.acknowledge(ada))
        self._call(runtime.close())
        observer.end()

    async def _started(self) -> None:
        self._runtime.start()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        result = self._loop.run_until_complete(work)
        self._loop.raise_unhandled()
        return result


def _work(options: Options, script: JsonObject) -> Run:
    def work(process: Process, ack: History) -> None:
        observer = Observer(ack)
        providers = WatchedProviders(_ObservedTurns(observer))
        with Lifetime(process) as (host, loop):
            recover = Runtime.recover(host, providers.by_name, options)
            _Team(loop, loop.run_until_complete(recover), observer, script).work()
        providers.check()

    return work


def _check(options: Options) -> TwoPhases[dict[str, bytes]]:
    reader = SnapshotReader()
    # With a pending entry the bytes after the last line have no effect, so most states of a log
    # give the same result.
    units = log_units if options.framing is Framing.PENDING else nullcontext

    def recover(process: Process) -> dict[str, bytes]:
        providers = WatchedProviders(ShadowTurns()).by_name
        with Lifetime(process) as (host, loop), units(process):
            runtime = loop.run_until_complete(Runtime.recover(host, providers, options))
            loop.raise_unhandled()
        check_report(runtime.report)
        log = runtime.report.recording
        if not log.lost_nothing:
            raise FalseAlarm("recovery reports damage that no crash can do", report=log)
        files = {path[1:]: content for path, content in process.disk.files().items()}
        # No observation decides about the view, so the files alone are the result.
        check_idle_view(runtime.view(), reader.read(files))
        return files

    def judge(files: dict[str, bytes], known: Known) -> None:
        shadow = _shadow_of(known, reader)
        shadow.settle(shadow.read(files))
        if options.recording is not None:
            check_turn_records(files)

    return TwoPhases(recover, judge)


def _team(framing: Framing) -> Workload:
    options = Options(framing=framing, recording=None)
    return Workload(
        f"a team of agents with framing {framing.value}: create, send, spawn, complete; recover",
        _work(options, _SCRIPT),
        _check(options),
        _LIMITS,
    )


runtime = _team(Framing.FRAMED)
runtime_pending = _team(Framing.PENDING)
runtime_recorded = Workload(
    "an agent with one turn, which is recorded: create, send, answer, terminate; recover",
    _work(Options(), _ONE_TURN),
    _check(Options()),
    _LIMITS,
)
