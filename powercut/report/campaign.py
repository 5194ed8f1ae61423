"""The result of a campaign: its verdict, and everything as plain data for ``--json``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import assert_never

from powercut.fuzz.action import Json
from powercut.fuzz.campaign.campaign import Plan, Score
from powercut.fuzz.reproducer import Finding
from powercut.fuzz.tally import Reached, Tally
from powercut.report.cause import by_cause, cause_of


class CampaignVerdict(StrEnum):
    """The verdict on a campaign."""

    CLEAN = "clean"
    VIOLATION = "violation"
    GOAL_MISSED = "goal-missed"
    INTERRUPTED = "interrupted"
    INCOMPLETE = "incomplete"
    UNENDED = "unended"


class Goal(Enum):
    """The marks that a campaign must reach: none, those that one minute reaches, or all."""

    NONE = auto()
    USUAL = auto()
    ALL = auto()


@dataclass(frozen=True, slots=True)
class CampaignReport:
    """The scores of a campaign, and one reduced failure of each kind.

    ``failure`` is the exception of the harness that ended it early, if there was one.
    """

    plan: Plan
    scores: Sequence[Score]
    findings: Sequence[Finding]
    interrupted: bool = False
    goal: Goal = Goal.NONE
    failure: Exception | None = None

    @property
    def verdict(self) -> CampaignVerdict:
        """The verdict; an interrupted campaign has no other one."""
        if self.interrupted:
            return CampaignVerdict.INTERRUPTED
        if any(score.failed for score in self.scores):
            return CampaignVerdict.VIOLATION
        if self.failure is not None:
            return CampaignVerdict.INCOMPLETE
        if any(score.unended for score in self.scores):
            return CampaignVerdict.UNENDED
        if any(missed(score, self.goal) for score in self.scores):
            return CampaignVerdict.GOAL_MISSED
        return CampaignVerdict.CLEAN

    def total(self) -> Tally:
        """Return the counts of all targets together."""
        tally = Tally()
        for score in self.scores:
            tally.add(score.tally)
        return tally

    def plain(self) -> dict[str, Json]:
        """Return the report as JSON data; equal campaigns give equal data."""
        total = self.total()
        marks = dict.fromkeys(mark for score in self.scores for mark in score.target.marks)
        return {
            "verdict": self.verdict.value,
            "model": self.plan.model.name,
            "seed": self.plan.seed,
            **_counts(self.scores),
            "marks": _marks(total, tuple(marks)),
            "failures": [
                {
                    "fingerprint": finding.reproducer.fingerprint,
                    "property": finding.run.log.broken,
                    "reproducer": "" if finding.unwritten else str(finding.path),
                    "target": finding.run.log.target,
                    **cause_of(finding).plain(),
                }
                for findings in by_cause(self.findings)
                for finding in findings
            ],
            "targets": {
                score.target.tag: {
                    **_counts([score]),
                    "marks": _marks(score.tally, score.target.marks),
                    "failed": score.failed,
                    "blind_check": is_blind(score),
                }
                for score in self.scores
            },
        }


def never(score: Score) -> tuple[str, ...]:
    """Return the expected marks of the target that were not reached."""
    return score.tally.marks.never(score.target.marks)


def missed(score: Score, goal: Goal) -> tuple[str, ...]:
    """Return the marks that this goal requires of the target and that were not reached."""
    match goal:
        case Goal.NONE:
            return ()
        case Goal.USUAL:
            return tuple(mark for mark in never(score) if mark not in score.target.rare)
        case Goal.ALL:
            return never(score)
        case _:
            assert_never(goal)


def is_blind(score: Score) -> bool:
    """Return whether no check of the target notices that everything is lost."""
    return not score.failed and score.total_loss.is_blind


def points_of(scores: Iterable[Score]) -> Reached:
    """Return the crash points reached, of all targets together."""
    return _sum(score.tally.points for score in scores)


def pairs_of(scores: Iterable[Score]) -> Reached:
    """Return the pairs of a running action and a crash point, of all targets together."""
    return _sum(score.tally.pairs for score in scores)


def _sum(parts: Iterable[Reached]) -> Reached:
    parts = tuple(parts)
    return Reached(sum(part.reached for part in parts), sum(part.total for part in parts))


def _plain(reached: Reached) -> dict[str, Json]:
    return {"reached": reached.reached, "total": reached.total}


def _counts(scores: Sequence[Score]) -> dict[str, Json]:
    tally = Tally()
    for score in scores:
        tally.add(score.tally)
    return {
        "runs": tally.runs,
        "steps": tally.steps,
        "kills": tally.kills,
        "power_cuts": tally.power_cuts,
        "nested": tally.nested,
        "faults": tally.faults,
        "distinct_images": tally.images.count,
        "distinct_images_exact": tally.images.exact,
        "chance_of_new_image": round(tally.images.chance_of_new, 4),
        "distinct_schedules": tally.schedules.count,
        "crash_points": _plain(points_of(scores)),
        "pairs": _plain(pairs_of(scores)),
    }


def _marks(tally: Tally, expected: Sequence[str]) -> dict[str, Json]:
    missing = tally.marks.never(expected)
    return {
        "reached": len(expected) - len(missing),
        "total": len(expected),
        "never": list(missing),
    }
