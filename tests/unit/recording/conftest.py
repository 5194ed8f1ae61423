"""A recording on a real directory, and a root with records."""

from __future__ import annotations

from pathlib import Path

import pytest

from system.host import real_host
from system.recording.stores.file_store import FileExecutionStore
from tests.unit.recording.command_root import team
from tests.unit.recording.executions import run
from tests.unit.recording.recording_bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A recording that is not opened yet, in a new directory."""
    return Bench(tmp_path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    run(team(tmp_path))
    return tmp_path


@pytest.fixture
def ids(root: Path) -> list[str]:
    return list(FileExecutionStore(real_host(str(root))).list_all())
