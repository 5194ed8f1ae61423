"""The folders of the tests that mutants name."""

from __future__ import annotations

from typing import Final

SYSTEM_TESTS: Final = "tests/unit/system"
RECORDING_TESTS: Final = "tests/unit/recording"
DURABLE_TESTS: Final = "tests/unit/durable"
AGENT_TESTS: Final = f"{SYSTEM_TESTS}/agents"
