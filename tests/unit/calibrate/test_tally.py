"""Rows are judged and counted; contradictions name their mechanism and are reduced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from powercut.calibrate.mechanism import UNEXPLAINED
from powercut.calibrate.program import Call
from powercut.calibrate.reduction import reduce_calls
from powercut.calibrate.row import ObservedOutcome, Program, Row
from powercut.calibrate.tally import Contradiction, Tally
from sim.disk.crash.persistence import EXT4_JOURNAL, EXT4_ORDERED, Coverage, PersistenceModel

TOO_STRONG = replace(EXT4_ORDERED, coverage=Coverage.EVERYTHING)
SETUP: list[Call] = [["write", "f", 0, 10, "a"], ["write", "o", 0, 10, "b"]]
UNTOUCHED = {"f": "a10", "o": "b10"}
RENAMED = {"g": "a10", "o": "b10"}
FOREIGN = {"f": "Z10", "o": "b10"}


def row(
    calls: Sequence[Call],
    *outcomes: dict[str, str],
    returned: int | None = None,
    results: list[str | None] | None = None,
) -> Row:
    """A recorded program on SETUP, with these outcomes after all its calls."""
    after = len(calls) if returned is None else returned
    return Row(
        fs="ext4",
        kernel="6.18.44",
        setup=[list(call) for call in SETUP],
        ops=[list(call) for call in calls],
        results=[None] * len(calls) if results is None else results,
        marks=[0] * len(calls),
        log=[],
        images=10,
        mount_failed=[],
        seen=[ObservedOutcome(k=after, out=out, n=1, how=[0, -1, [], None]) for out in outcomes],
        seed=7,
        seconds=0.1,
    )


def test_allowed_outcomes_are_counted_and_contradict_nothing() -> None:
    tally = Tally()
    assert tally.add(row([["rename", "f", "g"]], UNTOUCHED, RENAMED)) is None
    assert tally.add(row([["sync"]], UNTOUCHED)) is None
    counts = tally.counts["ext4"]
    assert (counts.programs, counts.images, counts.outcomes, counts.forbidden) == (2, 20, 3, 0)
    assert counts.kernels == ["6.18.44"]


def test_outcome_that_the_model_forbids_is_a_contradiction() -> None:
    tally = Tally()
    found = tally.add(row([["rename", "f", "g"], ["sync"]], RENAMED, UNTOUCHED))
    assert found is not None
    assert [seen["out"] for seen in found.forbidden] == [UNTOUCHED]
    assert found.model == "ext4"
    assert (tally.counts["ext4"].forbidden, tally.counts["ext4"].differing) == (1, 0)
    assert tally.contradictions == [found]


def test_mechanism_is_the_field_whose_change_allows_the_outcome() -> None:
    tally = Tally(lambda _: TOO_STRONG)
    found = tally.add(row([["rename", "f", "g"], ["fsync", "o"]], UNTOUCHED))
    assert found is not None
    assert found.cause == (
        "coverage=order: a barrier does not cover earlier changes of other files (J1)"
    )


def test_content_that_was_never_written_has_no_mechanism() -> None:
    found = Tally().add(row([["fsync", "f"]], FOREIGN))
    assert found is not None
    assert found.cause == UNEXPLAINED


def test_other_errno_is_a_contradiction_without_outcomes() -> None:
    tally = Tally()
    found = tally.add(row([["mkdir", "f"]], UNTOUCHED, results=[None]))
    assert found is not None
    assert (found.cause, found.forbidden) == ("mkdir: success on the kernel, EEXIST simulated", ())
    assert tally.counts["ext4"].differing == 1


def test_file_that_cannot_be_read_is_counted_and_not_judged() -> None:
    tally = Tally()
    assert tally.add(row([["sync"]], UNTOUCHED, {"f": "ERREIO", "o": "b10"})) is None
    assert tally.counts["ext4"].unreadable == 1


def test_groups_have_one_cause_and_show_their_smallest_program() -> None:
    tally = Tally(lambda _: TOO_STRONG)
    longer = tally.add(row([["sync"], ["rename", "f", "g"], ["fsync", "o"]], UNTOUCHED))
    shorter = tally.add(row([["rename", "f", "g"], ["fsync", "o"]], UNTOUCHED))
    other = tally.add(row([["fsync", "f"]], FOREIGN))
    assert longer is not None
    assert tally.smallest_of_groups() == [(shorter, 2), (other, 1)]


def record(program: Program) -> Row:
    """A kernel on which the fsync of another file does not make a rename durable."""
    return {**row(program.calls, UNTOUCHED), "setup": [list(call) for call in program.setup]}


def contradiction(recorded: Row) -> Contradiction | None:
    return Tally(lambda _: TOO_STRONG).contradiction(recorded)


LONG: list[Call] = [
    ["fsync", "f"],
    ["rename", "f", "g"],
    ["bg", "flush", "o"],
    ["fsync", "o"],
    ["bg", "tick"],
]


def test_reduction_leaves_the_calls_that_are_needed() -> None:
    found = contradiction(row(LONG, UNTOUCHED))
    assert found is not None
    smallest = reduce_calls(found, record, contradiction, lambda: True)
    assert smallest.row["ops"] == [["rename", "f", "g"], ["fsync", "o"]]
    assert smallest.row["setup"] == SETUP
    assert smallest.cause == found.cause


def test_reduction_stops_when_its_time_is_over() -> None:
    found = contradiction(row(LONG, UNTOUCHED))
    assert found is not None
    answers = iter([True, False])
    smallest = reduce_calls(found, record, contradiction, lambda: next(answers))
    assert smallest.row["ops"] == LONG[:-1]


def test_reduction_keeps_the_cause() -> None:
    """Any shorter program shows another contradiction here."""

    def record_foreign(program: Program) -> Row:
        return row(program.calls, FOREIGN)

    found = contradiction(row(LONG, UNTOUCHED))
    assert found is not None
    assert reduce_calls(found, record_foreign, contradiction, lambda: True) is found


@pytest.mark.parametrize("fs", ["ext4j", "xfs"])
def test_each_file_system_is_judged_by_its_own_model(fs: str) -> None:
    asked: list[str] = []

    def model_of(name: str) -> PersistenceModel:
        asked.append(name)
        return EXT4_JOURNAL

    found = Tally(model_of).add({**row([["rename", "f", "g"]], FOREIGN), "fs": fs})
    assert found is not None
    assert (set(asked), found.model, found.group[0]) == ({fs}, "ext4-journal", fs)
