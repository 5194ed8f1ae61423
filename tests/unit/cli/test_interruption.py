"""Signals that follow one another at once are one interruption; a later one is the second."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import click
import pytest

from powercut.cli.interruption import ONE_INTERRUPTION_S, Interruption
from tests.meta.source_tree import run_python

TERM = signal.SIGTERM


class Clock:
    """A clock that stands still."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def interrupting() -> Iterator[None]:
    """SIGTERM interrupts, as in a command."""
    before = signal.signal(TERM, signal.default_int_handler)
    yield
    signal.signal(TERM, before)


def test_signals_within_a_second_are_one_interruption_also_after_the_work() -> None:
    clock = Clock()
    interruption = Interruption(clock)
    with click.Context(click.Command("explore")):
        with interruption.awaited():
            signal.raise_signal(TERM)
            signal.raise_signal(TERM)
        assert interruption.happened
        clock.now += ONE_INTERRUPTION_S * 0.9
        signal.raise_signal(TERM)
        clock.now = ONE_INTERRUPTION_S
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(TERM)
    assert signal.getsignal(TERM) is signal.default_int_handler


def interrupt_twice(clock: Clock) -> None:
    signal.raise_signal(TERM)
    clock.now += ONE_INTERRUPTION_S
    signal.raise_signal(TERM)


def test_the_second_interruption_ends_the_work() -> None:
    clock = Clock()
    with click.Context(click.Command("explore")):
        with pytest.raises(KeyboardInterrupt), Interruption(clock).awaited():
            interrupt_twice(clock)
        assert signal.getsignal(TERM) is signal.default_int_handler


def test_the_handlers_of_before_return_with_the_end_of_the_command() -> None:
    with click.Context(click.Command("explore")):
        with Interruption().awaited():
            pass
        assert signal.getsignal(TERM) is signal.default_int_handler
        with Interruption().awaited():
            signal.raise_signal(TERM)
        assert signal.getsignal(TERM) is not signal.default_int_handler
    assert signal.getsignal(TERM) is signal.default_int_handler


INTERRUPTED = """
import signal
import powercut.cli.interruption
import powercut.cli.main as line

def command(prog_name):
    for first, second in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGHUP)):
        powercut.cli.interruption.ONE_INTERRUPTION_S = 0
        try:
            signal.raise_signal(first)
        except KeyboardInterrupt:
            powercut.cli.interruption.ONE_INTERRUPTION_S = 1000
            signal.raise_signal(second)
            print("interrupted once")

line.cli = command
line.main()
"""


def test_signals_in_succession_raise_one_exception() -> None:
    ran = run_python("-c", INTERRUPTED)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("interrupted once\n" * 2, "", 0)
