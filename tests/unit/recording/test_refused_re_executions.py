"""A repeated request on a disk that refuses: its answer and its error reach the caller."""

from __future__ import annotations

import errno

import pytest

from system.ports import JsonObject
from system.recording.re_execute import re_execute
from system.recording.records.errors import BarrierFailed
from system.recording.records.header import Reason
from tests.unit.recording.executions import FAILURE, RESPONSE, finished, run
from tests.unit.recording.recording_bench import SEGMENT, Bench

ORIGINAL = finished()


def fail_after_handler(bench: Bench, call: str, code: int) -> None:
    """Let the next call on the segment fail, and all later segments."""
    bench.here.files.fail(call, SEGMENT, code)
    bench.here.files.fail("open-create", ".wal", code, sticky=True)


@pytest.mark.parametrize("call", ["append", "fdatasync"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_an_answer_is_returned_though_the_disk_refuses_its_record(
    bench: Bench, call: str, code: int
) -> None:
    async def handler(_: JsonObject) -> JsonObject:
        fail_after_handler(bench, call, code)
        return RESPONSE

    async def work() -> None:
        await bench.open()
        record = await re_execute(ORIGINAL, handler, bench.recorder(), confirm=True)
        assert record is not None
        assert record.final_response == RESPONSE
        assert not bench.recording.running
        bench.here.files.faults.clear()
        await bench.recording.close()
        await bench.open()
        assert bench.store.load(record.execution_id) == record

    run(work())


@pytest.mark.parametrize("call", ["append", "fdatasync"])
def test_the_error_of_a_handler_is_raised_though_the_disk_refuses_its_record(
    bench: Bench, call: str
) -> None:
    async def handler(_: JsonObject) -> JsonObject:
        fail_after_handler(bench, call, errno.ENOSPC)
        raise ValueError("no answer")

    async def work() -> None:
        await bench.open()
        with pytest.raises(ValueError, match="no answer"):
            await re_execute(ORIGINAL, handler, bench.recorder(), confirm=True)
        assert not bench.recording.running
        (execution_id,) = bench.store.list_all()
        error = {"code": "AGENT_ERROR", "message": "no answer"}
        assert bench.store.load(execution_id).final_response == {**FAILURE, "error": error}

    run(work())


def test_a_handler_is_not_called_if_its_request_is_not_durable(bench: Bench) -> None:
    async def handler(_: JsonObject) -> JsonObject:
        raise AssertionError

    async def work() -> None:
        await bench.open()
        bench.here.files.fail("fdatasync", SEGMENT, errno.EIO)
        with pytest.raises(BarrierFailed):
            await re_execute(ORIGINAL, handler, bench.recorder(), confirm=True)
        assert not bench.recording.running
        (execution_id,) = bench.store.list_all()
        record = bench.store.load(execution_id)
        assert record.header.replayable_reason == Reason.RECORDING_FAILURE
        assert record.final_response is not None
        error = record.final_response["error"]
        assert isinstance(error, dict)
        assert error["code"] == "STORAGE"

    run(work())
