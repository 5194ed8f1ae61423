"""The registry of this repository, as its ``pyproject.toml`` has it."""

from __future__ import annotations

from typing import Final

from powercut.config import read_config
from powercut.registry import Registry
from tests.meta.source_tree import ROOT

REGISTRY: Final = Registry(read_config(ROOT / "pyproject.toml"))
