"""The outcome of an activity is compared with the effects that have really happened."""

from __future__ import annotations

from typing import Any

import pytest

from oracles.durable.rows import Row, Rows
from oracles.durable.shadow_effects import ShadowEffects
from oracles.durable.shadow_state import State
from oracles.durable.violations import (
    MissingEffect,
    RepeatedEffect,
    UncountedAttempt,
    WrongOutcome,
)
from oracles.violation import FalseAlarm, Resurrected, Starved
from tests.unit.oracles.durable.rows_of import rows_of

KEY = "activity:x:1"


def ledger(status: str, attempts: int = 1, decided_by: str | None = None) -> Rows:
    row: Row = {"status": status, "attempts": attempts, "decided_by": decided_by}
    return rows_of(State(), {KEY: row})


def check(
    shadow: ShadowEffects, rows: Rows, effects: int = 0, requests: int = 0, now: float = 0.0
) -> None:
    shadow.check(rows, {KEY: effects}, {KEY: requests}, now)


@pytest.mark.parametrize(
    ("violation", "rows", "effects", "requests"),
    [
        (RepeatedEffect, ledger("DONE"), 2, 1),
        (UncountedAttempt, ledger("INTENT", 0), 0, 1),
        (MissingEffect, ledger("DONE"), 0, 1),
        (WrongOutcome, ledger("FAILED"), 1, 1),
        (WrongOutcome, ledger("FAILED"), 0, 1),
        (FalseAlarm, ledger("UNCERTAIN"), 1, 1),
    ],
)
def test_a_wrong_outcome_is_reported(
    violation: type[Any], rows: Rows, effects: int, requests: int
) -> None:
    with pytest.raises(violation):
        check(ShadowEffects(), rows, effects, requests)


def test_what_may_have_happened_may_be_uncertain_and_what_was_refused_failed() -> None:
    doubted, refused = ShadowEffects(), ShadowEffects()
    doubted.doubt(KEY)
    check(doubted, ledger("UNCERTAIN"), effects=1, requests=1)
    refused.refuse(KEY)
    check(refused, ledger("FAILED"), requests=1)


def test_a_crash_leaves_a_doubt_about_what_is_under_way_only() -> None:
    shadow = ShadowEffects()
    check(shadow, ledger("INTENT"), effects=1, requests=1)
    shadow.crash()
    check(shadow, ledger("UNCERTAIN"), effects=1, requests=1)


@pytest.mark.parametrize("status", ["DONE", "FAILED", "UNCERTAIN"])
def test_an_outcome_does_not_change(status: str) -> None:
    shadow = ShadowEffects()
    shadow.refuse(KEY)
    shadow.doubt(KEY)
    effects = int(status == "DONE")
    check(shadow, ledger(status), effects, requests=1)
    with pytest.raises(Resurrected):
        check(shadow, ledger("INTENT"), effects, requests=1)


def test_a_person_may_have_it_performed_once_more() -> None:
    shadow = ShadowEffects()
    shadow.doubt(KEY)
    check(shadow, ledger("UNCERTAIN"), effects=1, requests=1)
    shadow.decide(KEY, "INTENT", 1, 1)
    check(shadow, ledger("INTENT", 1), effects=2, requests=2)
    with pytest.raises(RepeatedEffect):
        check(shadow, ledger("INTENT", 2), effects=3, requests=3)


def test_everything_is_performed_in_the_end() -> None:
    shadow = ShadowEffects()
    with pytest.raises(Starved):
        shadow.check_performed(ledger("INTENT"), {})
    with pytest.raises(MissingEffect):
        shadow.check_performed(ledger("DONE"), {KEY: 0})
    shadow.check_performed(ledger("DONE"), {KEY: 1})


def test_it_is_known_since_when_nothing_is_to_be_decided() -> None:
    shadow = ShadowEffects()
    shadow.refuse(KEY)
    check(shadow, ledger("FAILED"), requests=1, now=5.0)
    assert shadow.settled_before(9.0) == []
    shadow.decide(KEY, "not-performed", 0, 1)
    check(shadow, ledger("FAILED", decided_by="Bob"), requests=1, now=6.0)
    check(shadow, ledger("FAILED", decided_by="Bob"), requests=1, now=7.0)
    assert (shadow.settled_before(6.0), shadow.settled_before(6.5)) == ([], [KEY])
