"""Refusals without a fault are false alarms, unless the state of the runtime explains them."""

from __future__ import annotations

from dataclasses import dataclass
from errno import EIO
from typing import cast

import pytest

from crash_tests.targets.false_alarms import is_plausible, is_stopped
from system.errors import (
    AgentStopped,
    BadName,
    Closed,
    HasChildren,
    NameTaken,
    StorageFull,
    UnknownAgent,
    UnknownMessage,
)
from system.ports import ProviderError
from system.runtime import Runtime


@dataclass(frozen=True)
class ShownAgent:
    agent_id: str = "a"
    alive: bool = True
    stopped: str = ""
    name: str = "Zoe"


@dataclass(frozen=True)
class Shown:
    """A runtime with this view, in which the name Ada is taken."""

    agents: tuple[ShownAgent, ...] = (ShownAgent(),)
    user_stopped: str = ""
    state_stopped: str = ""
    in_doubt: tuple[str, ...] = ()

    def is_taken(self, name: str) -> bool:
        return name == "Ada"

    def view(self) -> Shown:
        return self


RUNNING = Shown()
STOPPED = (
    Shown(agents=(ShownAgent(), ShownAgent(stopped="EIO"))),
    Shown(user_stopped="EIO"),
    Shown(state_stopped="EIO"),
    Shown(in_doubt=("Bob",)),
)


def plausible(refused: Exception, shown: Shown = RUNNING, *, provider_failed: bool = False) -> bool:
    """Return the verdict for a call at whose beginning the name Kim was taken."""
    return is_plausible(refused, cast("Runtime", shown), ["Kim"], provider_failed=provider_failed)


@pytest.mark.parametrize("shown", STOPPED)
def test_a_stopped_part_may_refuse(shown: Shown) -> None:
    assert is_stopped(cast("Runtime", shown))
    assert plausible(AgentStopped("Ada", "EIO"), shown)


@pytest.mark.parametrize(
    "refused",
    [
        UnknownAgent("b"),
        *(NameTaken(name) for name in ("Ada", "Kim", "Zoe")),
        *(HasChildren("Eve", f"Bob, {name}") for name in ("Ada", "Kim", "Zoe")),
    ],
    ids=lambda refused: f"{type(refused).__name__}: {str(refused)[:40]}",
)
def test_a_refusal_with_a_reason_is_plausible(refused: Exception) -> None:
    assert plausible(refused)


@pytest.mark.parametrize(
    "refused",
    [
        AgentStopped("Ada", "EIO"),
        NameTaken("Bob"),
        HasChildren("Ada", "Bob, Eve"),
        ProviderError("no answer"),
        UnknownMessage("m1"),
        BadName("", 200),
        Closed("closed"),
        StorageFull("/agents", "no space left"),
        OSError(EIO, "input/output error"),
    ],
    ids=lambda refused: type(refused).__name__,
)
def test_a_refusal_without_a_reason_is_not_plausible(refused: Exception) -> None:
    assert not is_stopped(cast("Runtime", RUNNING))
    assert not plausible(refused)


def test_a_living_agent_is_not_unknown() -> None:
    assert not plausible(UnknownAgent("a"))
    assert plausible(UnknownAgent("a"), Shown(agents=(ShownAgent(alive=False),)))


def test_a_provider_error_is_plausible_after_a_fault() -> None:
    assert plausible(ProviderError("no answer"), provider_failed=True)
