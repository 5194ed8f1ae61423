"""A campaign repeats runs with a total loss, and so notices a target that checks nothing."""

from __future__ import annotations

import pytest

from powercut.fuzz.action import Arguments
from powercut.fuzz.campaign.campaign import Plan, Score, batches, run_batch
from powercut.fuzz.target import TargetEntry
from powercut.fuzz.time_limit import TimeOver
from powercut.report.campaign import is_blind
from sim.disk.crash.persistence import POSIX
from sim.errors import HarnessError
from tests.unit.cli.command_line import json_of, powercut
from tests.unit.fuzz.saved_file import PATH, SavedFileTarget, content_of, save

_NOTE = "note  {}: the checks pass also if every power cut loses all that was acknowledged; "


class Sound(SavedFileTarget):
    """Saves durably, and checks it."""

    def __init__(self) -> None:
        super().__init__("sound", save)


class Blind(Sound):
    """Saves durably, and checks nothing."""

    def check_recovered(self) -> None:
        return

    def _read(self, _arguments: Arguments) -> str:
        return "done"


class ChecksInAction(Blind):
    """Checks the file when it is read."""

    def _read(self, _arguments: Arguments) -> str:
        if not self.fault_plan:
            self._shadow.settle(content_of(self._process, PATH), PATH)
        return "done"


class Puzzled(Blind):
    """Cannot go on with a disk that no crash leaves."""

    puzzle: BaseException = HarnessError("no such disk")

    def check_recovered(self) -> None:
        must_exist = None not in self._shadow.allowed and not self.fault_plan
        if must_exist and content_of(self._process, PATH) is None:
            raise self.puzzle


class Endless(Puzzled):
    """Waits for the file until the time is over."""

    puzzle = TimeOver()


def score_of(target: str, examples: int = 30) -> Score:
    entry = TargetEntry(target, f"{__name__}:{target}")
    total = Score(entry)
    for batch in batches(Plan((entry,), POSIX, 0, 30, examples)):
        total.add(run_batch(batch))
    return total


def test_target_that_checks_nothing_is_blind() -> None:
    score = score_of("Blind")
    assert not score.failed
    assert 5 <= len(score.total_loss.noticed) <= 20
    assert is_blind(score)


@pytest.mark.parametrize("target", ["Sound", "ChecksInAction"])
def test_target_that_notices_a_total_loss_repeats_no_further_run(target: str) -> None:
    score = score_of(target, examples=10)
    assert not score.failed
    assert score.total_loss.noticed[-1:] == [True]
    assert score.total_loss.noticed.count(True) == 1
    assert not is_blind(score)


@pytest.mark.parametrize("target", ["Puzzled", "Endless"])
def test_target_that_cannot_go_on_after_a_total_loss_has_noticed_it(target: str) -> None:
    score = score_of(target, examples=10)
    assert (score.failed, score.unended) == (0, [])
    assert any(score.total_loss.noticed)


def test_few_runs_do_not_show_that_a_target_is_blind() -> None:
    assert not is_blind(score_of("Blind", examples=4))


def test_a_target_that_fails_is_not_blind() -> None:
    score = score_of("Blind")
    score.failed = 1
    assert not is_blind(score)


def test_run_notes_a_target_that_checks_nothing() -> None:
    blind = f"{__name__}:Blind"
    arguments = "run", blind, "--examples", "20", "-n", "2"
    result = powercut(*arguments)
    assert result.exit_code == 0
    assert _NOTE.format(blind) in result.stdout
    (target,) = json_of(powercut(*arguments, "--json", "-"))["targets"].values()
    assert target["blind_check"] is True


def test_run_notes_nothing_of_a_target_that_checks_its_data() -> None:
    found = f"{__name__}:Sound"
    result = powercut("run", found, "--examples", "20", "-n", "1", "--json", "-")
    assert "note" not in result.stderr
    assert json_of(result)["targets"][found]["blind_check"] is False
