"""The optional dependencies: which extra of the distribution brings which package."""

from __future__ import annotations

from typing import Final

EXTRAS: Final = {
    "apsw": "sqlite",
    "faker": "fuzz",
    "hypothesis": "fuzz",
    "sortedcontainers": "fuzz",
}
"""Extras by package."""

GIVES: Final = {
    "sqlite": "SQLite on the simulated disk",
    "fuzz": "state machines, better reduction of failures, sample texts",
}
"""The features of each extra."""


def missing_extra(missing: ModuleNotFoundError) -> str:
    """Return "PACKAGE, which is not installed: pip install …", or "" for any other package."""
    package = (missing.name or "").partition(".")[0]
    if package not in EXTRAS:
        return ""
    return f"{package}, which is not installed: pip install 'powercut[{EXTRAS[package]}]'"
