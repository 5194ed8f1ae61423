"""``python -m tests.crash_tests.recording_program ROOT FIRST JOBS``: recorders of a real process.

The jobs from number FIRST on are recorded, four at a time, in segments that are soon full; each
kind of job ends in another way. A line is printed before each call that changes the recording, and
after it: a JSON list with the name of a method of ``RecordingLedger`` and its arguments.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Final

from crash_tests.targets.recording_values import envelope, following, in_pieces, payload, response
from system.host import real_host, run
from system.ports import Host, Json, SideEffectClass
from system.recording.open_recording import open_recording
from system.recording.records.errors import RecorderError
from system.recording.records.event import EventType
from system.recording.replays.replay import replay
from system.recording.wal.recording import WalRecording
from system.recording.wal_store import WalExecutionRecorder, WalExecutionStore

SEGMENT_BYTES: Final = 6_000
MOST_BYTES: Final = 1_500
"""The most bytes of an execution in memory; so few that long executions are spooled."""
SIDE_EFFECTS: Final = SideEffectClass.REVERSIBLE

_EVENTS: Final = 4
_JOBS_AT_ONCE: Final = 4
_LONG_TEXT: Final = "a long answer " * 400
_INVALIDATION: Final = ("wrong answer", "Anna")


class Recorders:
    """Records jobs and prints the calls."""

    def __init__(self, host: Host, recording: WalRecording) -> None:
        self._host = host
        self._recording = recording
        self._store = WalExecutionStore(recording, host.clock)

    async def record(self, number: int) -> None:
        """Record one job; its number determines how it ends."""
        recorder = WalExecutionRecorder(self._host, self._recording)
        request = envelope(number, "Good morning")
        _say("begin_start", request)
        execution_id = recorder.start(request, SIDE_EFFECTS)
        _say("started", execution_id)
        types = list[str]()
        for _ in range(_EVENTS):
            event_type = following(types)
            value = payload(event_type, len(types) + 1, "success")
            _say("begin_event", execution_id, event_type, value)
            recorder.record_event(event_type, value)
            _say("written", execution_id)
            types.append(event_type)
            await asyncio.sleep(0)
        match number % 4:
            case 0:
                await self._finalize(recorder, execution_id, f"answer {number}")
                await self._invalidate(execution_id)
            case 1:
                await self._finalize(recorder, execution_id, _LONG_TEXT)
            case 2:
                await recorder.barrier()
                self._complete(recorder, execution_id, f"answer {number}")
                if number % 8 == 2:
                    await self._recording.checkpoint()
            case _:
                _say("begin_mark", execution_id, "uses a clock")
                recorder.mark_not_replayable("uses a clock")
                _say("written", execution_id)

    async def _finalize(self, recorder: WalExecutionRecorder, execution_id: str, text: str) -> None:
        answer = response([EventType.AGENT_ATTEMPT_END], text, "success")
        _say("begin_end", execution_id, answer)
        if text == _LONG_TEXT:
            await recorder.end(in_pieces(answer, 2))
        else:
            await recorder.finalize(answer)
        _say("written", execution_id)
        assert replay(self._store, execution_id).response == answer

    def _complete(self, recorder: WalExecutionRecorder, execution_id: str, text: str) -> None:
        answer = response([EventType.AGENT_ATTEMPT_END], text, "success")
        _say("begin_end", execution_id, answer)
        recorder.complete(answer)
        _say("written", execution_id)

    async def _invalidate(self, execution_id: str) -> None:
        _say("begin_invalidate", execution_id, *_INVALIDATION)
        while True:
            try:
                self._store.invalidate(execution_id, *_INVALIDATION)
            except RecorderError:
                # A checkpoint is writing the record.
                await asyncio.sleep(0.001)
            else:
                break
        _say("invalidated", execution_id)


def _say(call: str, *arguments: Json) -> None:
    sys.stdout.write(f"{json.dumps([call, *arguments])}\n")
    sys.stdout.flush()


async def main(root: str, first: int, jobs: int) -> None:
    """Recover the recording, and record all jobs."""
    host = real_host(root)
    recording, log = await open_recording(host, segment_bytes=SEGMENT_BYTES, most_bytes=MOST_BYTES)
    assert log.report.lost_nothing, log.report
    recorders = Recorders(host, recording)
    for number in range(first, first + jobs, _JOBS_AT_ONCE):
        together = range(number, number + _JOBS_AT_ONCE)
        await asyncio.gather(*map(recorders.record, together))
    await recording.close()


if __name__ == "__main__":
    run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
