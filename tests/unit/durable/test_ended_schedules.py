"""Schedules that end, are paused or skip: without a time, with their session or zone, too late."""

from __future__ import annotations

from dataclasses import replace
from datetime import tzinfo

import pytest

from system.durable.errors import BadSchedule
from system.durable.retention import remove_settled
from system.durable.schedule import CatchUp
from system.durable.schedule_store import LATE_S
from system.durable.seconds import SECOND_NS, YEAR_10000, SteadyClock
from system.durable.state import Bindings, SqlRow, Transaction
from system.durable.stores import Stores
from tests.unit.durable.durable_bench import Bench
from tests.unit.durable.test_schedule_store import fire, made, schedule, waiting


def test_a_schedule_without_a_time_before_the_year_10000_ends(bench: Bench) -> None:
    last = YEAR_10000 - 365 * 86_400
    bench.advance(last - 600 - bench.now)
    made(bench, kind="cron", spec="0 0 1 1 *")
    assert schedule(bench).next_fire_at == last
    bench.advance(600)
    fire(bench)
    assert schedule(bench).ended_at is not None
    assert waiting(bench) == []
    for kind, spec in (("cron", "0 0 1 1 *"), ("every", "300000000")):
        with pytest.raises(BadSchedule, match="has no time to come"):
            made(bench, "b", kind=kind, spec=spec)


def test_a_period_ends_with_the_year_9999(bench: Bench) -> None:
    bench.advance(YEAR_10000 - 300 - bench.now)
    made(bench, kind="every", spec="200")
    bench.advance(200)
    fire(bench)
    assert schedule(bench).ended_at is not None
    assert waiting(bench) == []


def rows_read(bench: Bench, schedules: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """The rows that the end of a session with so many schedules reads."""
    for number in range(schedules):
        made(bench, f"of-{schedules}-{number}", session_id="other")
    read: list[str] = []
    execute = Transaction.execute

    def counted(self: Transaction, statement: str, *bindings: Bindings) -> list[SqlRow]:
        found = execute(self, statement, *bindings)
        read.extend([statement] * len(found))
        return found

    with monkeypatch.context() as watched:
        watched.setattr(Transaction, "execute", counted)
        bench.do(bench.stores.triggers.end_session, "other")
    assert waiting(bench, "other") == []
    return len(read)


def test_the_end_of_a_session_reads_each_schedule_a_fixed_number_of_times(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(bench, "kept")
    few, many = (rows_read(bench, schedules, monkeypatch) for schedules in (10, 40))
    assert many <= 4 * few
    assert [trigger.dedup_key for trigger in waiting(bench)] == [
        f"scheduled:kept:{schedule(bench, 'kept').next_fire_at}"
    ]


def test_the_end_of_a_session_supersedes_occurrences_that_wait_again(bench: Bench) -> None:
    made(bench, "one", session_id="other")
    made(bench, "two", session_id="other")
    bench.advance(60)
    bench.do(bench.stores.triggers.fail, bench.claim(bench.due("other") or ""), "no")
    assert len(waiting(bench, "other")) == 3
    bench.do(bench.stores.triggers.end_session, "other")
    assert waiting(bench, "other") == []
    assert bench.do(bench.stores.triggers.open_rows) == []


def test_an_occurrence_that_is_late_by_the_limit_is_not_skipped_with_an_earlier_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(bench, catch_up=CatchUp.SKIP)
    [row] = waiting(bench)
    now_ns = (round(row.fire_at) + 60 + LATE_S) * SECOND_NS
    monkeypatch.setattr(SteadyClock, "now_ns", lambda _: now_ns)
    assert bench.do(bench.stores.triggers.claim, row.id) is None
    assert [each.fire_at - row.fire_at for each in waiting(bench)] == [60.0]


def test_an_occurrence_of_a_removed_schedule_is_none_of_another_one_with_its_id(
    bench: Bench,
) -> None:
    made(bench)
    bench.advance(60)
    old = bench.due() or ""
    bench.do(bench.stores.triggers.fail, bench.claim(old), "no", retryable=False)
    bench.do(bench.stores.schedules.delete, "a")
    bench.advance(8 * 86_400)
    bench.do(remove_settled)
    made(bench)
    following = schedule(bench)
    bench.do(bench.stores.triggers.retry, old)

    assert fire(bench).id == old

    assert (schedule(bench).last_nominal, schedule(bench).next_fire_at) == (
        None, following.next_fire_at,
    )  # fmt: skip
    assert [each.fire_at for each in waiting(bench)] == [following.next_fire_at]


class NoZones:
    """A machine whose data of time zones were removed."""

    def zone(self, name: str) -> tzinfo:
        raise KeyError(name)


def test_a_schedule_whose_zone_is_not_known_any_more_is_paused_and_reported(bench: Bench) -> None:
    made(bench)
    bench.host = replace(bench.host, zones=NoZones())
    bench.stores = Stores(bench.host, bench.epoch, bench.sessions)
    bench.do(bench.stores.triggers.load)
    bench.advance(60)
    due = bench.due()
    assert due is not None
    assert bench.do(bench.stores.triggers.claim, due) is None
    failed, paused = bench.row(due), schedule(bench)
    reason = "zone='UTC' is not known; see the section on schedules in docs/durable.md"
    assert (failed.status, failed.attempts, failed.reason) == ("FAILED", 0, reason)
    assert (paused.paused, paused.next_fire_at, paused.reason) == (True, None, reason)
    assert [each.message_id for each in bench.stores.reports.take()] == [f"{due}.dead"]
    with pytest.raises(BadSchedule, match="is not known"):
        bench.do(bench.stores.schedules.resume, "a")
    # Its occurrence is run after the decision of a person, and emits no other.
    bench.kill()
    bench.do(bench.stores.triggers.retry, due)
    assert fire(bench).id == due
    assert (schedule(bench).paused, waiting(bench)) == (True, [])
    bench.do(bench.stores.schedules.resume, "a")
    assert [trigger.status for trigger in waiting(bench)] == ["PENDING"]
