"""Unmodified checks, which run in a process of their own: what the process reports is used."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from oracles.history import History, Known
from oracles.violation import LostAck
from powercut.explorer.explore import explore
from powercut.explorer.judge import FORK
from powercut.explorer.lazy import lazy_explorer
from powercut.explorer.limits import Engine, Limits
from sim.disk.crash.undecided.progress import UNLIMITED


def _saved(ack: History) -> None:
    with open("/disk/note", "wb") as file:
        file.write(b"x")
    os.sync()
    ack("note")


def _swallows(_known: Known) -> None:
    with suppress(BaseException):
        assert Path("/disk/note").stat().st_blocks < 100


def test_an_unmodified_check_that_needs_whole_images_and_swallows_that_gets_them() -> None:
    found = explore(_saved, _swallows, "btrfs", Limits(engine=Engine.LAZY))
    assert not found.is_lazy


def _finishes(known: Known) -> None:
    """Write what the note announces; nothing is asked behind the last two calls."""
    names = os.listdir("/disk")
    if "note" in names:
        descriptor = os.open("/disk/done", os.O_CREAT | os.O_WRONLY)
        os.write(descriptor, b"x")
        os.unlink("/disk/note")
        os.close(descriptor)
    elif known.acknowledged and "done" not in names:
        raise LostAck("note")


def test_an_unmodified_check_is_crashed_behind_its_last_question() -> None:
    def of(engine: Engine) -> object:
        found = explore(_saved, _finishes, "posix", Limits(nested=1, engine=engine))
        return found.safe, {type(each.violation) for each in found.failures}

    lazy = explore(_saved, _finishes, "posix", Limits(nested=1, engine=Engine.LAZY))
    assert lazy.is_lazy
    assert of(Engine.LAZY) == of(Engine.BRUTE) == (False, {LostAck})


@pytest.mark.parametrize("is_enough", [True, False])
def test_an_execution_in_a_process_of_its_own_counts_as_several(
    monkeypatch: pytest.MonkeyPatch, *, is_enough: bool
) -> None:
    monkeypatch.setattr(lazy_explorer, "ON_REQUEST", 1)
    most = 4 * FORK if is_enough else FORK - 1
    monkeypatch.setattr(lazy_explorer, "MOST_EXECUTIONS", {UNLIMITED: 1, 0: most})
    found = explore(_saved, lambda _known: None, "scc", Limits(engine=Engine.LAZY))
    assert found.is_lazy is is_enough
