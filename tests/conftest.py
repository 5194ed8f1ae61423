"""Hypothesis's settings, in force before the first test module is imported.

A test or a machine takes its settings when it is defined, and pytest imports test modules
after every ``pytest_configure``.
"""

from __future__ import annotations

import os
import signal

import pytest

from powercut.fuzz.hypothesis_settings import install_profiles, select_profile
from powercut.fuzz.memory import settle
from powercut.fuzz.profiles import PROFILE_VARIABLE
from sim.errors import HarnessError
from tests.sample import Sample, spread


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this repository's own tests."""
    parser.addoption(
        "--rewrite-cases", action="store_true", help="rewrite the expected output of text cases"
    )
    parser.addoption("--run-stress", action="store_true", help="run the tests marked `stress` too")


# First, so that Hypothesis's own plugin can still put --hypothesis-profile on top.
@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Install the profiles and select the one that the environment names."""
    config.addinivalue_line("markers", "stress: a long test; runs only with --run-stress")
    # A shell starts background jobs with SIGINT ignored; the programs that tests interrupt would
    # inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    install_profiles(config.rootpath)
    try:
        select_profile(os.environ.get(PROFILE_VARIABLE, "default"))
    except HarnessError as unknown:
        raise pytest.UsageError(str(unknown)) from None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the tests marked ``stress`` unless they are asked for."""
    if config.getoption("--run-stress"):
        return
    skip = pytest.mark.skip(reason="a stress test: runs with --run-stress")
    for item in items:
        if item.get_closest_marker("stress") is not None:
            item.add_marker(skip)


@pytest.fixture(scope="session")
def sample(request: pytest.FixtureRequest) -> Sample:
    """Return the function that picks what the gate runs of many cases."""
    if request.config.getoption("--run-stress"):
        return lambda cases, count: tuple(cases)
    return spread


def pytest_collection_finish() -> None:
    """Exclude the modules and tests from garbage collections, which took an eighth of the time."""
    settle()
