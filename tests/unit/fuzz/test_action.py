"""Actions: their arguments may have any names, and their outcome is a few words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from oracles.violation import LostAck
from powercut.fuzz.action import Action, ActionKind, Arguments, Json
from powercut.fuzz.drivers.replay import Verdict, replay
from powercut.fuzz.reproducer import keep, read_reproducer
from powercut.fuzz.story import story
from powercut.fuzz.target import DiskTarget
from powercut.fuzz.target_mistake import TargetMistake
from powercut.fuzz.target_run import TargetRun
from sim.choices import PlainChoices
from sim.disk.calls.process import Process


class Logged(DiskTarget):
    """A target whose arguments have the names that the harness uses for its own actions."""

    tag = "logged"

    def actions(self) -> Sequence[ActionKind]:
        return [ActionKind("log", 1, self._log)]

    def recover(self, host: Process) -> None:
        self.host = host

    def _log(self, arguments: Arguments) -> str:
        if arguments["action"] == "drop":
            raise LostAck("dropped")
        return str(arguments["outcome"])


@pytest.mark.parametrize("first", ["keep", {"name": "keep"}, {"name": "drop", "arguments": {}}])
def test_arguments_with_the_names_of_the_harness_are_reported_and_replayed(
    first: Json, tmp_path: Path
) -> None:
    run = TargetRun(Logged)
    words = {"plan": "none", "crashes": "no", "outcome": "logged"}

    def perform_steps() -> None:
        for action in (first, "drop"):
            run.perform(Action("log", {"action": action, **words}), PlainChoices())

    assert str(run.complete(perform_steps)) == "dropped"
    finding = keep(run, tmp_path)
    assert '  log(action="drop", plan="none", ' in story(finding)
    reproducer = read_reproducer(finding.path)
    assert reproducer.log == run.log
    assert replay(reproducer, Logged).verdict is Verdict.SAME


class Silent(Logged):
    outcome: Any = None

    def actions(self) -> Sequence[ActionKind]:
        return [ActionKind("log", 1, lambda _: self.outcome)]


@pytest.mark.parametrize("outcome", [None, "", 7])
def test_outcome_that_no_report_can_show_is_refused(
    outcome: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Silent, "outcome", outcome)
    run = TargetRun(Silent)
    with pytest.raises(TargetMistake, match=rf"action 'log' returned {outcome!r}, and must return"):
        run.perform(Action("log", {}), PlainChoices())
