"""The table of verdicts is printed whole where the output is not a terminal, however wide it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oracles.history import History, Known
from oracles.violation import UnreadableAfterCrash
from powercut.cli.output import console_beside
from powercut.explorer.cause import Cause, Diagnosis, NoGap
from powercut.explorer.explore import explore
from powercut.report.exploration import exploration_table
from sim.disk.calls.process import Process


def _directory(process: Process, ack: History) -> None:
    process.mkdir("/d")
    ack("d")


def _refuses(_process: Process, _known: Known) -> None:
    raise UnreadableAfterCrash("refused")


def test_no_cell_of_a_wide_table_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    found = explore(_directory, _refuses, "posix")
    lazy = replace(found, states=123_456, failed=123_456, decided=1 << 4096, most_torn=1)
    name = "ext4-writeback"
    cause = Cause(NoGap.NOT_SEARCHED, {name: found.failures}, {})
    console_beside(None).print(exploration_table(Diagnosis({name: lazy}, (cause,), {})))
    row = next(line for line in capsys.readouterr().out.splitlines() if name in line)
    assert row.split("  ")[-1].strip() == "UnreadableAfterCrash"
    assert "exhaustive, at most 1 torn sector  " in row
