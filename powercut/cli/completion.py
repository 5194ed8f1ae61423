"""Shell completion of values: tags of the registry, persistence models, profiles.

Completion imports nothing of the project: the tags are in its ``pyproject.toml``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click

from powercut.config import find_config
from sim.errors import HarnessError

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def complete_from(names: Iterable[str]) -> Complete:
    """Return a completion among ``names``."""
    return lambda _ctx, _parameter, typed: [name for name in names if name.startswith(typed)]


def complete_tags(*tables: str) -> Complete:
    """Return a completion among the tags of tables of ``[tool.powercut]``."""

    def complete(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
        try:
            config = find_config(Path.cwd())
        except HarnessError:
            return []
        tags = dict.fromkeys(tag for table in tables for tag in getattr(config, table))
        return complete_from(tags)(ctx, parameter, typed)

    return complete
