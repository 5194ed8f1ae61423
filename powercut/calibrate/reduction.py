"""The fewest calls with which a model is still contradicted for the same cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from powercut.calibrate.recorder import SetupFailed
from powercut.calibrate.row import Program, Row
from powercut.calibrate.tally import Contradiction

_ATTEMPTS: Final = 2
"""A kernel does not leave the same each time, so a smaller program is recorded again."""


def reduce_calls(
    found: Contradiction,
    record: Callable[[Program], Row],
    contradiction: Callable[[Row], Contradiction | None],
    may_continue: Callable[[], bool],
) -> Contradiction:
    """Leave out one call at a time while ``contradiction`` has the same cause.

    Every smaller program is recorded anew. Ends early when ``may_continue`` is False.
    """
    smallest = found
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in _without_one_call(_program(smallest.row)):
            if not may_continue():
                return smallest
            again = _again(smaller, found, record, contradiction)
            if again is not None:
                smallest, is_smaller = again, True
                break
    return smallest


def _again(
    program: Program,
    found: Contradiction,
    record: Callable[[Program], Row],
    contradiction: Callable[[Row], Contradiction | None],
) -> Contradiction | None:
    for _ in range(_ATTEMPTS):
        try:
            again = contradiction(record(program))
        except SetupFailed:
            return None
        if again is not None and again.group == found.group:
            return again
    return None


def _program(row: Row) -> Program:
    return Program(tuple(row["setup"]), tuple(row["ops"]))


def _without_one_call(program: Program) -> Iterator[Program]:
    for place in reversed(range(len(program.calls))):
        calls = program.calls[:place] + program.calls[place + 1 :]
        yield replace(program, calls=calls)
    for place in reversed(range(len(program.setup))):
        setup = program.setup[:place] + program.setup[place + 1 :]
        yield replace(program, setup=setup)
