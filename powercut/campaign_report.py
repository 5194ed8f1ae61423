"""What a campaign came to: its verdict, and all of it as plain data for ``--json``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from oracles.marks import Mark
from powercut.action import Json
from powercut.campaign import Plan, Score
from powercut.drivers.hypothesis_driver import Finding
from powercut.exit_code import ExitCode
from powercut.tally import Tally


class Outcome(StrEnum):
    """The verdict on a campaign, in one word."""

    CLEAN = "clean"
    VIOLATION = "violation"
    GOAL_MISSED = "goal-missed"
    INTERRUPTED = "interrupted"


_EXIT_CODES = {
    Outcome.CLEAN: ExitCode.CLEAN,
    Outcome.VIOLATION: ExitCode.VIOLATION,
    Outcome.GOAL_MISSED: ExitCode.GOAL_MISSED,
    Outcome.INTERRUPTED: ExitCode.INTERRUPTED,
}


@dataclass(frozen=True, slots=True)
class CampaignReport:
    """``findings`` are the failures, one of each kind; ``interrupted``: by the user.

    ``goal``: every mark must have been reached.
    """

    plan: Plan
    scores: Sequence[Score]
    findings: Sequence[Finding]
    interrupted: bool = False
    goal: bool = False

    @property
    def outcome(self) -> Outcome:
        """The verdict; being interrupted outweighs all, for then it is none."""
        if self.interrupted:
            return Outcome.INTERRUPTED
        if any(score.failed for score in self.scores):
            return Outcome.VIOLATION
        if self.goal and any(never(score) for score in self.scores):
            return Outcome.GOAL_MISSED
        return Outcome.CLEAN

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that says so."""
        return _EXIT_CODES[self.outcome]

    def total(self) -> Tally:
        """Return everything that the targets did, together."""
        tally = Tally()
        for score in self.scores:
            tally.add(score.tally)
        return tally

    def plain(self) -> dict[str, Json]:
        """Return the report as JSON data; equal campaigns give equal data."""
        total = self.total()
        marks = {mark for score in self.scores for mark in score.target.marks}
        return {
            "verdict": self.outcome.value,
            "disk": self.plan.model.name,
            "seed": self.plan.seed,
            **_counts(self.scores),
            "marks": _marks(total, [mark for mark in Mark if mark in marks]),
            "failures": [
                {
                    "fingerprint": finding.reproducer.fingerprint,
                    "property": finding.reproducer.broken,
                    "reproducer": str(finding.path),
                    "target": finding.reproducer.target,
                }
                for finding in self.findings
            ],
            "targets": {
                score.target.tag: {
                    **_counts([score]),
                    "marks": _marks(score.tally, score.target.marks),
                    "failed": score.failed,
                }
                for score in self.scores
            },
        }


def never(score: Score) -> tuple[Mark, ...]:
    """Return the marks that the target should have reached and did not."""
    return score.tally.marks.never(score.target.marks)


def _counts(scores: Iterable[Score]) -> dict[str, Json]:
    tally, reached, total = Tally(), 0, 0
    for score in scores:
        tally.add(score.tally)
        reached += len(score.tally.crash_points)
        total += score.tally.possible_crash_points
    return {
        "runs": tally.runs,
        "steps": tally.steps,
        "kills": tally.kills,
        "power_cuts": tally.power_cuts,
        "nested": tally.nested,
        "faults": tally.faults,
        "distinct_images": len(tally.images),
        "crash_points": {"reached": reached, "total": total},
    }


def _marks(tally: Tally, expected: Sequence[Mark]) -> dict[str, Json]:
    missing = tally.marks.never(expected)
    return {
        "reached": len(expected) - len(missing),
        "total": len(expected),
        "never": [str(mark) for mark in missing],
    }
