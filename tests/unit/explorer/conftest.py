"""The calls of checks, counted."""

from __future__ import annotations

import pytest

from oracles.history import Known
from powercut.explorer.interposed_check import InterposedCheck
from sim.disk.calls.process import Process


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Known]:
    """The calls of interposed checks in this process."""
    made: list[Known] = []
    call = InterposedCheck.__call__

    def counted(check: InterposedCheck, process: Process, known: Known) -> None:
        made.append(known)
        call(check, process, known)

    monkeypatch.setattr(InterposedCheck, "__call__", counted)
    return made
