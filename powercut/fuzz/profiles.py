"""Profiles: four named budgets, for campaigns and for Hypothesis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

PROFILE_VARIABLE: Final = "HYPOTHESIS_PROFILE"


@dataclass(frozen=True, slots=True)
class Profile:
    """A budget of ``examples`` runs of at most ``steps`` steps each.

    Under Hypothesis, a ``derandomized`` profile draws the same inputs every time, without a
    database.
    """

    name: str
    examples: int
    steps: int
    derandomized: bool = False


PROFILES: Final[Mapping[str, Profile]] = MappingProxyType(
    {
        profile.name: profile
        for profile in (
            Profile("default", examples=200, steps=30),
            Profile("ci", examples=50, steps=30, derandomized=True),
            Profile("nightly", examples=5_000, steps=50),
            Profile("torture", examples=50_000, steps=200),
        )
    }
)
