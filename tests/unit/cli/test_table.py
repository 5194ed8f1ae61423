"""The table of verdicts is printed whole where the output is no terminal, as is the last line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oracles.history import History, Known
from oracles.violation import UnreadableAfterCrash
from powercut.cli.output import console_beside
from powercut.explorer.cause import Cause, Diagnosis, NoGap
from powercut.explorer.explore import explore
from powercut.report.exploration import exploration_table, verdict_line
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


def test_the_last_line_says_on_which_models_states_were_left_out() -> None:
    found = explore(_directory, lambda _process, _known: None, "posix")
    lazy, sampled = replace(found, decided=1), replace(found, exhaustive=False)
    verdicts = {
        "scc": found,
        "ext4-journal": sampled,
        "ext4": replace(lazy, most_torn=None),
        "ext4-ordered": replace(lazy, most_torn=1),
        "ext4-writeback": replace(lazy, most_torn=0),
        "xfs": replace(sampled, stopped=True),
        "btrfs": replace(sampled, failed=1),
        "posix": sampled,
    }
    assert verdict_line(Diagnosis(verdicts, (), {})) == (
        "safe on scc and ext4; safe with at most 1 torn sector on ext4-ordered; safe without torn "
        "sectors on ext4-writeback; no failure in a sample on ext4-journal and posix; stopped "
        "before a failure on xfs; unsafe on btrfs"
    )
