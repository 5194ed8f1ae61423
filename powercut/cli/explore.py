"""``powercut explore``: crash a small workload everywhere; one verdict for each model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple, TypedDict, Unpack

import click
from rich.console import Console

from powercut.breakpoints import breakpoints_refused
from powercut.cli.command import Command
from powercut.cli.completion import complete_from, complete_tags
from powercut.cli.disk_dumper import dump_option
from powercut.cli.exit_code import ExitCode
from powercut.cli.finding_keeper import FindingKeeper
from powercut.cli.output import console_beside, json_option, print_lines, write_json
from powercut.cli.pace import Pace
from powercut.cli.search_failed import end_of_search
from powercut.cli.usage import TimeRange, asked_by_user, must_take_json
from powercut.explorer.cause import Cause, Diagnosis
from powercut.explorer.diagnosis import diagnosed
from powercut.explorer.explore import judged, must_pass_undamaged
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.recorded_workload import record
from powercut.explorer.verdicts import Exploration
from powercut.fuzz.campaign.workers import cores
from powercut.fuzz.memory import settled
from powercut.interpose.interposed import DEFAULT_ROOT
from powercut.interpose.seed import image_of
from powercut.registry import Registry, WorkloadEntry
from powercut.report.exploration import exploration_table, plain_models, verdict_line
from powercut.report.findings import (
    MOST_FINDINGS,
    check_lines,
    endless_lines,
    failure_lines,
    finding_lines,
    interrupted_lines,
    plain_causes,
    short_line,
)
from powercut.report.repair import repair_lines
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, PersistenceModel, model_named
from sim.errors import HarnessError

_STATES: Final = Limits().states_per_point


class TotalVerdict(StrEnum):
    """The verdict on all workloads together."""

    CLEAN = "clean"
    VIOLATION = "violation"
    STOPPED = "stopped"


_EXIT_CODES: Final = {
    TotalVerdict.CLEAN: ExitCode.CLEAN,
    TotalVerdict.VIOLATION: ExitCode.VIOLATION,
    TotalVerdict.STOPPED: ExitCode.GOAL_MISSED,
}


class Given(TypedDict):
    """The options of the command."""

    workload: str | None
    check: str | None
    model: str | None
    states: int
    engine: str | None
    root: str
    seed: str | None
    timeout: float | None
    strict: bool
    seconds: float | None
    processes: int | None
    show_all: bool
    dump_folder: Path | None
    json_out: str | None


@click.command(cls=Command)
@click.argument("workload", required=False, shell_complete=complete_tags("workloads"))
@click.option(
    "--check",
    metavar="MODULE:FUNCTION",
    help="Use this check; it takes known, or (process, known).",
)
@click.option(
    "--model",
    metavar="MODEL",
    shell_complete=complete_from(("all", *MODELS)),
    help=f"Persistence model: all, {', '.join(MODELS)}.  [default: model of [tool.powercut], "
    "else all]",
)
@click.option(
    "--states",
    type=click.IntRange(1),
    metavar="N",
    default=_STATES,
    show_default=True,
    help="Build all states of a crash point up to this number, and samples beyond; a workload "
    "may have a lower limit.",
)
@click.option(
    "--engine",
    type=click.Choice([each.value for each in Engine]),
    metavar="ENGINE",
    help="brute builds all states, or a sample of too many; lazy decides only what the check "
    "reads; auto begins as brute, and goes on as lazy if a sample has no failure.  [default: "
    "auto, or that of the workload]",
)
@click.option(
    "--root",
    metavar="PATH",
    default=DEFAULT_ROOT,
    show_default=True,
    help="Directory of the simulated disk for a workload that takes ack alone; it must not exist "
    "on this machine.",
)
@click.option(
    "--copy",
    "seed",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="Begin with a copy of this directory below --root.",
)
@click.option(
    "--timeout",
    type=TimeRange(),
    metavar="SECONDS",
    help="Time for a workload that takes ack alone, and for each of its checks.  [default: 20]",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse clocks and threads of a workload that takes ack alone, so that every run is the "
    "same.",
)
@click.option(
    "--seconds",
    type=TimeRange(),
    metavar="S",
    help="Stop each workload after this time, and after the check that is running then; part of "
    "it is for the search for missing barriers. "
    "The exit code is 4 if there is no verdict then.",
)
@click.option(
    "-n",
    "processes",
    type=click.IntRange(1),
    metavar="N",
    help="Processes that run the check.  [default: one for each core; 1 while states are built, if "
    "the workload takes process]",
)
@click.option("--all", "show_all", is_flag=True, help="Print every failure of every finding.")
@dump_option
@json_option
def command(**given: Unpack[Given]) -> None:
    """Crash a workload at every operation, under every persistence model.

    WORKLOAD is a registered tag or module:function: a function that takes ack, is ordinary
    Python, and calls ack(value) when value must survive a crash from then on; or one that takes
    (process, ack) and writes through process as through os. Without a check, values are mappings
    from path to content, and the files must be old or new. Without WORKLOAD, every registered
    workload is explored, except those whose attribute sound is False.
    """
    with asked_by_user():
        registry = Registry.here()
        name = given["model"] or registry.config.model or "all"
        models = tuple(MODELS.values()) if name == "all" else (model_named(name),)
        workloads = _workloads(registry, given["workload"], given["check"])
        seed = given["seed"]
        image = image_of(seed, given["root"]) if seed else Image.empty()
    json_out = given["json_out"]
    if json_out is not None:
        must_take_json(json_out)
    console = console_beside(json_out)
    explored: dict[str, _Explored] = {}
    interrupted, mistake = False, None
    for each in workloads:
        found = explored[each.tag] = _explore(console, each, models, image, given)
        interrupted, mistake = found.interrupted, found.mistake
        if interrupted or mistake is not None:
            break
    verdicts = {tag: found.diagnosis.explorations for tag, found in explored.items()}
    verdict = _verdict([found.diagnosis for found in explored.values()])
    if json_out is not None:
        write_json(
            json_out,
            {
                "verdict": verdict.value,
                "models": plain_models(verdicts.values()),
                "targets": {tag: plain_models([found]) for tag, found in verdicts.items()},
                "findings": {
                    tag: plain_causes(found.diagnosis, found.paths, found.dumps)
                    for tag, found in explored.items()
                },
            },
        )
    if mistake is not None:
        raise mistake
    code = ExitCode.INTERRUPTED if interrupted else _EXIT_CODES[verdict]
    click.get_current_context().exit(code)


def _verdict(diagnoses: Sequence[Diagnosis]) -> TotalVerdict:
    """Return the verdict; explorations that were stopped before a failure prove nothing."""
    if any(found.unsafe_models for found in diagnoses):
        return TotalVerdict.VIOLATION
    if any(found.unfinished_models for found in diagnoses):
        return TotalVerdict.STOPPED
    return TotalVerdict.CLEAN


def _workloads(
    registry: Registry, workload: str | None, check: str | None
) -> Sequence[WorkloadEntry]:
    if workload is not None:
        return (registry.workload(workload, check),)
    if check is not None:
        raise HarnessError(f"--check {check} needs the workload that it checks")
    return registry.sound_workloads()


class _Explored(NamedTuple):
    """The findings on one workload, the files in which they are kept, and their disks.

    ``mistake`` has ended the search behind them, None if none has.
    """

    diagnosis: Diagnosis
    paths: Sequence[str]
    dumps: Sequence[str]
    interrupted: bool
    mistake: click.ClickException | None


def _explore(
    console: Console,
    workload: WorkloadEntry,
    models: Sequence[PersistenceModel],
    image: Image,
    given: Given,
) -> _Explored:
    """Explore one workload under each model; print the verdicts and keep the findings."""
    console.print(f"{workload.tag}: {workload.about}".removesuffix(": "), soft_wrap=True)
    most = min(given["states"], workload.limits.states_per_point)
    timeout = given["timeout"] or workload.limits.timeout
    engine = Engine(given["engine"] or workload.limits.engine)
    limits = replace(workload.limits, states_per_point=most, timeout=timeout, engine=engine)
    limits = replace(limits, strict=given["strict"] or limits.strict)
    verdicts: dict[str, Exploration] = {}
    mistake: Exception | None = None
    pace = Pace(console, workload.tag, given["seconds"], [model.name for model in models])
    try:
        # The interposer changes objects that ``settled`` would hide from it.
        recorded = record(workload.run, models[-1], image, given["root"], limits)
        # Any other check takes microseconds, less than its share of a fork.
        processes = given["processes"] or (cores() if recorded.root else 1)
        with pace.shown(), pace.kept(), settled(), breakpoints_refused():
            deciding = given["processes"] or cores()
            try:
                judged(
                    recorded, workload.check, models, limits, processes, pace.tick, deciding,
                    verdicts,
                )  # fmt: skip
            except HarnessError as error:
                if all(found.safe for found in verdicts.values()):
                    raise
                mistake = error
                pace.stop()
            must_pass_undamaged(verdicts)
            pace.diagnose()
            diagnosis, failed = diagnosed(verdicts)
            mistake = mistake or failed
    except HarnessError as error:
        raise end_of_search(error, workload.tag) from None
    console.print(exploration_table(diagnosis))
    keeper = FindingKeeper(workload.tag, given["check"], limits, given["dump_folder"])
    for number, cause in enumerate(diagnosis.causes, 1):
        print_lines(console, _finding(keeper, diagnosis, cause, number, given))
    print_lines(console, [*check_lines(diagnosis), *repair_lines(diagnosis)])
    print_lines(console, [*endless_lines(diagnosis), *interrupted_lines(diagnosis)])
    console.print(verdict_line(diagnosis))
    console.print()
    end = None if mistake is None else end_of_search(mistake, workload.tag)
    return _Explored(diagnosis, keeper.paths, keeper.dumps, pace.interruption.happened, end)


def _finding(
    keeper: FindingKeeper, diagnosis: Diagnosis, cause: Cause, number: int, given: Given
) -> Sequence[str]:
    """Keep a finding, and return its lines."""
    lines = [*finding_lines(diagnosis, cause), *keeper.keep(diagnosis, cause)]
    if given["show_all"]:
        return [*lines, *failure_lines(cause)]
    return lines if number <= MOST_FINDINGS else [short_line(cause)]
