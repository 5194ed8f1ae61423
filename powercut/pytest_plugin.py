"""The pytest plugin: a simulated disk and ``explore`` as fixtures of any test.

The plugin is loaded into every pytest run of every environment that has powercut installed.
It imports nothing but pytest until a collected test uses one of its fixtures.
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

FIXTURES = frozenset(("powercut_disk", "powercut_explore"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--powercut-model``."""
    parser.getgroup("powercut", "powercut: crash consistency").addoption(
        "--powercut-model",
        metavar="MODEL",
        help="persistence model of the fixtures of powercut "
        "(default: model of [tool.powercut], else posix)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse an unknown ``--powercut-model`` before any test is collected."""
    if config.getoption("--powercut-model") is not None:
        _model(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a malformed ``[tool.powercut]`` before any test runs, if a test depends on it."""
    if any(not FIXTURES.isdisjoint(getattr(item, "fixturenames", ())) for item in items):
        _model(config)


@pytest.fixture
def powercut_disk(request: pytest.FixtureRequest) -> Process:
    """A process, with the calls of ``os``, on an empty simulated disk; see ``process.disk``."""
    from sim.disk.calls.process import Process
    from sim.disk.disk import Disk

    return Process(Disk(model=_model(request.config)))


@pytest.fixture
def powercut_explore(request: pytest.FixtureRequest) -> Callable[..., Exploration]:
    """``powercut.explore`` under the configured persistence model."""
    from powercut.explorer.explore import explore

    return partial(explore, model=_model(request.config))


def _model(config: pytest.Config) -> PersistenceModel:
    """Return the model of ``--powercut-model``, else that of the rootdir's ``[tool.powercut]``."""
    from powercut.config import FILE, Config, read_config
    from sim.disk.crash.persistence import model_named
    from sim.errors import HarnessError

    chosen = config.getoption("--powercut-model")
    file = config.rootpath / FILE
    try:
        settings = read_config(file) if file.is_file() else Config()
    except HarnessError as mistake:
        raise pytest.UsageError(str(mistake)) from None
    try:
        return model_named(chosen or settings.model or "posix")
    except HarnessError as mistake:
        message = f"--powercut-model: {mistake}"
        raise pytest.UsageError(message) from None
