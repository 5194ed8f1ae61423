"""The failures of a campaign: reported when they are found, explained when it has ended."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import inf
from pathlib import Path
from typing import Final, TypeAlias

from rich.console import Console

from powercut.causes.known_cause import KnownCause, has_another_cause
from powercut.fuzz.campaign.campaign import Failing, Plan, Score
from powercut.fuzz.drivers.swarm import SeededRun
from powercut.fuzz.printed import PRINTED
from powercut.fuzz.reduction import SECONDS, reduced
from powercut.fuzz.reproducer import Finding, keep
from powercut.fuzz.run_log import FailureKind
from powercut.fuzz.story import headline, story
from powercut.fuzz.target import TargetEntry
from powercut.fuzz.target_mistake import DEPENDS_ON_MORE
from powercut.fuzz.target_run import TargetRun
from powercut.fuzz.time_limit import TimeOver, ended_after
from powercut.report.cause import by_cause, cause_of, searched
from sim.loop.sandbox import SANDBOX

_Key: TypeAlias = tuple[str, FailureKind]
_LEAST_SECONDS: Final = 0.1

_MOST_FURTHER: Final = 3
"""Further runs of one kind of failure that are reduced, because they have another cause."""

_SHARES_LEFT: Final = 2
"""A further run gets this part of the time that is left."""


class _FirstError:
    """A context, used several times, that keeps the first exception and suppresses all of them.

    Those that end the program, such as ``KeyboardInterrupt``, are not suppressed.
    """

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        self.note(error)
        return isinstance(error, Exception)

    def note(self, error: BaseException | None) -> None:
        """Keep an exception if it is the first."""
        if self.error is None and isinstance(error, Exception):
            self.error = error


@dataclass(frozen=True, slots=True)
class _Found:
    """A failure as a run of the campaign met it."""

    failing: Failing
    finding: Finding


class Findings:
    """The failures of the campaign ``plan``, one of each kind; reproducers go to ``folder``."""

    def __init__(self, plan: Plan, folder: Path, console: Console) -> None:
        self._plan = plan
        self._folder = folder
        self._console = console
        self._found: dict[_Key, _Found] = {}
        self._unrepeatable: set[_Key] = set()
        self._known: dict[_Key, list[KnownCause]] = {}
        # The run of the campaign that each reproducer comes from.
        self._origins: dict[Path, str] = {}
        # The errors of powercut that have ended a reduction or a search for a cause.
        self._errors = _FirstError()

    @property
    def error(self) -> Exception | None:
        """The first error of powercut that has ended a reduction or a search for a cause."""
        return self._errors.error

    def report(self, score: Score) -> None:
        """Print the failures of ``score`` that are new, and write their reproducers.

        They are not reduced yet: a campaign that is killed later has kept them.
        """
        for kind, failing in sorted(score.failing.items()):
            key = (score.target.tag, kind)
            if key in self._found or key in self._unrepeatable:
                continue
            found = self._keep(score.target, kind, failing)
            if found is not None:
                log = found.finding.run.log
                self._print(f"found  {log.target}: {log.broken}: {log.statement}")
                self._print(f"  run {failing.number}, step {failing.steps}")
                for line in found.finding.unreduced_lines():
                    self._print(line)

    def reduce(self, scores: Sequence[Score], *, hurry: bool) -> tuple[list[Finding], bool]:
        """Reduce the shortest failure of each kind, and print the stories, grouped by cause.

        The cause of each is searched. In a ``hurry``, and after the deadline of the campaign,
        failures stay as they were found. If failures of one kind have several causes, there is a
        finding for each. Returns the findings, and whether the user has interrupted the campaign
        or a reduction.
        """
        failures = [
            (score.target, kind, failing)
            for score in scores
            for kind, failing in sorted(score.failing.items())
        ]
        findings: list[Finding] = []
        for left, (target, kind, failing) in zip(
            range(len(failures), 0, -1), failures, strict=True
        ):
            found = self._found.get((target.tag, kind)) or self._keep(target, kind, failing)
            if found is None:
                continue
            finding = found.finding
            try:
                with self._errors:
                    finding = finding if hurry else self._explained(found, target, failing, left)
            except KeyboardInterrupt:
                hurry = True
            findings.append(finding)
        try:
            for score in () if hurry else scores:
                for kind in sorted(score.failing):
                    with self._errors:
                        findings += self._with_other_causes(score, kind, findings)
        except KeyboardInterrupt:
            hurry = True
        self._remove_unreduced(findings)
        self._print_stories(findings)
        return findings, hurry

    def _keep(self, target: TargetEntry, kind: FailureKind, failing: Failing) -> _Found | None:
        """Repeat a failed run and write its reproducer; None if it passes when repeated."""
        seeded = self._plan.run(target, failing.number, failing.steps)
        with redirect_stdout(PRINTED), redirect_stderr(PRINTED):
            run = seeded.run()
        if run.failure is None:
            self._unrepeatable.add((target.tag, kind))
            self._print(
                f"not repeatable  {target.tag}: run {failing.number} failed with {kind.broken} and "
                f"passes when it is repeated; {DEPENDS_ON_MORE}"
            )
            return None
        finding = self._written(run, failing, seeded)
        found = self._found[target.tag, kind] = _Found(failing, finding)
        return found

    def _written(self, run: TargetRun, failing: Failing, seeded: SeededRun) -> Finding:
        with redirect_stdout(PRINTED), redirect_stderr(PRINTED):
            finding = keep(run, self._folder)
            self._origins[finding.path] = f"run {failing.number}: {seeded.bias()}"
        return finding

    def _explained(
        self, found: _Found, target: TargetEntry, failing: Failing, left: int
    ) -> Finding:
        """Reduce one of ``left`` failures in its share of the time, and search its cause."""
        if self._share(left) < _LEAST_SECONDS:
            return found.finding
        finding = found.finding
        with suppress(TimeOver), self._busy(left):
            finding = self._reduced(found, target, failing, left)
            return self._searched(finding, left)
        return finding

    @contextmanager
    def _busy(self, left: int) -> Iterator[None]:
        """Show that a failure is reduced.

        Raises ``TimeOver`` if a smaller run goes on when its share of the time is over.
        """
        status = self._console.status("reducing a failure")
        seconds = self._share(left)
        with (
            status if self._console.is_terminal else nullcontext(),
            SANDBOX.interruptible(),
            nullcontext() if seconds == inf else ended_after(seconds),
            redirect_stdout(PRINTED),
            redirect_stderr(PRINTED),
        ):
            yield

    def _searched(self, finding: Finding, left: int) -> Finding:
        """Search the cause of a finding in its share of the time, and remember it as known."""
        share = self._share(left)
        if share < _LEAST_SECONDS:
            return finding
        explained, known, error = searched(finding, wall_seconds=share)
        self._errors.note(error)
        log = finding.run.log
        if known is not None:
            self._known.setdefault((log.target, log.failure_kind), []).append(known)
        return explained

    def _with_other_causes(
        self, score: Score, kind: FailureKind, findings: Sequence[Finding]
    ) -> Iterator[Finding]:
        """Yield a finding for each further cause of a kind of failure of which one is known.

        A run with another cause is reduced to a run with another cause. Runs that have no known
        cause besides come first: they show the other one.
        """
        tag, reductions = score.target.tag, 0
        groups = {cause_of(each).group for each in findings if each.run.log.target == tag}
        of_kind = sorted({each for (other, _), each in score.losing.items() if other == kind})
        rounds = (True, False) if (tag, kind) in self._known else ()
        for is_alone, losing in product(rounds, of_kind):
            if reductions == _MOST_FURTHER or self._share(_SHARES_LEFT) < _LEAST_SECONDS:
                return
            failing = losing.failing
            seeded = self._plan.run(score.target, failing.number, failing.steps)
            finding = None
            with suppress(TimeOver), self._busy(_SHARES_LEFT):
                run = seeded.run()
                known = self._known_to(tag, kind)
                is_other = partial(has_another_cause, known=known, is_alone=is_alone)
                if run.log.failure_kind != kind or not is_other(run):
                    continue
                reductions += 1
                smallest = reduced(run, SECONDS, self._share(_SHARES_LEFT), is_other)
                finding = self._written(smallest, failing, seeded)
                finding = self._searched(finding, _SHARES_LEFT)
            if finding is not None and cause_of(finding).group not in groups:
                groups.add(cause_of(finding).group)
                yield finding

    def _known_to(self, tag: str, kind: FailureKind) -> Sequence[KnownCause]:
        """Return the known causes of a target that may be those of another failure of a kind.

        The barriers that one kind of failure misses may cause others; a kill says nothing of them.
        """
        return [
            cause
            for (other_tag, other), causes in self._known.items()
            for cause in causes
            if other_tag == tag and (cause.barriers or other == kind)
        ]

    def _share(self, left: int) -> float:
        """Return the time in seconds for one of the last ``left`` failures."""
        deadline = self._plan.deadline
        return inf if deadline is None else (deadline - time.monotonic()) / left

    def _reduced(self, found: _Found, target: TargetEntry, failing: Failing, left: int) -> Finding:
        """Reduce a failure, and rewrite its reproducer."""
        seeded = self._plan.run(target, failing.number, failing.steps)
        failed = found.finding.run if failing == found.failing else seeded.run()
        smallest = reduced(failed, SECONDS, self._share(left))
        if smallest is found.finding.run:
            return found.finding
        return self._written(smallest, failing, seeded)

    def _remove_unreduced(self, findings: Sequence[Finding]) -> None:
        """Remove the reproducers whose place smaller ones have taken."""
        if any(finding.unwritten for finding in findings):
            return
        written = {finding.path for finding in findings}
        for path in self._origins:
            if path not in written:
                with suppress(OSError):
                    path.unlink()

    def _print_stories(self, findings: Sequence[Finding]) -> None:
        """Print the story of the smallest failure of each cause, and the others in short."""
        for first, *others in by_cause(findings):
            explained = replace(first, cause=cause_of(first), printed=PRINTED.by(first.run))
            with redirect_stdout(PRINTED), redirect_stderr(PRINTED):
                page = story(explained)
            self._print(f"{page}\n  swarm   {self._origins[first.path]}")
            for other in others:
                self._print("")
                self._print(f"{headline(other)}\n  target  {other.run.log.target}, same cause")
                for line in other.replay_lines():
                    self._print(line)
            self._print("")

    def _print(self, text: str) -> None:
        self._console.print(text, soft_wrap=True)
