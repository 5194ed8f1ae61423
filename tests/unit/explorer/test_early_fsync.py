"""The crash point after an acknowledgement is judged, also where no work is left for it."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from oracles.history import Known
from powercut.explorer import journals
from powercut.explorer.explore import explore
from powercut.explorer.limits import Engine, Limits
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS

_PAGES = 24
_LIMITS = Limits(engine=Engine.BRUTE, states_per_point=64, samples=8)


def _early(process: Process, ack: Callable[[object], None]) -> None:
    """Acknowledge many writes before their fsync, then make many more."""
    log = process.open("/log", os.O_CREAT | os.O_RDWR)
    value = process.open("/value", os.O_CREAT | os.O_RDWR)
    for descriptor in (log, value):
        process.fsync(descriptor)
    process.sync()
    process.write(value, b"value")
    process.fsync(value)
    for content in (b"x", b"y"):
        for page in range(_PAGES):
            process.pwrite(log, content * 100, 512 * page)
        if content == b"x":
            ack("all pages")
        process.fsync(log)


def _has_all_pages(process: Process, known: Known) -> None:
    if known.acknowledged:
        with process.open_file("/log", "rb") as file:
            assert len(file.read().replace(b"\0", b"")) == 100 * _PAGES


def test_an_acknowledgement_that_comes_before_the_fsync_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journals, "MOST_STEPS", 1 << 10)
    found = explore(_early, _has_all_pages, MODELS["ext4"], _LIMITS)
    assert not found.exhaustive
    assert {failure.entries for failure in found.failures} == {1}
