"""Proposals of the runtime target: the arguments of its actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crash_tests.targets.script import NAMES, TOOLS, propose_script
from crash_tests.targets.watched_providers import PROVIDER_FAULTS, PROVIDER_NAMES
from powercut.fuzz.action import Arguments
from powercut.fuzz.sample_texts import text
from sim.choices import Choices

_PLACES: Final = 7
_THEN: Final = (0, 8, 60, 60)
_PATIENCE: Final = (0,) * 10 + (3, 12)
_WAITS: Final = (1, 90, 700, 4000)


def propose_create(choices: Choices) -> Arguments:
    """Choose a root to create, or sometimes a repetition of the last request."""
    return {
        "name": choices.pick("name", NAMES),
        "provider": choices.pick("provider", PROVIDER_NAMES),
        "instructions": text(choices),
        "again": choices.integer("again", 0, 7) == 7,
        **propose_call(choices),
    }


def propose_send(choices: Choices, tools: Sequence[str] = TOOLS) -> Arguments:
    """Choose a message, and the number of steps that the loop runs after it."""
    return {
        "agent": choices.integer("agent", 0, _PLACES),
        "again": choices.integer("again", 0, 7) == 7,
        "payload": propose_script(choices, tools=tools),
        "then": choices.pick("then", _THEN),
        **propose_call(choices),
    }


def propose_call(choices: Choices) -> Arguments:
    """Choose the number of steps after which the operator abandons a call; 0 is never."""
    return {"patience": choices.pick("patience", _PATIENCE)}


def propose_agent(choices: Choices) -> Arguments:
    """Choose one of the living agents."""
    return {"agent": choices.integer("agent", 0, _PLACES), **propose_call(choices)}


def propose_run(choices: Choices) -> Arguments:
    """Choose the number of steps that the loop runs; 0 runs it until it is idle."""
    return {"steps": choices.pick("steps", (0, 3, 10, 40))}


def propose_advance(choices: Choices) -> Arguments:
    """Choose the time that passes, or by which the wall clock is set back, in seconds."""
    return {"seconds": choices.pick("seconds", _WAITS), "back": choices.integer("back", 0, 1)}


def propose_provider_fault(choices: Choices) -> Arguments:
    """Choose a fault of the providers, and the number of requests that meet it."""
    return {
        "fault": choices.pick("provider fault", PROVIDER_FAULTS),
        # Six make a message a dead letter.
        "count": choices.pick("times", (1, 2, 6)),
    }
