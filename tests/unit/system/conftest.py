"""A host on a real directory, and a root on a simulated one, for every test of the runtime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from system.host import real_host
from tests.unit.system.agents.room import LIVING, Room
from tests.unit.system.faulty_files import FaultyHost


@pytest.fixture
def here(tmp_path: Path) -> FaultyHost:
    """A host with its data in a new directory, whose calls can be made to fail."""
    host = real_host(str(tmp_path))
    return FaultyHost.of(str(tmp_path), host.files, host.database, host.workers)


@pytest.fixture(autouse=True)
def every_lifetime_ends() -> Iterator[None]:
    """No coroutine of one test is left over for the next one."""
    yield
    while LIVING:
        LIVING.pop().world.kill()


@pytest.fixture
def room() -> Room:
    """A new root, not opened yet, with one provider called ``scripted``."""
    return Room()
