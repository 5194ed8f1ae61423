"""``powercut explore``: crash a small workload everywhere; one verdict for each model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import click
from rich.console import Console

from powercut.cli.completion import complete_from, complete_tags
from powercut.cli.exit_code import ExitCode
from powercut.cli.output import busy, console_beside, json_option, write_json
from powercut.cli.usage import UsageMistake, asked_by_user, must_take_json
from powercut.explorer.diagnosis import Diagnosis, diagnose
from powercut.explorer.explore import judged
from powercut.explorer.limits import Limits
from powercut.explorer.recorded_workload import record
from powercut.fuzz.memory import settled
from powercut.interpose.interposed import DEFAULT_ROOT
from powercut.interpose.seed import image_of
from powercut.registry import Registry, WorkloadEntry
from powercut.report.exploration import exploration_table, plain_models, verdict_line
from powercut.report.findings import finding_lines, plain_causes
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, PersistenceModel, model_named
from sim.errors import HarnessError

_STATES = Limits().states_per_point


@click.command()
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
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Time for such a workload, and for each of its checks.  [default: 20]",
)
@json_option
def command(
    workload: str | None,
    check: str | None,
    model: str | None,
    states: int,
    root: str,
    seed: str | None,
    timeout: float | None,
    json_out: str | None,
) -> None:
    """Crash a small workload at every point, in every way.

    WORKLOAD is a registered tag or module:function: a function that takes ack, is ordinary
    Python, and calls ack(value) when value must survive a crash from then on; or one that takes
    (process, ack) and writes through process as through os. Without a check, values are mappings
    from path to content, and the files must be old or new. Without WORKLOAD, every registered
    workload that must be safe is explored.
    """
    with asked_by_user():
        registry = Registry.here()
        name = model or registry.config.model or "all"
        models = tuple(MODELS.values()) if name == "all" else (model_named(name),)
        workloads = _workloads(registry, workload, check)
        start = _Start(image_of(seed, root) if seed else None, root, timeout)
    if json_out is not None:
        must_take_json(json_out)
    console = console_beside(json_out)
    with settled():
        explored = {each.tag: _explore(console, each, models, states, start) for each in workloads}
    verdicts = {tag: diagnosis.explorations for tag, diagnosis in explored.items()}
    safe = not any(diagnosis.unsafe_models for diagnosis in explored.values())
    if json_out is not None:
        write_json(
            json_out,
            {
                "verdict": "clean" if safe else "violation",
                "models": plain_models(verdicts.values()),
                "targets": {tag: plain_models([found]) for tag, found in verdicts.items()},
                "findings": {tag: plain_causes(found) for tag, found in explored.items()},
            },
        )
    click.get_current_context().exit(ExitCode.CLEAN if safe else ExitCode.VIOLATION)


def _workloads(
    registry: Registry, workload: str | None, check: str | None
) -> Sequence[WorkloadEntry]:
    if workload is not None:
        return (registry.workload(workload, check),)
    if check is not None:
        raise HarnessError(f"--check {check} needs the workload that it checks")
    return registry.sound_workloads()


class _Start(NamedTuple):
    """The disk of an interposed workload, and its time; None stands for the default."""

    image: Image | None
    root: str
    timeout: float | None


def _explore(
    console: Console,
    workload: WorkloadEntry,
    models: Sequence[PersistenceModel],
    states: int,
    start: _Start,
) -> Diagnosis:
    """Explore one workload under each model, and print the verdicts."""
    console.print(f"{workload.tag}: {workload.about}".removesuffix(": "), soft_wrap=True)
    most = min(states, workload.limits.states_per_point)
    timeout = start.timeout or workload.limits.timeout
    limits = replace(workload.limits, states_per_point=most, timeout=timeout)
    with busy(console, workload.tag):
        try:
            image = start.image or Image.empty()
            recorded = record(workload.run, models[-1], image, start.root, limits)
            diagnosis = diagnose(judged(recorded, workload.check, models, limits))
        except HarnessError as mistake:
            raise UsageMistake(f"{workload.tag}: {mistake}") from None
    console.print(exploration_table(diagnosis))
    for line in finding_lines(diagnosis):
        console.print(line, soft_wrap=True)
    console.print(verdict_line(diagnosis))
    console.print()
    return diagnosis
