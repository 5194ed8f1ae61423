"""For two changes in the wrong order, the report names the calls between which a kill does harm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from oracles.history import History, Known
from powercut.explorer.cause import Diagnosis
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.explore import judged
from powercut.explorer.judge import Check
from powercut.explorer.recorded_workload import record
from powercut.report.order import remedy_of_order
from powercut.report.repair import repair_lines
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import SCC


def _is_recorded(process: Process, _known: Known) -> None:
    names = process.listdir("/")
    assert "sent" not in names or "record" in names


def _is_unsent(process: Process, _known: Known) -> None:
    assert "sent" not in process.listdir("/")


def _diagnosed(check: Check, names: Sequence[str]) -> Diagnosis:
    """Diagnose a program that creates these files, one after the other."""

    def workload(process: Process, ack: History) -> None:
        ack("begun")
        for name in names:
            process.mkdir(f"/{name}")
        ack("done")

    found = record(workload, SCC, Image.empty())
    entries = [entry._replace(place=None) for entry in found.history.entries]
    recorded = replace(found, history=History(lambda: 0, entries=entries), places={})
    return diagnose(judged(recorded, check, [SCC]))


@pytest.mark.parametrize(
    ("names", "last"), [(("sent", "record", "end"), 2), (("sent", "clock", "record", "end"), 3)]
)
def test_the_calls_with_which_harm_begins_and_ends_are_named(
    names: Sequence[str], last: int
) -> None:
    lines = [*repair_lines(_diagnosed(_is_recorded, names))]
    assert lines[-1].removeprefix("repair").strip() == (
        f"a kill between mkdir of /sent (operation 1) and mkdir of /record (operation {last}) does "
        "harm: make the second change first, or let the next start complete or undo the first"
    )


def test_harm_that_goes_on_has_no_remedy() -> None:
    assert not any("kill" in line for line in repair_lines(_diagnosed(_is_unsent, ("sent", "end"))))


def test_a_sample_does_not_know_where_harm_ends() -> None:
    found = _diagnosed(_is_recorded, ("sent", "record"))
    exploration, failure = found.explorations["scc"], found.causes[0].failure
    assert remedy_of_order(exploration, failure)
    for other in (replace(exploration, exhaustive=False), replace(exploration, decided=1)):
        assert not remedy_of_order(other, failure)
