"""The tables of docs/durable.md, compared with the code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from inspect import signature
from itertools import product
from pathlib import Path

import pytest

import system.durable.errors
import system.errors
from system.durable.activity import ActivityStatus, Decision, Unknown
from system.durable.legacy import LEGACY_TYPES
from system.durable.producers import PRODUCERS, Producer
from system.durable.recurrence import ScheduleKind
from system.durable.schedule import CatchUp, ScheduleSpec
from system.durable.state import Transaction
from system.durable.trigger import Claim, TriggerSource, TriggerSpec, TriggerStatus
from system.durable.trigger_store import TriggerStore
from system.errors import RuntimeRefused, StorageError
from system.ports import Action, Performed
from tests.meta.page_tables import quoted, table_rows
from tests.meta.source_tree import ROOT, name_of, python_files, tree_of
from tests.unit.durable.durable_bench import Bench
from tests.unit.durable.test_activity_store import KEY, attempt, intend, record, resolve
from tests.unit.durable.test_report_store import dead

PAGE = (ROOT / "docs" / "durable.md").read_text("utf-8")

table = partial(table_rows, PAGE)


def test_the_producers() -> None:
    assert [row[:7] for row in table("source")] == [shown(producer) for producer in PRODUCERS]


def shown(producer: Producer) -> list[str]:
    lowest, highest = producer.priorities
    key = f"`{producer.prefix}`" if producer.keyed else f"none, or `{producer.prefix}`"
    return [
        producer.source, key, str(producer.parts), f"{producer.priority} ({lowest}–{highest})",
        producer.scope, ("no", "yes")[producer.routable], ("no", "yes")[producer.replaces],
    ]  # fmt: skip


@pytest.mark.parametrize("path", [*python_files("system")], ids=name_of)
def test_sources_and_forms_of_keys_are_written_in_one_place(path: Path) -> None:
    forms = tuple(f"{producer.prefix}:" for producer in PRODUCERS)
    texts = [each.value for each in ast.walk(tree_of(path)) if isinstance(each, ast.Constant)]
    found = [
        text
        for text in texts
        if isinstance(text, str) and (text in set(TriggerSource) or text.startswith(forms))
    ]
    assert found == (list(TriggerSource) if name_of(path) == "system/durable/trigger.py" else [])


@pytest.mark.parametrize("kind", [TriggerSpec, ScheduleSpec, Action, Performed])
def test_the_members_of_a_specification(kind: type) -> None:
    members = ", ".join(signature(kind).parameters)
    assert f"`{kind.__name__}({members})`" in PAGE.replace("\n", " ")


def test_the_legacy_types() -> None:
    rows = {name: row[0] for row in table("source") for name in quoted(row[7])}
    assert rows == {name: str(source) for name, source in LEGACY_TYPES}


def test_the_kinds_of_schedules_and_of_catching_up() -> None:
    assert [quoted(row[0])[0] for row in table("kind")] == list(ScheduleKind)
    assert [quoted(row[0])[0] for row in table("catch_up")] == list(CatchUp)


def test_the_states_of_activities() -> None:
    rows = list(table("status"))
    assert [quoted(row[0])[0] for row in rows] == list(TriggerStatus)
    activities = PAGE.partition("## Activities")[2]
    assert [each for each in ActivityStatus if f"| `{each}` |" not in activities] == []


def test_the_errors() -> None:
    own = {
        name
        for name, error in vars(system.durable.errors).items()
        if isinstance(error, type)
        and issubclass(error, StorageError)
        and error.__module__ == system.durable.errors.__name__
    }
    shared = {"StorageFull", "RootInUse", "NewerFormat"}
    assert {quoted(row[1])[0] for row in table("failure")} == own | shared
    assert all(hasattr(system.errors, name) for name in shared)


def test_the_reports(bench: Bench) -> None:
    trigger_id = dead(bench)
    intend(bench, session_id="s")
    attempt(bench)
    record(bench, Unknown("no answer"))
    resolve(bench, Decision.PERFORMED)
    reports = bench.stores.reports.take()

    def shown(message_id: str) -> str:
        return message_id.replace("<trigger_id>", trigger_id).replace("<activity_id>", KEY)

    ids = {shown(name) for row in table("report") for name in quoted(row[2])}
    assert {report.message_id for report in reports} == ids
    page = (ROOT / "docs" / "runtime.md").read_text("utf-8")
    for notice, to, message_id, members in table_rows(page, "notice"):
        if to == "USER":
            [report] = [each for each in reports if each.message_id == shown(quoted(message_id)[0])]
            assert isinstance(report.payload, dict)
            assert set(report.payload) == {"notice", *quoted(members)[0].split(", ")}
            assert report.payload["notice"] == notice


def in_state(status: TriggerStatus, attempts: int = 1) -> tuple[Bench, str, Claim]:
    """Return a root with a trigger in this state, and its last claim."""
    bench = Bench()
    store, trigger_id = bench.stores.triggers, bench.emit()
    for _ in range(attempts - 1):
        bench.do(store.fail, bench.claim(trigger_id), "busy")
        bench.advance(4_000)
    claim = bench.claim(trigger_id)
    if status is TriggerStatus.PENDING:
        bench.do(store.give_back, claim)
    elif status is TriggerStatus.DONE:
        bench.do(store.ack, claim)
    elif status is not TriggerStatus.CLAIMED:
        bench.do(store.fail, claim, "no", retryable=status is TriggerStatus.DEAD)
    assert bench.row(trigger_id).status is status
    return bench, trigger_id, claim


CALLS: Mapping[str, Callable[[TriggerStore, Transaction, str, Claim], object]] = {
    "claim": lambda store, transaction, trigger_id, _: store.claim(transaction, trigger_id),
    "ack": lambda store, transaction, _, claim: store.ack(transaction, claim),
    "fail": lambda store, transaction, _, claim: store.fail(transaction, claim, "busy"),
    "stop": lambda store, transaction, _, claim: store.fail(
        transaction, claim, "no", retryable=False
    ),
    "give back": lambda store, transaction, _, claim: store.give_back(transaction, claim),
    "settle": lambda store, transaction, trigger_id, _: store.settle(transaction, trigger_id),
    "cancel": lambda store, transaction, trigger_id, _: store.cancel(transaction, trigger_id),
    "reclaim": lambda store, transaction, *_: store.reclaim(transaction),
    "end": lambda store, transaction, *_: store.end_session(transaction, "s"),
    "retry": lambda store, transaction, trigger_id, _: store.retry(transaction, trigger_id),
    "discard": lambda store, transaction, trigger_id, _: store.discard(transaction, trigger_id),
}


@pytest.mark.parametrize("status", TriggerStatus)
def test_the_transitions_of_a_trigger(status: TriggerStatus) -> None:
    allowed = {quoted(row[0])[0]: set(quoted(row[2])) for row in table("status")}
    reached: set[str] = set()
    for call, attempts in product(CALLS.values(), (1, 5)):
        bench, trigger_id, claim = in_state(status, 5 if status is TriggerStatus.DEAD else attempts)
        with suppress(RuntimeRefused):
            bench.do(partial(call, bench.stores.triggers), trigger_id, claim)
        reached.add(bench.row(trigger_id).status)
    assert reached - {status} == allowed[status]
