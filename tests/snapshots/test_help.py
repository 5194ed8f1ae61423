"""The help pages, as they are printed."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.unit.cli.command_line import powercut


@pytest.mark.parametrize(
    "command",
    [
        "",
        "run",
        "explore",
        "mutants",
        "replay",
        "try",
        "confirm",
        "record",
        "show",
        "calibrate",
        "doctor",
    ],
)
def test_help_reads_as_it_did(command: str, snapshot: SnapshotAssertion) -> None:
    assert powercut(*command.split(), "--help").stdout == snapshot
