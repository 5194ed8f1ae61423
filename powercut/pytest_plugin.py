"""The pytest plugin that comes with the package: a disk and an explorer for any test.

It imports nothing of the harness, nor Hypothesis, until a test asks for a fixture, because
it loads into every pytest run of every project that has powercut installed. Parallelism,
time limits and seeds (``-n``, ``--timeout``, ``--hypothesis-seed``) stay with their owners.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from powercut.explore import Exploration
    from sim.disk.handle import Handle
    from sim.disk.persistence import PersistenceModel

DEFAULT_MODEL = "posix"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our two options, in a group of their own."""
    group = parser.getgroup("powercut", "powercut: crash consistency")
    group.addoption(
        "--run-stress",
        action="store_true",
        help="run the tests marked `stress` too: the long machines of the night",
    )
    group.addoption(
        "--powercut-disk",
        metavar="MODEL",
        help=f"persistence model of our fixtures (default: {DEFAULT_MODEL})",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; refuse an unknown persistence model before any test runs."""
    config.addinivalue_line("markers", "stress: a long machine; runs only with --run-stress")
    if config.getoption("--powercut-disk") is not None:
        _model(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what is marked ``stress``, saying how to run it."""
    if config.getoption("--run-stress"):
        return
    skip = pytest.mark.skip(reason="a stress test: runs with --run-stress")
    for item in items:
        if item.get_closest_marker("stress") is not None:
            item.add_marker(skip)


@pytest.fixture
def powercut_disk(request: pytest.FixtureRequest) -> Handle:
    """Give an ``os``-like handle of a fresh simulated disk; the disk is ``handle.disk``."""
    from sim.disk.disk import Disk
    from sim.disk.handle import Handle

    return Handle(Disk(model=_model(request.config)))


@pytest.fixture
def powercut_explore(request: pytest.FixtureRequest) -> Callable[..., Exploration]:
    """Give ``powercut.explore.explore``, under the persistence model of ``--powercut-disk``."""
    from powercut.explore import explore

    return partial(explore, disk=_model(request.config))


def _model(config: pytest.Config) -> PersistenceModel:
    from sim.disk.persistence import model_named
    from sim.errors import HarnessError

    try:
        return model_named(config.getoption("--powercut-disk") or DEFAULT_MODEL)
    except HarnessError as unknown:
        message = f"--powercut-disk: {unknown}"
        raise pytest.UsageError(message) from None
