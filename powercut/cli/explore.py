"""``powercut explore``: every crash of a small workload, and a verdict for each model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click
from rich.console import Console

from crash_tests.workloads.catalogue import SCENARIOS
from crash_tests.workloads.workload import Scenario
from powercut.cli.exit_code import ExitCode
from powercut.cli.output import busy, console_beside, json_option, write_json
from powercut.cli.usage import UsageMistake, asked_by_user, must_take_json
from powercut.explorer.explore import Limits, explore
from powercut.fuzz.memory import settled
from powercut.report.exploration import (
    Verdicts,
    exploration_table,
    failure_lines,
    plain_models,
    verdict_line,
)
from powercut.user_workload import user_scenario
from sim.disk.crash.persistence import MODELS, PersistenceModel, model_named
from sim.errors import HarnessError

_STATES = Limits().states_per_point


@click.command()
@click.argument("target", required=False)
@click.option(
    "--check", metavar="MODULE:FUNCTION", help="Your own check; it takes (process, known)."
)
@click.option(
    "--model",
    metavar="MODEL",
    default="all",
    show_default=True,
    help=f"Persistence model: all, {', '.join(MODELS)}.",
)
@click.option(
    "--states",
    type=click.IntRange(1),
    metavar="N",
    default=_STATES,
    show_default=True,
    help="Build all states of a crash point that has up to so many (fewer where a scenario is "
    "large); draw samples beyond.",
)
@json_option
def command(
    target: str | None, check: str | None, model: str, states: int, json_out: str | None
) -> None:
    """Crash a small workload at every point, in every way.

    TARGET is a built-in scenario, or module:function of your own: a function that takes
    (process, ack), writes through process as through os, and calls ack(value) for what is safe
    from then on. Without a check, values are mappings from path to content, and the files
    must be old or new. Without TARGET, all built-in scenarios run that must be safe.
    """
    with asked_by_user():
        models = tuple(MODELS.values()) if model == "all" else (model_named(model),)
        scenarios = _scenarios(target, check)
    if json_out is not None:
        must_take_json(json_out)
    console = console_beside(json_out)
    with settled():
        explored = {each.tag: _explore(console, each, models, states) for each in scenarios}
    safe = all(found.safe for verdicts in explored.values() for found in verdicts.values())
    if json_out is not None:
        write_json(
            json_out,
            {
                "verdict": "clean" if safe else "violation",
                "models": plain_models(explored.values()),
                "targets": {tag: plain_models([verdicts]) for tag, verdicts in explored.items()},
            },
        )
    click.get_current_context().exit(ExitCode.CLEAN if safe else ExitCode.VIOLATION)


def _scenarios(target: str | None, check: str | None) -> Sequence[Scenario]:
    if target is not None and ":" in target:
        return (user_scenario(target, check),)
    if check is not None:
        raise HarnessError(f"--check {check} needs a module:function of yours to judge")
    if target is None:
        return tuple(scenario for scenario in SCENARIOS.values() if scenario.sound)
    if target not in SCENARIOS:
        raise HarnessError(
            f"unknown scenario {target!r}; known are {', '.join(SCENARIOS)}, "
            "or module:function of your own"
        )
    return (SCENARIOS[target],)


def _explore(
    console: Console, scenario: Scenario, models: Sequence[PersistenceModel], states: int
) -> Verdicts:
    """Explore one scenario under each model, and print what came of it."""
    console.print(f"{scenario.tag}: {scenario.about}", soft_wrap=True)
    most = min(states, scenario.limits.states_per_point)
    limits = replace(scenario.limits, states_per_point=most)
    verdicts = {}
    for model in models:
        with busy(console, f"{scenario.tag} on {model.name}"):
            try:
                verdicts[model.name] = explore(scenario.workload, scenario.check, model, limits)
            except HarnessError as mistake:
                if scenario.tag in SCENARIOS:
                    raise
                raise UsageMistake(f"{scenario.tag}: {mistake}") from None
    console.print(exploration_table(verdicts))
    for line in failure_lines(verdicts):
        console.print(line, soft_wrap=True)
    console.print(verdict_line(verdicts))
    console.print()
    return verdicts
