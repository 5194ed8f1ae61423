"""A host on a real directory, for every test of the runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from system.host import real_host
from tests.unit.system.faulty_files import FaultyHost


@pytest.fixture
def here(tmp_path: Path) -> FaultyHost:
    """A host with its data in a new directory, whose calls can be made to fail."""
    host = real_host(str(tmp_path))
    return FaultyHost.of(str(tmp_path), host.files, host.database, host.workers)
