"""Every planted hole is found within the budget of the gate, and told in a short story."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings
from rich.console import Console

from crash_tests.mutants.event_log import (
    framed_log,
    pending_log,
    recovered_log,
    without_barriers,
)
from crash_tests.mutants.registry import MUTANTS
from crash_tests.mutants.runtime_parts import RuntimeParts
from crash_tests.mutants.search import Row, find_mutant, row_of, rows_table
from crash_tests.targets.event_log import EventLogTarget
from crash_tests.targets.runtime import RuntimeTarget
from powercut.fuzz.drivers.hypothesis_driver import fuzz
from powercut.fuzz.target import MakeTarget
from system.ports import Host
from system.storage.event_log import EventLog
from system.storage.log_file import LogFile

MOST_STEPS = 8
GATE = settings.get_profile("ci")


@pytest.fixture(scope="module")
def rows() -> Iterator[list[Row]]:
    """Collect the searches, and print them as a table at the end (``pytest -s`` shows it)."""
    done: list[Row] = []
    yield done
    Console(width=120).print(rows_table(done))


@pytest.mark.parametrize("identity", MUTANTS)
def test_the_gate_finds_the_planted_hole_and_shrinks_it(
    identity: str, rows: list[Row], tmp_path: Path
) -> None:
    search = find_mutant(identity, time.perf_counter, GATE, tmp_path)
    rows.append(row_of(search))
    assert search.finding is not None, f"{search.mutant.title}: the harness is blind to it"
    assert search.steps <= MOST_STEPS, search.finding.story


def test_without_a_hole_the_runtime_that_mutants_vary_passes(tmp_path: Path) -> None:
    make_target = partial(RuntimeTarget, "runtime", recover=RuntimeParts().recover)
    findings = fuzz(make_target, budget=GATE, folder=tmp_path).findings
    assert not findings, findings[0].story


def _framed(host: Host, path: str, session_id: str) -> EventLog:
    recovered = recovered_log(host, path, session_id)
    return framed_log(host, session_id, recovered, LogFile(host.files, path, recovered.size_bytes))


def _pending(host: Host, path: str, session_id: str) -> EventLog:
    recovered = recovered_log(host, path, session_id)
    return pending_log(host, path, session_id, recovered, without_barriers(host.files))


@pytest.mark.parametrize(
    "make_target",
    [
        pytest.param(partial(EventLogTarget, "event-log-framed", _framed), id="framed"),
        pytest.param(partial(EventLogTarget, "event-log-pending", _pending), id="pending"),
    ],
)
def test_without_its_hole_the_log_that_a_mutant_varies_passes(
    make_target: MakeTarget, tmp_path: Path
) -> None:
    findings = fuzz(make_target, budget=GATE, folder=tmp_path).findings
    assert not findings, findings[0].story
