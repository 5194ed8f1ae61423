"""The target of the whole runtime, with its executions recorded.

The oracle of the runtime must see no difference; after each recovery the records are compared
with the logs as well.
"""

from __future__ import annotations

from crash_tests.targets.runtime import RuntimeTarget
from system.agents.turn_recorder import RecordingOptions


def runtime_recorded() -> RuntimeTarget:
    """Return the runtime with the framing ``framed``, which records its executions."""
    return RuntimeTarget("runtime-recorded", recording=RecordingOptions())
