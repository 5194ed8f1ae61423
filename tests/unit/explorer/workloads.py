"""Workloads of the engine's own tests; two of them use the program of the saved file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from oracles.history import History, Known
from oracles.violation import LostAck
from powercut.explorer.judge import Check
from sim.disk.calls.process import Process
from tests.unit.fuzz.broken import save_without_file_barrier
from tests.unit.fuzz.saved_file import Save, save

DIRECTORIES: Final = 7


@dataclass(frozen=True, slots=True)
class Workload:
    """A function that is crashed at every point; one that is not ``sound`` must fail.

    Without a ``check``, files must be old or new.
    """

    about: str
    run: Callable[[Process, History], None]
    check: Check | None = None
    sound: bool = True

    def __call__(self, process: Process, ack: History) -> None:
        self.run(process, ack)


def twice_by(save: Save) -> Callable[[Process, History], None]:
    def save_both(process: Process, ack: History) -> None:
        for content in (b"old value", b"the new value"):
            ack.attempt({"/state": content})
            save(process, "/state", content)
            ack({"/state": content})

    return save_both


def make_directories(process: Process, ack: History) -> None:
    """Leave many states: a power cut may lose any of the directories."""
    for number in range(DIRECTORIES):
        process.mkdir(f"/{number}")
    process.sync()
    ack("made")


def all_are_made(process: Process, known: Known) -> None:
    made = process.listdir("/")
    if known.acknowledged and len(made) < DIRECTORIES:
        raise LostAck("a directory is lost", made=made)


save_twice = Workload("save a file and replace it", twice_by(save))
without_fsync = Workload(
    "the same, but the file is not synced", twice_by(save_without_file_barrier), sound=False
)
directories = Workload("directories and one barrier", make_directories, all_are_made)


def all_are_there(process: Process, _known: Known) -> None:
    """Demand all directories, acknowledged or not."""
    assert len(process.listdir("/")) == DIRECTORIES, "a directory is lost"


def never_fails(_process: Process, _known: Known) -> None:
    """Pass on any disk."""


def always_fails(_process: Process, _known: Known) -> None:
    """Fail on any disk."""
    raise AssertionError("always")
