"""Images that an interposed check cannot distinguish are checked once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from oracles.history import History, Known
from powercut.explorer import image_results
from powercut.explorer.explore import explore, judged
from powercut.explorer.journals import CrashImage, Journals
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.recorded_workload import record
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS

MODEL = "ext4-writeback"
BRUTE = Limits(engine=Engine.BRUTE)


def _logged(ack: Callable[[object], None]) -> None:
    """Write a file that the check reads, and one that it does not."""
    for name in ("other", "log"):
        Path(name).write_bytes(b"x" * 100)
    os.sync()
    ack("log")


def _is_kept(known: Known) -> None:
    assert not known.acknowledged or os.path.getsize("log") == 100


def _is_never_there(_known: Known) -> None:
    assert not os.path.exists("log")


@pytest.mark.parametrize(("check", "most"), [(_is_kept, 4), (_is_never_there, 6)])
def test_a_check_is_called_once_for_images_that_it_reads_equally(
    calls: list[Known], check: Callable[[Known], None], most: int
) -> None:
    found = explore(_logged, check, MODEL)
    executed = len(calls)
    built = explore(_logged, check, MODEL, BRUTE)
    assert len(calls) - executed == built.states > 20
    assert executed <= most
    assert (found.states, found.failed, found.how) == (built.states, built.failed, built.how)
    assert [each.crashes for each in found.failures] == [each.crashes for each in built.failures]


def test_one_process_builds_several_images_before_it_checks_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def creates(process: Process, ack: History) -> None:
        for name in "abc":
            process.close(process.open(f"/{name}", os.O_CREAT | os.O_WRONLY))
        ack("abc")

    order: list[str] = []
    crashes = Journals.crashes

    def built(*arguments: Any) -> Iterator[CrashImage]:
        for crashed in crashes(*arguments):
            order.append("built")
            yield crashed

    def check(_process: Process, _known: Known) -> None:
        order.append("checked")

    monkeypatch.setattr(Journals, "crashes", built)
    found = explore(creates, check, MODEL, BRUTE)
    assert order[:4] == ["built"] * 4
    assert order.count("checked") == found.states


def test_several_processes_find_the_same() -> None:
    recorded = record(_logged, MODELS[MODEL], Image.empty())
    alone, together = (
        judged(recorded, _is_never_there, [MODELS[MODEL]], processes=processes)[MODEL]
        for processes in (1, 2)
    )
    crashes, others = ([each.crashes for each in found.failures] for found in (alone, together))
    assert crashes == others
    assert (alone.states, alone.failed) == (together.states, together.failed)


def _seeks_data(_known: Known) -> None:
    with suppress(OSError), open("log", "rb") as file:
        os.lseek(file.fileno(), 0, os.SEEK_DATA)


def _writes_its_process_id(known: Known) -> None:
    Path(f"mark{os.getpid()}").touch()
    assert os.path.exists("log") or not known.acknowledged


@pytest.mark.parametrize("check", [_seeks_data, _writes_its_process_id])
def test_all_images_are_checked_where_equal_answers_do_not_decide(
    calls: list[Known], check: Callable[[Known], None]
) -> None:
    found = explore(_logged, check, MODEL)
    assert (found.safe, found.how) == (True, "exhaustive")
    assert len(calls) > found.states / 2


def test_all_images_are_checked_where_they_are_asked_too_much(
    calls: list[Known], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_results, "MOST_QUESTIONS", 0)
    found = explore(_logged, _is_kept, MODEL)
    assert len(calls) >= found.states > 20


def test_a_failure_that_depends_on_more_than_answers_is_found_by_checks_of_images(
    calls: list[Known],
) -> None:
    """The number that the disk gives to a new file is not a question."""

    def check(process: Process, known: Known) -> None:
        assert process.disk.next_inode < 100, known

    found = explore(_logged, check, MODEL)
    assert found.safe
    assert len(calls) >= found.states > 20
