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

    from powercut.explorer.verdicts import Exploration
    from sim.disk.calls.process import Process
    from sim.disk.crash.persistence import PersistenceModel

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
        "--powercut-model",
        metavar="MODEL",
        help=f"persistence model of our fixtures (default: {DEFAULT_MODEL})",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; refuse an unknown persistence model before any test runs."""
    config.addinivalue_line("markers", "stress: a long machine; runs only with --run-stress")
    if config.getoption("--powercut-model") is not None:
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
def powercut_disk(request: pytest.FixtureRequest) -> Process:
    """Give an ``os``-like process of a fresh simulated disk; the disk is ``process.disk``."""
    from sim.disk.calls.process import Process
    from sim.disk.disk import Disk

    return Process(Disk(model=_model(request.config)))


@pytest.fixture
def powercut_explore(request: pytest.FixtureRequest) -> Callable[..., Exploration]:
    """Give ``powercut.explore``, under the persistence model of ``--powercut-model``."""
    from powercut.explorer.explore import explore

    return partial(explore, model=_model(request.config))


def _model(config: pytest.Config) -> PersistenceModel:
    from sim.disk.crash.persistence import model_named
    from sim.errors import HarnessError

    try:
        return model_named(config.getoption("--powercut-model") or DEFAULT_MODEL)
    except HarnessError as unknown:
        message = f"--powercut-model: {unknown}"
        raise pytest.UsageError(message) from None
