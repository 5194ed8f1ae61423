"""The tables of docs/disk.md with the language of fault plans, compared with the code."""

from __future__ import annotations

from functools import partial

import pytest

from faults.call_kind import ERRNOS, CallKind
from faults.fault_plan import (
    AboveDescriptors,
    AfterGrowth,
    FailSync,
    FaultRule,
    FromOperation,
    Misdirect,
    NthCall,
    Refuse,
    Rot,
    ShortTransfer,
    StepBack,
)
from sim.disk.cache.operation import SyncFailure
from tests.meta.page_tables import quoted, table_rows
from tests.meta.source_tree import ROOT

table = partial(table_rows, (ROOT / "docs" / "disk.md").read_text("utf-8"))

CALLS = {quoted(row[0])[0]: quoted(row[1]) for row in table("effect")}
CONDITION = {"rot:4": ""}
RULES = {
    effect: [FaultRule.parse(f"{call} * {CONDITION.get(effect, '#3')} {effect}") for call in calls]
    for effect, calls in CALLS.items()
}
EXAMPLE_OF_CONDITION = {"after 40KiB": "write * {} ENOSPC", "above 16": "open * {} EMFILE"}


@pytest.mark.parametrize("effect", CALLS)
def test_the_calls_of_an_effect(effect: str) -> None:
    assert {rule.calls for rule in RULES[effect]} == RULES[effect][0].effect.fits


def test_every_effect_is_listed() -> None:
    effects = [rules[0].effect for rules in RULES.values()]
    kinds = {type(effect) for effect in effects}
    assert kinds == {Refuse, FailSync, ShortTransfer, Rot, Misdirect, StepBack}
    assert [each.errno for each in effects if isinstance(each, Refuse)] == [
        ERRNOS[name] for name in ("EIO", "ENOSPC", "EINTR", "EROFS", "EMFILE")
    ]
    assert {call for calls in CALLS.values() for call in calls} == set(CallKind)


def test_every_condition_is_listed() -> None:
    conditions = [quoted(row[0])[0] for row in table("condition")]
    rules = [
        EXAMPLE_OF_CONDITION.get(each, "change * {} EROFS").format(each) for each in conditions
    ]
    kinds = {type(FaultRule.parse(rule).condition) for rule in rules}
    assert kinds == {NthCall, AfterGrowth, FromOperation, AboveDescriptors}
    assert FaultRule.parse("change * #1+ EROFS") == FaultRule.parse("change * EROFS")


def test_every_policy_of_a_failed_barrier_is_listed() -> None:
    policies = [policy for row in table("policy") for policy in quoted(row[0])]
    assert sorted(policies) == sorted(SyncFailure)
