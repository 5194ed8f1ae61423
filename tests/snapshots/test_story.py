"""The page that a failure prints."""

from __future__ import annotations

from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from powercut.fuzz.action import Action, Json
from powercut.fuzz.reproducer import Finding, Reproducer
from powercut.fuzz.story import story
from powercut.fuzz.target import MakeTarget
from powercut.fuzz.target_run import TargetRun
from sim.choices import SeededChoices
from tests.unit.fuzz.broken import BootCounter, in_place, raising, undurable


def write(text: str) -> dict[str, Json]:
    return {"name": "write", "arguments": {"text": text}}


def crashed(text: str, *crashes: tuple[int, str, str, int]) -> Action:
    names = ("operation", "phase", "kind", "kept")
    planned: list[Json] = [dict(zip(names, crash, strict=True)) for crash in crashes]
    return Action("crash_and_recover", {"action": write(text), "crashes": planned})


def page(make_target: MakeTarget, *actions: Action, seed: int = 1) -> str:
    """Perform the actions until one fails, and return the story."""
    run, choices = TargetRun(make_target), SeededChoices(seed)

    def perform_steps() -> None:
        for action in actions:
            run.perform(action, choices)

    assert run.complete(perform_steps) is not None
    reproducer = Reproducer(run.log, "", {})
    return story(Finding(run, reproducer, Path(f"failures/{reproducer.fingerprint}.json")))


def test_power_cuts_with_their_lost_operations(snapshot: SnapshotAssertion) -> None:
    fault: dict[str, Json] = {"action": write("Ada"), "plan": "write * #1 ENOSPC"}
    actions = (
        Action.of_plain(write("Ada")),
        Action("with_fault", fault),
        crashed("Grace", (3, "before", "kill", 0), (1, "before", "power-cut", 0)),
        Action.of_plain(write("Edsger " * 20)),
        crashed("Barbara", (0, "after", "power-cut", 0)),
    )
    assert page(undurable, *actions, seed=7) == snapshot


def test_kill_during_a_write(snapshot: SnapshotAssertion) -> None:
    long = "long text " * 900
    actions = (
        Action.of_plain(write("Ada")),
        crashed(long, (1, "during", "kill", 4096)),
    )
    assert page(in_place, *actions) == snapshot


def test_exception_that_is_no_violation(snapshot: SnapshotAssertion) -> None:
    assert page(raising, Action.of_plain(write("Ada"))) == snapshot


def test_failure_of_a_run_without_a_step(snapshot: SnapshotAssertion) -> None:
    assert page(BootCounter) == snapshot


def test_failure_at_the_end_of_a_run(snapshot: SnapshotAssertion) -> None:
    assert page(BootCounter, Action("increment", {})) == snapshot
