"""A module of a test's own, in the current directory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The name of a module that can be written to the current directory, and imported.

    It is different in each test, because an imported module stays imported.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    return "".join(c if c.isalnum() else "_" for c in f"module_{request.node.name}")
