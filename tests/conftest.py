"""Hypothesis's settings, in force before the first test module is imported.

A test or a machine takes its settings when it is defined, and pytest imports test modules
after every ``pytest_configure``.
"""

from __future__ import annotations

import os

import pytest

from powercut.fuzz.profiles import PROFILE_VARIABLE, install_profiles, select_profile
from sim.errors import HarnessError


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag that rewrites the expected output of text cases."""
    parser.addoption(
        "--rewrite-cases", action="store_true", help="rewrite the expected output of text cases"
    )


# First, so that Hypothesis's own plugin can still put --hypothesis-profile on top.
@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Install the profiles and select the one that the environment names."""
    install_profiles(config.rootpath)
    try:
        select_profile(os.environ.get(PROFILE_VARIABLE, "default"))
    except HarnessError as unknown:
        raise pytest.UsageError(str(unknown)) from None
