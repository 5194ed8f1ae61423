"""Findings of ``powercut explore``: each is kept in a file, and its disk is dumped if asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from powercut.cli.disk_dumper import DiskDumper
from powercut.explorer.cause import Cause, Diagnosis
from powercut.explorer.kept_failure import KeptFailure, save_failure
from powercut.explorer.limits import Limits
from powercut.fuzz.reproducer import FAILURES
from sim.errors import HarnessError


class FindingKeeper:
    """Keeps the findings of the workload ``tag`` in ``.powercut/failures``.

    ``check`` is the import string of a check that replaces the workload's own, or None.
    ``dump_folder`` is the directory for the disks, or None. ``paths`` are the files of the
    findings so far, and ``dumps`` their disks; empty for one that could not be kept.
    """

    def __init__(
        self, tag: str, check: str | None, limits: Limits, dump_folder: Path | None
    ) -> None:
        self._tag = tag
        self._check = check
        self._limits = limits
        self._dumper = DiskDumper(dump_folder)
        self.paths: list[str] = []
        self.dumps = self._dumper.paths

    def keep(self, diagnosis: Diagnosis, cause: Cause) -> Iterator[str]:
        """Write the files of a finding, and yield the lines that name them."""
        kept = self._kept(diagnosis, cause)
        try:
            self.paths.append(str(save_failure(kept, FAILURES)))
            yield f"  replay    powercut replay {self.paths[-1]}"
        except HarnessError as refused:
            self.paths.append("")
            yield f"  replay    not kept: {refused}"
        found = diagnosis.explorations[cause.model]
        yield from self._dumper.dump(found, cause.failure, kept.fingerprint)
        yield ""

    def _kept(self, diagnosis: Diagnosis, cause: Cause) -> KeptFailure:
        failure = cause.failure
        return KeptFailure(
            self._tag,
            self._check,
            cause.model,
            self._limits.states_per_point,
            self._limits.nested,
            failure.violation.property_name,
            failure.violation.statement,
            failure.crashes,
            failure.entries,
            diagnosis.explorations[cause.model].workload,
            self._limits.timeout,
        )
