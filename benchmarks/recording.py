"""Recording: a replay, a group commit, recorded turns, recovery of the log, and long records."""

from __future__ import annotations

import asyncio
import os
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final
from zlib import crc32

from benchmarks.durable_directory import durable_directory
from benchmarks.instant_provider import InstantProvider
from benchmarks.row import Row, paired, seconds_of
from benchmarks.talking_agents import take_turns
from system.agents.turn_recorder import RecordingOptions
from system.host import real_host
from system.ports import Host, Json, JsonObject, SideEffectClass
from system.recording.executions.entry_type import EntryType
from system.recording.executions.execution import Execution
from system.recording.executions.log_record import LogRecord, encoded_log_record, end_of_log_record
from system.recording.open_recording import open_recording
from system.recording.records.envelope_hash import FrozenEnvelope
from system.recording.records.event import EventType
from system.recording.records.long_text import LongText
from system.recording.replays.replay import replay
from system.recording.stores.file_store import FileExecutionStore
from system.recording.wal.log import WriteAheadLog
from system.recording.wal.recovery import ReadLog, read_log
from system.recording.wal_store import WalExecutionRecorder
from system.runtime import Options, Runtime

_ROUNDS: Final = 20
_AT_ONCE: Final = 64
_BARRIERS: Final = 20
"""The barriers of each concurrent caller in one round."""
_TURNS: Final = 4
"""The turns of each agent in one round with 64 in flight."""
_TURNS_ALONE: Final = 100
_ENTRIES: Final = 100_000
_RECORDS: Final = 100_000
_PACKED: Final = 2_000
_LONG_BYTES: Final = 64 << 20
_LONG_EVENTS: Final = 65_536
_PIECE: Final = "x" * (1 << 16)
_ATTEMPT: Final = (
    EventType.AGENT_ATTEMPT_START,
    EventType.AGENT_ATTEMPT_END,
    EventType.FALLBACK_TRIGGERED,
)
_NOW: Final = "2026-01-01T00:00:00.000000Z"
_ENVELOPE: Final[JsonObject] = {"agent": "Ada", "payload": [{"kind": "text", "payload": "Go"}]}


def rows() -> Iterator[Row]:
    """Yield the rows."""
    with durable_directory() as directory:
        # First, because a process recovers before it has any other object.
        yield _recovery_row(directory)
        yield _replay_row(directory)
        yield _group_row(directory)
        yield from asyncio.run(_turn_rows(directory))
        yield _boot_row(directory)
        yield from _stream_rows(directory)


def _response(size_bytes: int) -> JsonObject:
    return {"status": "success", "payload": {"response": "x" * size_bytes}, "metadata": {}}


def _events(number: int, payload: Json) -> Iterator[tuple[EventType, Json]]:
    """Yield ``number`` events of one execution, in their order."""
    yield EventType.INTENT_RECEIVED, payload
    yield EventType.ROUTER_DECISION, payload
    for kind in islice(cycle(_ATTEMPT), number - 2):
        yield kind, payload


def _execution(host: Host, events: int, payload: Json, response_bytes: int) -> Execution:
    """Return an execution with ``events`` events before its final response."""
    execution = Execution.new(
        host.clock, f"exec-{host.ids.random_hex(16)}", FrozenEnvelope.of(_ENVELOPE),
        SideEffectClass.REVERSIBLE,
    )  # fmt: skip
    for event_type, each in _events(events, payload):
        execution.add(execution.next_event(event_type, each))
    execution.add(execution.final_event(_response(response_bytes)))
    return execution


# -- replay ------------------------------------------------------------------------------------


def _replay_row(directory: str) -> Row:
    host = real_host(f"{directory}/replay")
    store = FileExecutionStore(host)
    record = _execution(host, 4, {"turnId": "b" * 32}, 500).record()
    path = Path(directory, "replay", store.save(record))
    times = [
        seconds_of(lambda: replay(store, record.execution_id, _ENVELOPE)) for _ in range(_ROUNDS)
    ]
    return Row(
        "replay of a 2 KiB record", median(times) * 1e3, 1.0, "ms", "<=", 1.0,
        f"read, parsed, all hashes verified; {path.stat().st_size:,} bytes",
    )  # fmt: skip


# -- the log -----------------------------------------------------------------------------------


def _group_row(directory: str) -> Row:
    """The rate of 64 concurrent barriers, beside as many appends with an fdatasync each."""

    async def grouped() -> float:
        log = WriteAheadLog(real_host(f"{directory}/group"))
        encoded = encoded_log_record(
            0, b'"%s"' % (b"x" * 300), end_of_log_record(f"exec-{1:016x}", _NOW)
        )
        entry = LogRecord(EntryType.START, encoded)

        async def caller() -> None:
            for _ in range(_BARRIERS):
                await log.barrier(log.append([entry]))

        # As the file beside it, the segment is there when the clock starts.
        await log.barrier(log.append([entry]))
        start = perf_counter()
        await asyncio.gather(*[caller() for _ in range(_AT_ONCE)])
        taken = perf_counter() - start
        log.close()
        return taken / _BARRIERS

    def serial() -> float:
        file = os.open(f"{directory}/serial", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        start = perf_counter()
        for _ in range(_AT_ONCE):
            os.write(file, b"x" * 400)
            os.fdatasync(file)
        taken = perf_counter() - start
        os.close(file)
        return taken

    times = [(asyncio.run(grouped()), serial()) for _ in range(_ROUNDS)]
    ours, beside = (median(time[index] for time in times) for index in (0, 1))
    return Row(
        "group commit of 64 / serial append + fdatasync",
        _AT_ONCE / ours, _AT_ONCE / beside, "/s", ">=", 20.0,
        f"{_AT_ONCE} concurrent callers append an entry and make it durable, {_BARRIERS} times;"
        " one file of a real disk",
    )  # fmt: skip


def _recovery_row(directory: str) -> Row:
    host = real_host(f"{directory}/log")
    asyncio.run(_fill_log(host))
    (segment,) = Path(directory, "log", "wal").glob("*.wal")

    def recovered() -> ReadLog:
        return read_log(host.files, host.clock)

    def bare() -> None:
        content, length = segment.read_bytes(), segment.stat().st_size // _ENTRIES
        for start in range(0, len(content), length):
            crc32(content[start : start + length])

    ours, beside = paired(recovered, bare, _ROUNDS)
    assert len(recovered().executions.all()) == _ENTRIES // 5
    return Row(
        "WAL recovery / read + crc", ours, beside, "s", "<=", 3.0,
        f"{_ENTRIES:,} entries verified, and grouped by execution, which is put together when read;"
        " beside: the same bytes, as many crcs",
    )  # fmt: skip


async def _fill_log(host: Host) -> None:
    """Write a log of executions that never ended, with five entries each."""
    recording, _ = await open_recording(host, segment_bytes=1 << 30)
    for _ in range(_ENTRIES // 5):
        recorder = WalExecutionRecorder(host, recording)
        recorder.start(_ENVELOPE, events=[*_events(2, {"turnId": "b" * 32})])
        for event_type in _ATTEMPT[:2]:
            recorder.record_event(event_type, {"attempt": 1, "provider": "instant"})
    recording.log.close()


# -- turns -------------------------------------------------------------------------------------


class _Root:
    """A root with a runtime whose turns are recorded, or not; its writes are counted."""

    def __init__(self, path: str, recording: RecordingOptions | None) -> None:
        self.path = path
        self.provider = InstantProvider()
        self.options = Options(slots=_AT_ONCE, recording=recording)
        self.runtime: Runtime
        self.agents: list[str] = []
        self.turns = self.written_bytes = 0

    async def open(self) -> None:
        providers = {"scripted": self.provider}
        self.runtime = await Runtime.open(real_host(self.path), providers, self.options)
        names = [f"agent {number}" for number in range(_AT_ONCE)]
        self.agents = [await self.runtime.create_agent(name) for name in names]

    async def seconds(self, agents: int, turns: int) -> float:
        """Return the seconds of a turn with this number of agents at once."""
        before, start = _written_bytes(), perf_counter()
        await take_turns(self.runtime, self.provider, self.agents[:agents], turns)
        taken = perf_counter() - start
        self.written_bytes += _written_bytes() - before
        self.turns += agents * turns
        return taken / (agents * turns)


def _written_bytes() -> int:
    """Return the number of bytes that this process has passed to write calls."""
    counters = Path("/proc/self/io").read_text("ascii").split()
    return int(counters[counters.index("wchar:") + 1])


async def _turn_rows(directory: str) -> Iterator[Row]:
    recorded = _Root(f"{directory}/recorded", RecordingOptions())
    plain = _Root(f"{directory}/plain", None)
    for root in (recorded, plain):
        await root.open()
    found = [
        await _turn_row(recorded, plain, _AT_ONCE, _TURNS, 1.3),
        await _turn_row(recorded, plain, 1, _TURNS_ALONE, 1.7),
    ]
    ours, beside = (root.written_bytes / root.turns for root in (recorded, plain))
    found.append(
        Row("bytes written in a recorded turn / turn", ours, beside, "B", "<=", 3.0,
            f"all writes of {recorded.turns:,} turns, checkpoints included")
    )  # fmt: skip
    for root in (recorded, plain):
        await root.runtime.close()
    return iter(found)


async def _turn_row(recorded: _Root, plain: _Root, agents: int, turns: int, goal: float) -> Row:
    times = [
        (await recorded.seconds(agents, turns), await plain.seconds(agents, turns))
        for _ in range(_ROUNDS)
    ]
    return Row(
        f"recorded turn / turn, {agents} in flight",
        median(time for time, _ in times) * 1e6, median(time for _, time in times) * 1e6,
        "µs", "<=", goal, f"{_ROUNDS} interleaved rounds of {agents * turns} turns",
    )  # fmt: skip


def _boot_row(directory: str) -> Row:
    """A boot with many records, beside one with none."""
    full, bare = f"{directory}/full", f"{directory}/bare"
    for path in (full, bare):
        asyncio.run(_booted(path))
    host = real_host(full)
    store = FileExecutionStore(host)
    host.files.mkdir("records")
    payload: JsonObject = {"turnId": "b" * 32}
    for number in range(_RECORDS // _PACKED):
        executions = [_execution(host, 4, payload, 100) for _ in range(_PACKED)]
        store.write_pack(number + 1, [each.view() for each in executions])
    ours, beside = paired(
        lambda: asyncio.run(_booted(full)), lambda: asyncio.run(_booted(bare)), _ROUNDS
    )
    return Row(
        f"boot with {_RECORDS:,} records / without", ours * 1e3, beside * 1e3, "ms", "<=", 1.1,
        "opened, and closed",
    )  # fmt: skip


async def _booted(path: str) -> None:
    runtime = await Runtime.open(real_host(path), {"scripted": InstantProvider()})
    await runtime.close()


# -- long records ------------------------------------------------------------------------------


def _stream_rows(directory: str) -> Iterator[Row]:
    """The growth of memory while a long execution is recorded, and its record read in pieces."""
    host = real_host(f"{directory}/long")
    pieces = [_PIECE] * (_LONG_BYTES // len(_PIECE))
    ids: list[str] = []
    for name, record, read in (
        ("one payload", partial(_record_payload, pieces), FileExecutionStore.stream_response),
        (f"{_LONG_EVENTS:,} events", _record_events, FileExecutionStore.stream_events),
    ):
        for way, work in (
            ("recorded, until its record is written", partial(_add_recorded, host, record, ids)),
            ("read", partial(_read_last, read, host, ids)),
        ):
            yield Row(
                f"stream 64 MiB, {name}, growth / 16 MiB", _growth(work) / 2**20, 16.0, "MiB",
                "<=", 1.0, f"{way}; peak of the memory that Python allocates",
            )  # fmt: skip


def _add_recorded(
    host: Host, record: Callable[[WalExecutionRecorder], object], ids: list[str]
) -> None:
    ids.append(asyncio.run(_recorded(host, record)))


def _read_last(
    read: Callable[[FileExecutionStore, str], Iterator[object]], host: Host, ids: Sequence[str]
) -> None:
    deque(read(FileExecutionStore(host), ids[-1]), 0)


def _record_payload(pieces: Sequence[str], recorder: WalExecutionRecorder) -> object:
    """Record an attempt; return a response with a long text in pieces."""
    for event_type, each in _events(3, {}):
        recorder.record_event(event_type, each)
    return {"status": "success", "payload": LongText(pieces)}


def _record_events(recorder: WalExecutionRecorder) -> object:
    """Record many events; return a short response."""
    payload: JsonObject = {"text": "x" * (_LONG_BYTES // _LONG_EVENTS)}
    for event_type, each in _events(_LONG_EVENTS - 1, payload):
        recorder.record_event(event_type, each)
    return {"status": "error"}


async def _recorded(host: Host, record: Callable[[WalExecutionRecorder], object]) -> str:
    """Record an execution, and close the recording; return its id."""
    recording, _ = await open_recording(host)
    recorder = WalExecutionRecorder(host, recording)
    execution_id = recorder.start(_ENVELOPE)
    await recorder.end(record(recorder))
    await recording.close()
    return execution_id


def _growth(work: Callable[[], object]) -> int:
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak
