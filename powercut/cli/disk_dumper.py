"""The option ``--dump``: the disk of each finding as files in a directory of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from powercut.explorer.dump import dump
from powercut.explorer.verdicts import Exploration, Failure
from sim.errors import HarnessError

dump_option = click.option(
    "--dump",
    "dump_folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the disk of each finding to a directory of its own below DIR.",
)


class DiskDumper:
    """Writes the disks of findings below ``folder``; writes nothing if that is None.

    ``paths`` are the directories of the findings so far; empty for one that was not written.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.paths: list[str] = []

    def dump(self, found: Exploration, failure: Failure, fingerprint: str) -> Iterator[str]:
        """Write the disk of a finding, and yield the line that names its directory."""
        self.paths.append("")
        if self._folder is None:
            return
        folder = self._folder / fingerprint
        try:
            dump(found.checker.image(found, failure), folder)
        except HarnessError as refused:
            yield f"  dump      {refused}"
            return
        self.paths[-1] = str(folder)
        yield f"  dump      {folder}"
