"""The tables of docs/recording.md, compared with the code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields
from functools import partial
from importlib import import_module

import pytest

import system.errors
import system.recording.records.errors
from system.agents.turn_failed import FailureCode
from system.agents.turn_recorder import Durability, RecordingOptions
from system.commands.offline import (
    FOUND,
    INTERRUPTED,
    MISMATCH,
    NO_READER,
    NOT_REPLAYABLE,
    USAGE,
)
from system.ports import Json, SideEffectClass
from system.recording.crash_point import Action, analyze_crash_point
from system.recording.recorder import InMemoryExecutionRecorder, Recorder
from system.recording.records.errors import RecorderError
from system.recording.records.event import EventType
from system.recording.records.event_order import order_problem
from system.recording.records.header import Reason
from system.recording.records.status import ExecutionStatus
from tests.meta.page_tables import quoted, table_rows
from tests.meta.source_tree import ROOT
from tests.unit.recording.executions import ENVELOPE, EVENTS, FAILURE, memory, run
from tests.unit.recording.test_crash_point import after

PAGE = (ROOT / "docs" / "recording.md").read_text("utf-8")

table = partial(table_rows, PAGE)


@pytest.mark.parametrize("following", EventType)
def test_the_order_of_events(following: EventType) -> None:
    rows = {quoted(row[0])[0]: row[2] for row in table("event")}
    assert set(rows) == {str(each) for each in EventType}
    may_follow: set[str | None] = {*quoted(rows[following])}
    if "(first)" in rows[following]:
        may_follow.add(None)
    previous: list[str | None] = [None, *EventType]
    assert {each for each in previous if not order_problem(each, following)} == may_follow


def test_the_reasons_and_the_status() -> None:
    assert [quoted(row[0])[0] for row in table("reason")] == [str(each) for each in Reason]
    assert [quoted(row[0])[0] for row in table("status")] == [str(each) for each in ExecutionStatus]


def test_the_codes_of_failed_turns() -> None:
    assert [quoted(row[0])[0] for row in table("code")] == list(FailureCode)


def test_the_options() -> None:
    rows = {quoted(row[0])[0]: row[1].strip("`") for row in table("option")}
    defaults = {each.name: each.default for each in fields(RecordingOptions)}
    assert rows == {
        name: default.name if isinstance(default, Durability) else str(default)
        for name, default in defaults.items()
    }
    meaning = next(table("option"))[2]
    assert quoted(meaning) == [each.name for each in Durability]


def test_the_exit_codes() -> None:
    codes = [0, FOUND, USAGE, NOT_REPLAYABLE, MISMATCH, INTERRUPTED, NO_READER]
    assert [int(row[0]) for row in table("exit code")] == codes


CALLS: Mapping[str, Callable[[Recorder], object]] = {
    "start": lambda recorder: recorder.start(ENVELOPE),
    "record_event": lambda recorder: recorder.record_event(*EVENTS[0]),
    "mark_not_replayable": lambda recorder: recorder.mark_not_replayable("a test"),
    "complete": lambda recorder: recorder.complete(FAILURE),
    "finalize": lambda recorder: run(recorder.finalize(FAILURE)),
    "end": lambda recorder: run(recorder.end(FAILURE)),
    "append_response": lambda recorder: recorder.append_response(FAILURE),
}


@pytest.mark.parametrize(
    ("column", "earlier"), [(1, ()), (2, ("start",)), (3, ("start", "append_response"))]
)
def test_the_calls_of_a_recorder(column: int, earlier: Sequence[str]) -> None:
    rows = {name.partition("(")[0]: row for row in table("call") for name in quoted(row[0])}
    assert list(rows) == list(CALLS)
    for name, call in CALLS.items():
        recorder = InMemoryExecutionRecorder(*memory())
        for before in earlier:
            CALLS[before](recorder)
        is_refused = rows[name][column] == "RecorderError"
        with pytest.raises(RecorderError) if is_refused else nullcontext():
            call(recorder)


@pytest.mark.parametrize("side_effects", [None, *SideEffectClass])
def test_the_stages_of_a_crash(side_effects: SideEffectClass | None) -> None:
    is_harmful = side_effects in {None, SideEffectClass.IRREVERSIBLE}
    rows = list(table("last event"))
    assert len(rows) == len(EventType) + 3
    for last, stage, recovery, action in rows:
        name = quoted(last)[0] if quoted(last) else "NEWS"
        status = "success" if "success" in last else "error"
        events: list[tuple[str, Json]] = [] if last == "none" else [(name, {"status": status})]
        point = analyze_crash_point(after(*events, side_effects=side_effects))
        assert [point.stage, point.recovery] == [quoted(stage)[0], quoted(recovery)[0]]
        expected = Action(quoted(action)[0])
        if "*" in action and is_harmful:
            expected = Action.CONFIRM
        assert point.action is expected


def test_the_errors() -> None:
    for row in table("error"):
        (name,) = quoted(row[0])
        assert hasattr(system.recording.records.errors, name) or hasattr(system.errors, name)


@pytest.mark.parametrize(("module", "names"), [row[:2] for row in table("module")])
def test_the_modules_of_the_names(module: str, names: str) -> None:
    owner = import_module(quoted(module)[0])
    assert {getattr(owner, name).__module__ for name in quoted(names)} == {owner.__name__}
