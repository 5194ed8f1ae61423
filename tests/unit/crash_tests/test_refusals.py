"""Which refusals have a reason, when no fault is on; all others are false alarms."""

from __future__ import annotations

from dataclasses import dataclass
from errno import EIO
from typing import cast

import pytest

from crash_tests.targets.refusals import is_plausible, is_stopped
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
class Look:
    agent_id: str = "a"
    alive: bool = True
    stopped: str = ""
    name: str = "Zoe"


@dataclass(frozen=True)
class Shown:
    """A runtime that shows this, and in which the name Ada is taken."""

    agents: tuple[Look, ...] = (Look(),)
    user_stopped: str = ""
    unborn: tuple[str, ...] = ()

    def is_taken(self, name: str) -> bool:
        return name == "Ada"

    def view(self) -> Shown:
        return self


WELL = Shown()
STOPPED = (
    Shown(agents=(Look(), Look(stopped="EIO"))),
    Shown(user_stopped="EIO"),
    Shown(unborn=("Bob",)),
)


def judged(refused: Exception, shown: Shown = WELL, *, ill: bool = False) -> bool:
    """``Kim`` had a name when the call began."""
    return is_plausible(refused, cast("Runtime", shown), ["Kim"], provider_failed=ill)


@pytest.mark.parametrize("shown", STOPPED)
def test_what_is_stopped_may_say_so(shown: Shown) -> None:
    assert is_stopped(cast("Runtime", shown))
    assert judged(AgentStopped("Ada", "EIO"), shown)


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
    assert judged(refused)


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
def test_a_refusal_without_a_reason_is_none(refused: Exception) -> None:
    assert not is_stopped(cast("Runtime", WELL))
    assert not judged(refused)


def test_who_lives_is_known() -> None:
    assert not judged(UnknownAgent("a"))
    assert judged(UnknownAgent("a"), Shown(agents=(Look(alive=False),)))


def test_a_provider_that_was_ill_may_fail() -> None:
    assert judged(ProviderError("no answer"), ill=True)
