"""``powercut doctor``: versions, the project's registry, extras, persistence models."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.table import Table

from powercut.cli.command import Command
from powercut.cli.exit_code import ExitCode
from powercut.cli.output import console_beside
from powercut.cli.usage import UsageMistake, must_be_writable
from powercut.config import find_config
from powercut.extras import EXTRAS, GIVES
from powercut.fuse.disk_mount import mount_way
from powercut.fuzz.campaign.workers import cores
from powercut.fuzz.hypothesis_names import missing_names
from powercut.fuzz.reproducer import FAILURES, versions
from powercut.registry import Registry
from powercut.report.findings import listed
from sim.disk.crash.persistence import MODELS, PersistenceModel
from sim.errors import HarnessError


@click.command(cls=Command)
def command() -> None:
    """Show versions, the registry, extras and persistence models.

    Registered targets, workloads and mutants are imported. Exits with 2 if a problem must be
    solved first.
    """
    console = console_beside(None)
    problems = list(_problems())
    _print_pairs(console, "versions", versions().items())
    _print_pairs(console, "this machine", _machine())
    _print_pairs(console, "this project", _project())
    _print_pairs(console, "extras", _extras())
    console.print("persistence models, the strongest first")
    console.print(_models())
    for limitation in missing_names():
        console.print(f"limitation: {limitation}", soft_wrap=True)
    for problem in problems:
        console.print(f"problem: {problem}", soft_wrap=True)
    console.print("ready" if not problems else "not ready")
    click.get_current_context().exit(ExitCode.USAGE if problems else ExitCode.CLEAN)


def _machine() -> Iterator[tuple[str, str]]:
    yield "system", f"{platform.system()} {platform.release()} {platform.machine()}"
    yield "cores", str(cores())
    yield "mount a disk", mount_way()
    if find_spec("apsw") is not None:
        apsw = import_module("apsw")
        yield "SQLite", f"{apsw.sqlite_lib_version()}, through apsw {apsw.apsw_version()}"


def _project() -> Iterator[tuple[str, str]]:
    try:
        config = find_config(Path.cwd())
    except HarnessError:
        yield "settings", "not read: see the problem below"
        return
    yield "settings", str(config.file or "no pyproject.toml")
    for table in ("targets", "workloads", "mutants"):
        yield table, ", ".join(getattr(config, table)) or "none registered"


def _extras() -> Iterator[tuple[str, str]]:
    for extra, gives in GIVES.items():
        packages = [package for package, its in EXTRAS.items() if its == extra]
        missing = [package for package in packages if find_spec(package) is None]
        state = "installed"
        if missing:
            state = f"{listed(missing)} not installed: pip install 'powercut[{extra}]'"
        yield extra, f"{state} ({gives})"


def _problems() -> Iterator[str]:
    try:
        must_be_writable(FAILURES)
    except UsageMistake as mistake:
        yield str(mistake)
    try:
        registry = Registry.here()
    except HarnessError as mistake:
        yield str(mistake)
    else:
        yield from _unusable(registry)


def _unusable(registry: Registry) -> Iterator[str]:
    """Yield a sentence for each registered entry that cannot be imported or is malformed."""
    config = registry.config
    entries: list[tuple[Callable[[str], object], str]]
    entries = [(registry.target, tag) for tag in config.targets]
    entries += [(registry.workload, tag) for tag in config.workloads]
    entries += [(registry.mutant, tag) for tag in config.mutants]
    for load, tag in entries:
        try:
            load(tag)
        except HarnessError as mistake:
            yield str(mistake)


def _models() -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("model", no_wrap=True)
    for heading in (
        "atomic\nunit", "size waits\nfor data", "stale\nbytes", "in\norder", "rename\nwaits for",
        "rename\nparts", "trunca-\ntion", "names\nsynced", "barriers\ncover",
    ):  # fmt: skip
        table.add_column(heading)
    for model in MODELS.values():
        table.add_row(
            model.name,
            _unit(model),
            model.data_before_size.value,
            model.stale_bytes.value,
            model.metadata_in_order.value,
            model.rename_waits.value,
            model.rename_parts.value,
            model.truncation.value,
            model.synced_names.value,
            model.coverage.value,
        )
    return table


def _unit(model: PersistenceModel) -> str:
    if model.torn_units:
        return "1 byte"
    return f"{model.unit_bytes} bytes" if model.unit_bytes else "call"


def _print_pairs(console: Console, title: str, pairs: Iterable[tuple[str, str]]) -> None:
    console.print(title)
    for name, value in pairs:
        console.print(f"  {name:12}  {value}", soft_wrap=True)
    console.print()
