"""``powercut run``: fuzz targets, reduce their failures, close with a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from traceback import format_exception
from typing import Final, TypedDict, Unpack

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from faults.fault_plan import FaultPlan
from powercut.breakpoints import breakpoints_refused
from powercut.cli.command import Command
from powercut.cli.completion import complete_from, complete_tags
from powercut.cli.exit_code import ExitCode
from powercut.cli.findings import Findings
from powercut.cli.output import console_beside, json_option, write_json
from powercut.cli.search_failed import end_of_search
from powercut.cli.usage import (
    TimeRange,
    UsageMistake,
    asked_by_user,
    mistake_of,
    must_be_writable,
    must_take_json,
)
from powercut.counted import counted
from powercut.fuzz.campaign.campaign import Plan, Score, scores
from powercut.fuzz.campaign.corpus import corpus_in
from powercut.fuzz.campaign.growth import grow
from powercut.fuzz.campaign.workers import WorkerDied, cores
from powercut.fuzz.memory import as_before
from powercut.fuzz.profiles import PROFILES, Profile
from powercut.fuzz.reduction import SECONDS
from powercut.fuzz.reproducer import FAILURES
from powercut.registry import Registry
from powercut.report.campaign import CampaignReport, CampaignVerdict, Goal
from powercut.report.closing_table import print_closing
from sim.disk.crash.persistence import MODELS, POSIX, PersistenceModel, model_named
from sim.errors import HarnessError
from sim.loop.sandbox import SANDBOX

_SECONDS: Final = 60
_LONG: Final = ("nightly", "torture")
_EXIT_CODES: Final = {
    CampaignVerdict.CLEAN: ExitCode.CLEAN,
    CampaignVerdict.VIOLATION: ExitCode.VIOLATION,
    CampaignVerdict.GOAL_MISSED: ExitCode.GOAL_MISSED,
    CampaignVerdict.UNENDED: ExitCode.GOAL_MISSED,
    CampaignVerdict.INTERRUPTED: ExitCode.INTERRUPTED,
    CampaignVerdict.INCOMPLETE: ExitCode.INTERNAL_ERROR,
}


class Given(TypedDict):
    """The options of the command."""

    targets: tuple[str, ...]
    model: str | None
    profile: str | None
    examples: int | None
    steps: int | None
    seconds: float | None
    seed: int | None
    processes: int | None
    faults: str
    root: Path
    corpus: Path | None
    json_out: str | None


@click.command(cls=Command)
@click.argument("targets", metavar="[TARGET]...", nargs=-1, shell_complete=complete_tags("targets"))
@click.option(
    "--model",
    metavar="MODEL",
    shell_complete=complete_from(MODELS),
    help=f"Persistence model: {', '.join(MODELS)}.  [default: model of [tool.powercut], else "
    "posix]",
)
@click.option(
    "--profile",
    metavar="NAME",
    shell_complete=complete_from(PROFILES),
    help=f"Take examples and steps from a profile: {', '.join(PROFILES)}.",
)
@click.option("--examples", type=click.IntRange(1), metavar="N", help="Runs of each target.")
@click.option(
    "--steps",
    type=click.IntRange(1),
    metavar="N",
    help="Actions of each run.  [default: mostly 30, some 5, rarely hundreds]",
)
@click.option(
    "--seconds",
    type=TimeRange(),
    metavar="S",
    help="Stop after this time.  [default: none if a number of examples is given; seconds of "
    f"[tool.powercut], else {_SECONDS}]",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    metavar="N",
    help="Seed of all choices; an equal seed repeats the campaign.  [default: seed of "
    "[tool.powercut], else 0]",
)
@click.option(
    "-n",
    "processes",
    type=click.IntRange(1),
    metavar="N",
    help="Processes.  [default: one for each core]",
)
@click.option(
    "--faults",
    metavar="PLAN",
    default="",
    help="Begin each run under this fault plan, such as 'fsync * #3 EIO:ext4'.",
)
@click.option(
    "--root",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="DIR",
    help="Failures go to .powercut/failures in this directory.  [default: the current one]",
)
@click.option(
    "--corpus",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Begin half of the runs with runs of this directory; add those that reach something new.",
)
@json_option
@breakpoints_refused()
def command(**given: Unpack[Given]) -> None:
    """Fuzz targets under crashes and faults; close with a table.

    TARGET is a tag of [tool.powercut.targets] or module:object; without one, all registered
    targets are fuzzed. Each run performs random actions. The process is killed and the power
    is cut at any operation, and again inside the recovery. At the end all faults are lifted,
    and all accepted work must be done. Each kind of failure is reduced, reported, and written
    as a reproducer.
    """
    started = time.monotonic()
    json_out = given["json_out"]
    folder = given["root"] / FAILURES
    plan, goal = _plan(given, started)
    must_be_writable(folder, "--root")
    if plan.corpus is not None:
        must_be_writable(plan.corpus, "--corpus")
    if json_out is not None:
        must_take_json(json_out)
    console = console_beside(json_out)
    findings = Findings(plan, folder, console)
    click.get_current_context().with_resource(as_before())
    scores, end = _fuzz(plan, given["processes"] or cores(), console, findings)
    fuzzing_seconds = time.monotonic() - started
    if isinstance(end, KeyboardInterrupt):
        for note in getattr(end, "__notes__", ()):
            click.echo(note, err=True)
    for note in (note for score in scores for note in score.unended):
        click.echo(note, err=True)
    failure = end if isinstance(end, Exception) else None
    has_result = _any_failed(scores) or isinstance(failure, WorkerDied)
    if failure is not None and not has_result:
        raise failure
    if plan.corpus is not None and end is None:
        console.print(f"corpus  {counted(grow(plan, scores), 'run')} added to {plan.corpus}")
    found, interrupted = findings.reduce(scores, hurry=isinstance(end, KeyboardInterrupt))
    interrupted = interrupted and failure is None
    report = CampaignReport(plan, scores, found, interrupted, goal, failure)
    print_closing(console, report, fuzzing_seconds, time.monotonic() - started)
    if failure is not None:
        mistake = str(failure) if isinstance(failure, WorkerDied) else mistake_of(failure)
        text = f"Error: {mistake}" if mistake else "".join(format_exception(failure))
        click.echo(text, err=True)
    code = _EXIT_CODES[report.verdict]
    if json_out is not None:
        _write_json(json_out, report, code)
    if findings.error is not None:
        raise end_of_search(findings.error)
    if code is ExitCode.CLEAN:
        _must_have_crashed(scores)
    click.get_current_context().exit(code)


def _must_have_crashed(scores: Sequence[Score]) -> None:
    """Raise ``UsageMistake`` for a campaign without a crash or a change of the disk.

    It may have no crash if no target is ever crashed.
    """
    crashed = [score.tally.crashes for score in scores if not score.target.crash_free]
    if crashed and not any(crashed):
        raise UsageMistake(
            "the campaign had no crash, so nothing was tested: give it more --seconds or "
            "--examples, or a target with actions that change the disk"
        )
    idle = [score.target.tag for score in scores if score.tally.crashes and not score.tally.changed]
    if idle:
        raise UsageMistake(
            f"{', '.join(idle)} never changed the simulated disk, so a crash lost nothing: let the "
            "system write through the process of its Boot, which a DiskTarget gets in recover"
        )


def _write_json(json_out: str, report: CampaignReport, code: ExitCode) -> None:
    """Write the report; if the disk is full, a campaign that is not clean keeps its exit code."""
    try:
        write_json(json_out, report.plain())
    except UsageMistake as mistake:
        if code is ExitCode.CLEAN:
            raise
        mistake.show()


def _plan(given: Given, started: float) -> tuple[Plan, Goal]:
    """Return the campaign that the options describe, and the marks that it must reach."""
    with asked_by_user():
        named, name = given["targets"], given["profile"]
        registry = Registry.here()
        config = registry.config
        model = model_named(given["model"] or config.model or POSIX.name)
        faults = str(FaultPlan.parse(given["faults"]))
        if given["corpus"] is not None:
            corpus_in(given["corpus"])
        profile = _profile_named(name or "default")
        tags = dict.fromkeys(named)
        targets = [registry.target(tag) for tag in tags] if named else registry.all_targets()
        if faults and all(target.crash_free for target in targets):
            free = ", ".join(target.tag for target in targets)
            raise HarnessError(f"--faults {faults!r} reaches no target: {free} is never faulted")
    examples = given["examples"] or (profile.examples if name else None)
    seconds = given["seconds"] or (None if examples else config.seconds or _SECONDS)
    seed = config.seed if given["seed"] is None else given["seed"]
    plan = Plan(
        tuple(target.under(model) for target in targets),
        model,
        seed,
        given["steps"] or profile.steps,
        examples,
        None if seconds is None else started + seconds,
        faults,
        various=given["steps"] is None,
        reduction_seconds=min(SECONDS, (seconds or 0) / 4),
        corpus=given["corpus"],
    )
    return plan, _goal(given, model)


def _goal(given: Given, model: PersistenceModel) -> Goal:
    """Return the marks that the campaign must reach.

    A long profile must reach all of them. The default campaign must reach all but the rare
    ones. A budget, targets, faults or a model that the user chose may make any mark impossible.
    """
    if given["profile"] in _LONG:
        return Goal.ALL
    own = (given["targets"], given["profile"], given["examples"], given["steps"], given["seconds"])
    usual = not any(own) and not given["faults"] and model is POSIX
    return Goal.USUAL if usual else Goal.NONE


def _profile_named(name: str) -> Profile:
    try:
        return PROFILES[name]
    except KeyError:
        known = ", ".join(PROFILES)
        raise HarnessError(f"unknown settings profile {name!r}; known are {known}") from None


def _fuzz(
    plan: Plan, processes: int, console: Console, findings: Findings
) -> tuple[Sequence[Score], BaseException | None]:
    """Run the campaign; return the scores, and the exception that ended it early, or None.

    ``findings`` reports each failure when its batch is done.
    """
    totals = {target.tag: Score(target) for target in plan.targets}
    with _progress(console, plan) as advance:
        try:
            with SANDBOX.interruptible():
                for score in scores(plan, processes, lambda: _any_failed(totals.values())):
                    total = totals[score.target.tag]
                    total.add(score)
                    advance(score)
                    findings.report(total)
        except (KeyboardInterrupt, Exception) as end:  # noqa: BLE001 - first report the findings
            return tuple(totals.values()), end
    return tuple(totals.values()), None


def _any_failed(totals: Iterable[Score]) -> bool:
    return any(total.failed for total in totals)


@contextmanager
def _progress(console: Console, plan: Plan) -> Iterator[Callable[[Score], None]]:
    """Show a progress bar on a terminal; yield the function that advances it by a batch."""
    if not console.is_terminal:
        yield lambda _score: None
        return
    by_time = plan.deadline is not None and plan.examples is None
    started = time.monotonic()
    total = (plan.deadline or 0.0) - started if by_time else _runs(plan)
    counted = {"runs": 0, "crashes": 0, "failed": 0}
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=total)

        def advance(score: Score) -> None:
            tally = score.tally
            counted["runs"] += tally.runs
            counted["crashes"] += tally.kills + tally.power_cuts
            counted["failed"] += score.failed
            done = time.monotonic() - started if by_time else counted["runs"]
            text = "  ".join(f"{name} {number:,}" for name, number in counted.items())
            progress.update(task, completed=done, description=text)

        yield advance


def _runs(plan: Plan) -> float:
    return float((plan.examples or 0) * len(plan.targets))
