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


def complete_tags(table: str) -> Complete:
    """Return a completion among the tags of one table of ``[tool.powercut]``."""

    def complete(ctx: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
        try:
            tags: Iterable[str] = getattr(find_config(Path.cwd()), table)
        except HarnessError:
            return []
        return complete_from(tags)(ctx, parameter, typed)

    return complete
