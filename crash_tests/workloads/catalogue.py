"""The built-in scenarios by their tags: those that must hold, and demonstrations that cannot."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from crash_tests.workloads import atomic_write, event_log, runtime, session_store, sqlite
from crash_tests.workloads.workload import Scenario

SCENARIOS: Final[Mapping[str, Scenario]] = MappingProxyType(
    {
        scenario.tag: scenario
        for room in (atomic_write, event_log, session_store, runtime, sqlite)
        for scenario in room.SCENARIOS
    }
)
