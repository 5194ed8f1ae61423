"""``powercut doctor``: versions, the project's registry, extras, persistence models."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import click
from rich.console import Console

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
from sim.disk.crash.persistence import MODELS
from sim.errors import HarnessError

MODEL_DESCRIPTIONS: Final[Mapping[str, str]] = {
    "scc": "no file system: all is durable in the order of the program",
    "ext4-journal": "ext4 with data=journal",
    "ext4": "ext4 as it is mounted by default",
    "ext4-ordered": "ext4 with noauto_da_alloc",
    "ext4-writeback": "ext4 with data=writeback",
    "xfs": "xfs with default options",
    "btrfs": "btrfs with default options",
    "posix": "no file system: only what POSIX guarantees",
}
_NAME_WIDTH: Final = 12
_MOST_TAGS: Final = 20


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
    models = ((name, MODEL_DESCRIPTIONS[name]) for name in MODELS)
    _print_pairs(console, "persistence models, the strongest first", models)
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
        yield table, _some_of(list(getattr(config, table)))


def _some_of(tags: list[str]) -> str:
    """Return all tags, or the number of many with the first ones."""
    if len(tags) > _MOST_TAGS:
        return f"{len(tags)} registered, the first are {', '.join(tags[:5])}"
    return ", ".join(tags) or "none registered"


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


def _print_pairs(console: Console, title: str, pairs: Iterable[tuple[str, str]]) -> None:
    rows = list(pairs)
    width = max([_NAME_WIDTH, *(len(name) for name, _ in rows)])
    console.print(title)
    for name, value in rows:
        console.print(f"  {name:{width}}  {value}", soft_wrap=True)
    console.print()
