"""The disk of a finding of ``powercut try``, with what repeats the check on it by hand."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from powercut.cli.disk_dumper import DiskDumper
from powercut.explorer.kept_failure import fingerprint
from powercut.explorer.verdicts import Exploration, Failure
from powercut.fuse.command_check import ACKS, write_acknowledged
from powercut.fuse.recording import Recording


class FailingDisks:
    """Writes the disks of findings on one recording below ``folder``; none if that is None.

    The file ``<disk>.acks`` beside each has the acknowledged lines. ``paths`` are the directories,
    empty for one that was not written.
    """

    def __init__(self, recording: Recording, folder: Path | None) -> None:
        self._recording = recording
        self._dumper = DiskDumper(folder)
        self.paths = self._dumper.paths

    def dump(self, found: Exploration, failure: Failure) -> Iterator[str]:
        """Write the disk of a finding, and yield the lines that name it and repeat its check."""
        recording = self._recording
        property_name = failure.violation.property_name
        digits = fingerprint(
            shlex.join(recording.command), found.model.name, property_name, failure.crashes,
            failure.entries,
        )  # fmt: skip
        yield from self._dumper.dump(found, failure, digits)
        if not self.paths[-1]:
            return
        disk = Path(self.paths[-1])
        acknowledged = disk.with_suffix(".acks").absolute()
        lines = [text for _, text in recording.acknowledgements[: failure.entries]]
        try:
            write_acknowledged(acknowledged, lines)
        except OSError as refused:
            yield f"  dump      cannot write {acknowledged}: {refused.strerror}"
            return
        if recording.check:
            command = (
                f"{ACKS}={shlex.quote(str(acknowledged))} sh -c {shlex.quote(recording.check)}"
            )
            yield from f"  check     cd {shlex.quote(str(disk))} && {command}".split("\n")
