"""What the operator, the clock and the providers of a runtime do: the arguments of actions."""

from __future__ import annotations

from typing import Final

from crash_tests.targets.script import NAMES, propose_script
from crash_tests.targets.watched_providers import PROVIDER_FAULTS, WatchedProviders
from powercut.fuzz.action import Arguments
from powercut.fuzz.sample_texts import text
from sim.choices import Choices

_PLACES: Final = 7
_THEN: Final = (0, 8, 60, 60)
_PATIENCE: Final = (0,) * 10 + (3, 12)
_WAITS: Final = (1, 90, 700, 4000)


def propose_create(choices: Choices) -> Arguments:
    """Choose a root to be created; now and then the last one is asked for again."""
    return {
        "name": choices.pick("name", NAMES),
        "provider": choices.pick("provider", WatchedProviders.names),
        "instructions": text(choices),
        "again": choices.integer("again", 0, 7) == 7,
        **propose_call(choices),
    }


def propose_send(choices: Choices) -> Arguments:
    """Choose a message, and how far what it causes runs at once."""
    return {
        "agent": choices.integer("agent", 0, _PLACES),
        "again": choices.integer("again", 0, 7) == 7,
        "payload": propose_script(choices),
        "then": choices.pick("then", _THEN),
        **propose_call(choices),
    }


def propose_call(choices: Choices) -> Arguments:
    """Choose after how many steps the operator gives up a call; 0 is never."""
    return {"patience": choices.pick("patience", _PATIENCE)}


def propose_agent(choices: Choices) -> Arguments:
    """Choose one of the living agents."""
    return {"agent": choices.integer("agent", 0, _PLACES), **propose_call(choices)}


def propose_run(choices: Choices) -> Arguments:
    """Choose how many steps what is ready may run; 0 is all of it."""
    return {"steps": choices.pick("steps", (0, 3, 10, 40))}


def propose_advance(choices: Choices) -> Arguments:
    """Choose how long time goes on, or how far the wall clock is set back."""
    return {"seconds": choices.pick("seconds", _WAITS), "back": choices.integer("back", 0, 1)}


def propose_provider_fault(choices: Choices) -> Arguments:
    """Choose a fault of the providers, and how many requests it strikes."""
    return {
        "fault": choices.pick("provider fault", PROVIDER_FAULTS),
        # Six are enough to make a message dead.
        "count": choices.pick("times", (1, 2, 6)),
    }
