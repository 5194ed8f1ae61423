"""``powercut doctor``: versions, persistence models, and what this machine can do."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from typing import Final

import apsw
import click
from rich import box
from rich.console import Console
from rich.table import Table

from powercut.cli.exit_code import ExitCode
from powercut.cli.output import console_beside
from powercut.cli.usage import UsageMistake, must_be_writable
from powercut.fuzz.campaign.workers import cores
from powercut.fuzz.reproducer import FAILURES, versions
from sim.disk.crash.persistence import MODELS, PersistenceModel

_PIN: Final = re.compile(r"hypothesis==([\w.]+)")
_EXTRAS: Final = {
    "pytest": "the pytest plugin and its fixtures",
    "xdist": "tests on all cores",
    "pyfakefs": "benchmarks beside another fake file system",
    "simloom": "benchmarks beside another simulator",
}


@click.command()
def command() -> None:
    """Show versions, persistence models, and what this machine can do.

    Exits with 2 if something has to be put right first.
    """
    console = console_beside(None)
    problems = list(_problems())
    _print_pairs(console, "versions", versions().items())
    _print_pairs(console, "this machine", _machine())
    console.print("persistence models, the strongest first")
    console.print(_models())
    for problem in problems:
        console.print(f"problem: {problem}", soft_wrap=True)
    console.print("ready" if not problems else "not ready")
    click.get_current_context().exit(ExitCode.USAGE if problems else ExitCode.CLEAN)


def _machine() -> Iterator[tuple[str, str]]:
    yield "system", f"{platform.system()} {platform.release()} {platform.machine()}"
    yield "cores", str(cores())
    yield "SQLite", f"{apsw.sqlite_lib_version()}, through apsw {apsw.apsw_version()}"
    pinned = _pinned_hypothesis()
    yield "Hypothesis", f"pinned to {pinned}" if pinned else "not pinned: powercut is not installed"
    for module, gives in _EXTRAS.items():
        there = "there" if find_spec(module) is not None else "not installed"
        yield module, f"{there} ({gives})"


def _problems() -> Iterator[str]:
    pinned, found = _pinned_hypothesis(), versions()["hypothesis"]
    if pinned and found != pinned:
        yield (
            f"Hypothesis is {found} and must be {pinned}: powercut uses names of it that are "
            "private; install the pinned version"
        )
    try:
        must_be_writable(FAILURES)
    except UsageMistake as mistake:
        yield str(mistake)


def _pinned_hypothesis() -> str:
    try:
        requirements = requires("powercut") or []
    except PackageNotFoundError:
        return ""
    pins = [found[1] for line in requirements if (found := _PIN.match(line))]
    return pins[0] if pins else ""


def _models() -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for heading in (
        "model", "whole or\nnot at all", "data before\nits size", "stale bytes", "names\nin order",
        "rename\nwaits", "fsync covers\nits name", "other\nmetadata",
    ):  # fmt: skip
        table.add_column(heading)
    for model in MODELS.values():
        table.add_row(
            model.name,
            _unit(model),
            model.data_before_size.value,
            model.stale_bytes.value,
            model.directory_order.value,
            _yes(model.rename_over_waits),
            _yes(model.sync_names),
            _yes(model.sync_metadata),
        )
    return table


def _unit(model: PersistenceModel) -> str:
    if model.torn_units:
        return "one byte"
    return f"{model.unit_bytes} bytes" if model.unit_bytes else "a call"


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def _print_pairs(console: Console, title: str, pairs: Iterable[tuple[str, str]]) -> None:
    console.print(title)
    for name, value in pairs:
        console.print(f"  {name:12}  {value}", soft_wrap=True)
    console.print()
