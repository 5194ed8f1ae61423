"""Reports: written when work stops, kept until their log has them, and never written twice."""

from __future__ import annotations

import pytest

from system.durable.activity import Decision, Refused, Unknown
from system.durable.producers import DAY_S
from system.durable.report import REPORTS, Report
from system.durable.retention import remove_settled
from system.durable.state import Transaction
from system.durable.trigger import TriggerSpec
from system.ports import JsonObject, Performed
from tests.unit.durable.durable_bench import Bench
from tests.unit.durable.test_activity_store import (
    DEDUP,
    DUMB,
    KEY,
    attempt,
    intend,
    record,
    resolve,
)


def kept(bench: Bench) -> list[tuple[str, str | None]]:
    found = bench.do(lambda each: list(REPORTS.select(each, "1 ORDER BY rowid")))
    return [(row.message_id, row.session_id) for _, row in found if isinstance(row, Report)]


def taken(bench: Bench) -> list[str]:
    return [report.message_id for report in bench.stores.reports.take()]


def recover(bench: Bench) -> None:
    bench.do(bench.stores.recover, lambda _: True)


def dead(bench: Bench, trigger_id: str | None = None) -> str:
    trigger_id = trigger_id or bench.emit()
    bench.do(bench.stores.triggers.fail, bench.claim(trigger_id), "no", retryable=False)
    return trigger_id


def test_a_trigger_that_stops_is_reported_to_the_operator(bench: Bench) -> None:
    trigger_id = dead(bench)
    bench.cut_power()
    recover(bench)
    [report] = bench.stores.reports.take()
    assert (report.message_id, report.session_id) == (f"{trigger_id}.dead", None)
    assert report.payload == {
        "notice": "trigger", "v": 1, "trigger_id": trigger_id, "status": "FAILED",
        "source": "IMMEDIATE", "key": None, "session_id": "s",
        "fire_at": bench.row(trigger_id).fire_at, "attempts": 1, "reason": "no",
    }  # fmt: skip


@pytest.mark.parametrize("has_arrived", [True, False])
def test_a_trigger_with_the_id_of_a_removed_one_has_a_report_of_its_own(
    bench: Bench, has_arrived: bool
) -> None:
    spec, reported = TriggerSpec("IMMEDIATE", session_id="s"), list[str]()
    for _ in range(2):
        bench.do(bench.stores.emitter.emit, spec, "nightly")
        dead(bench, "nightly")
        reported += taken(bench)
        if has_arrived:
            bench.sessions.messages.update(reported)
        bench.do(bench.stores.triggers.discard, "nightly")
        bench.advance(2 * DAY_S)
        bench.do(remove_settled)

    assert reported == ["nightly.dead", f"nightly.dead.{bench.epoch}.1"]


def test_a_report_whose_id_is_there_stays_as_it_is(bench: Bench) -> None:
    for number in (1, 2):
        payload: JsonObject = {"n": number}
        bench.do(bench.stores.reports.add, "one", None, payload)

    assert [report.payload for report in bench.stores.reports.take()] == [{"n": 1}]
    assert kept(bench) == [("one", None)]


def test_a_trigger_that_is_dead_at_a_boot_is_reported(bench: Bench) -> None:
    trigger_id = bench.emit()
    for _ in range(5):
        bench.claim(trigger_id)
        bench.kill()
        recover(bench)
    assert (bench.row(trigger_id).status, kept(bench)) == ("DEAD", [(f"{trigger_id}.dead", None)])


def test_a_trigger_that_a_person_has_retried_is_reported_again(bench: Bench) -> None:
    trigger_id = dead(bench)
    bench.do(bench.stores.triggers.retry, trigger_id)
    bench.kill()
    for _ in range(2):
        dead(bench, trigger_id)
        bench.do(bench.stores.triggers.retry, trigger_id)
    assert [message_id for message_id, _ in kept(bench)] == [
        f"{trigger_id}.dead", f"{trigger_id}.dead.2.1", f"{trigger_id}.dead.2.2",
    ]  # fmt: skip


def test_a_report_is_taken_once_in_a_boot_and_again_in_the_next_one(bench: Bench) -> None:
    name = f"{dead(bench)}.dead"
    reports = bench.stores.reports
    before = reports.has_waiting
    assert (taken(bench), taken(bench)) == ([name], [])
    assert (before, reports.has_waiting) == (True, False)
    bench.kill()
    recover(bench)
    assert taken(bench) == [name]


def test_a_report_is_removed_when_its_log_has_the_message(bench: Bench) -> None:
    first = f"{dead(bench)}.dead"
    bench.sessions.messages.add(first)
    assert kept(bench) == [(first, None)]
    second = f"{dead(bench)}.dead"
    assert kept(bench) == [(second, None)]
    assert (list(bench.stores.reports.kept), taken(bench)) == ([second], [second])
    bench.sessions.messages.add(second)
    bench.kill()
    recover(bench)
    assert (kept(bench), taken(bench)) == ([], [])


def test_many_reports_of_one_transaction_read_the_earlier_ones_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(50):
        dead(bench)
        bench.emit(session="other")
    arrived = set(bench.stores.reports.kept)
    asked: list[str] = []

    def has_message(session_id: str | None, message_id: str) -> bool:
        del session_id
        if message_id in arrived:
            asked.append(message_id)
        return message_id in arrived

    monkeypatch.setattr(bench.sessions, "has_message", has_message)
    bench.do(bench.stores.end_session, "other")

    assert len(asked) == len(arrived) == 50
    assert len(kept(bench)) == len(bench.stores.reports.kept) == 50


def test_a_report_of_a_transaction_that_is_refused_is_not_there(bench: Bench) -> None:
    trigger_id = bench.emit()
    claim = bench.claim(trigger_id)

    def refused(transaction: Transaction) -> None:
        bench.stores.triggers.fail(transaction, claim, "no", retryable=False)
        raise KeyError

    with pytest.raises(KeyError):
        bench.do(refused)
    assert (kept(bench), taken(bench)) == ([], [])


def test_a_damaged_report_is_reported_and_stays(bench: Bench) -> None:
    dead(bench)
    bench.do(Transaction.execute, "UPDATE reports SET payload_json='{}'")
    bench.kill()
    [damaged] = bench.do(bench.stores.recover, lambda _: True).damaged
    assert damaged.table == "reports"
    assert taken(bench) == []
    count = bench.do(Transaction.execute, "SELECT count(*) FROM reports")
    bench.do(
        lambda each: bench.stores.reports.add(each, f"{bench_id(bench)}.dead", None, {})
    )  # the damaged row keeps its id
    assert bench.do(Transaction.execute, "SELECT count(*) FROM reports") == count


def bench_id(bench: Bench) -> str:
    [(trigger_id,)] = bench.do(Transaction.execute, "SELECT id FROM triggers")
    return str(trigger_id)


# -- activities --------------------------------------------------------------------------


def test_the_outcome_of_an_activity_is_reported_to_its_agent(bench: Bench) -> None:
    intend(bench, session_id="s")
    attempt(bench)
    assert kept(bench) == []
    record(bench, Performed("ref-1", {"id": 7}))
    [report] = bench.stores.reports.take()
    assert (report.message_id, report.session_id) == (f"{KEY}.result", "s")
    assert report.payload == {
        "activity_id": KEY, "action": "mail", "status": "DONE", "provider_ref": "ref-1",
        "result": {"id": 7}, "reason": None, "decided_by": None,
    }  # fmt: skip


def test_an_uncertain_activity_is_reported_to_the_operator_too(bench: Bench) -> None:
    intend(bench, session_id="s")
    attempt(bench)
    record(bench, Unknown("timeout"))
    assert kept(bench) == [(f"{KEY}.result", "s"), (f"{KEY}.uncertain", None)]
    uncertain = bench.stores.reports.take()[1].payload
    assert uncertain == {
        "notice": "activity", "v": 1, "activity_id": KEY, "action": "mail",
        "status": "UNCERTAIN", "session_id": "s", "attempts": 1, "reason": "timeout",
    }  # fmt: skip


def test_an_activity_of_no_session_has_no_agent_to_report_to(bench: Bench) -> None:
    intend(bench)
    attempt(bench)
    record(bench, Unknown("timeout"))
    assert kept(bench) == [(f"{KEY}.uncertain", None)]


def test_an_attempt_that_a_crash_has_interrupted_is_reported_at_the_boot(bench: Bench) -> None:
    intend(bench, session_id="s")
    attempt(bench)
    bench.cut_power()
    recover(bench)
    assert taken(bench) == [f"{KEY}.result", f"{KEY}.uncertain"]


def test_an_activity_that_is_to_be_tried_again_is_not_reported(bench: Bench) -> None:
    intend(bench, DEDUP, session_id="s")
    attempt(bench)
    record(bench, Unknown("timeout"))
    assert kept(bench) == []


@pytest.mark.parametrize("decision", [Decision.PERFORMED, Decision.NOT_PERFORMED])
def test_the_decision_of_a_person_is_reported_to_the_agent(
    bench: Bench, decision: Decision
) -> None:
    intend(bench, DUMB, session_id="s")
    attempt(bench)
    record(bench, Refused("no address"))
    resolve(bench, decision)
    assert kept(bench) == [(f"{KEY}.result", "s"), (f"{KEY}.decided", "s")]


def test_what_becomes_of_an_activity_that_a_person_repeats_is_another_report(bench: Bench) -> None:
    intend(bench, session_id="s")
    attempt(bench)
    record(bench, Unknown("timeout"))
    bench.sessions.messages.update((f"{KEY}.result", f"{KEY}.uncertain"))
    resolve(bench, Decision.AGAIN)
    bench.kill()
    recover(bench)
    assert kept(bench) == []
    attempt(bench)
    decided = record(bench, Unknown("timeout"))
    assert decided.decided_by is None
    assert kept(bench) == [(f"{KEY}.result.2.1", "s"), (f"{KEY}.uncertain.2.2", None)]
