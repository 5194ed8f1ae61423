"""A recording on a real directory, for every test of the write-ahead log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.recording.recording_bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A recording that is not opened yet, in a new directory."""
    return Bench(tmp_path)
