"""The target of the whole runtime, with its executions recorded.

The oracle is that of the runtime: recording must change nothing that it sees.
"""

from __future__ import annotations

from crash_tests.targets.runtime import RuntimeTarget
from system.agents.turn_recorder import RecordingOptions


def runtime_recorded() -> RuntimeTarget:
    """Return the runtime with the framing ``framed``, which records its executions."""
    return RuntimeTarget("runtime-recorded", recording=RecordingOptions())
