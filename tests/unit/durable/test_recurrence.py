"""Nominal times: computed from the schedule alone, also where the clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from oracles.durable.nominal_times import CronTimes
from system.durable.errors import BadSchedule
from system.durable.recurrence import MOST_MISSED, Recurrence, ScheduleKind, recurrence_of
from system.host import RealZones
from tests.sample import Sample

BERLIN = ZoneInfo("Europe/Berlin")
DAY_S = 86_400


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp())


def cron(spec: str, zone: str = "Europe/Berlin") -> Recurrence:
    return recurrence_of(ScheduleKind.CRON, spec, zone, 0, RealZones())


def following(times: Recurrence, moment: str, number: int) -> list[str]:
    """Return the next local times in Berlin."""
    found: list[str] = []
    after: int | None = at(moment)
    while after is not None and len(found) < number:
        after = times.after(after)
        if after is not None:
            found.append(datetime.fromtimestamp(after, BERLIN).isoformat())
    return found


@pytest.mark.parametrize(
    ("spec", "moment", "expected"),
    [
        ("30 9 * * mon-fri", "2026-11-20T12:00+01:00", ["2026-11-23T09:30:00+01:00"]),
        ("0 0 1,15 * *", "2026-11-15T00:00+01:00", ["2026-12-01T00:00:00+01:00"]),
        ("*/20 8-9 * * *", "2026-11-15T09:30+01:00",
         ["2026-11-15T09:40:00+01:00", "2026-11-16T08:00:00+01:00"]),
        # The clocks go from 2:00 to 3:00.
        ("30 2 * * *", "2026-03-28T12:00+01:00",
         ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]),
        ("*/30 * * * *", "2026-03-29T01:20+01:00",
         ["2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"]),
        # The clocks go from 3:00 back to 2:00.
        ("30 2 * * *", "2026-10-24T12:00+02:00",
         ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]),
        ("30 * * * *", "2026-10-25T02:00+02:00",
         ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:30:00+01:00"]),
    ],
)  # fmt: skip
def test_cron_times_are_those_of_local_clocks(spec: str, moment: str, expected: list[str]) -> None:
    assert following(cron(spec), moment, len(expected)) == expected


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize(
    "spec", ["30 2 * * *", "15 1,3 * * *", "*/40 */5 * * *", "0 2-3 * * 0", "5 4 13 * 5",
             "59 23 31 12 *", "30 1-2 */2 3,10,11 *", "10-50/20 2 * * 6-7"],
)  # fmt: skip
def test_cron_times_are_those_that_trying_every_minute_finds(spec: str, zone: str) -> None:
    system, expected = cron(spec, zone), CronTimes(spec, zone)
    for start in ("2024-03-08T13:00Z", "2024-03-29T20:00Z", "2024-10-25T07:00Z"):
        moment = at(start)
        for _ in range(8):
            found = system.after(moment)
            assert found == expected.after(moment)
            assert found is not None
            assert expected.last(found) == found == system.last(found)
            moment = found


@pytest.mark.parametrize(
    ("zone", "start"),
    [
        # The clocks change at midnight, by half an hour, by two hours, over a whole day.
        ("Atlantic/Azores", "2026-03-27T20:00Z"), ("Africa/Cairo", "2026-04-22T12:00Z"),
        ("Africa/Cairo", "2026-10-28T12:00Z"), ("America/Havana", "2026-10-30T12:00Z"),
        ("Australia/Lord_Howe", "2026-04-03T12:00Z"), ("Australia/Lord_Howe", "2026-10-02T12:00Z"),
        ("Antarctica/Troll", "2026-10-23T12:00Z"), ("Pacific/Apia", "2011-12-29T00:00Z"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "spec", ["30 * * * 0", "0 0 * * *", "20 0-2 * * 5-6", "*/40 */2 * * *", "30 12 30 * *"]
)
def test_cron_times_are_right_where_the_clocks_change_in_another_way(
    spec: str, zone: str, start: str
) -> None:
    system, expected, moment = cron(spec, zone), CronTimes(spec, zone), at(start)
    for _ in range(60 if spec.startswith("30 *") else 8):
        found = system.after(moment)
        assert found == expected.after(moment)
        assert found is not None
        moment = found


@pytest.mark.parametrize(
    ("spec", "plain"),
    [
        ("5-5 4-4 * * *", "5 4 * * *"), ("0 09-9/2 * 3-3 *", "0 9 * 3 *"),
        ("0 0 * mar-MAR Sun-sun", "0 0 * 3 0"), ("1-10 0 1-11,7-7 * *", "1-10 0 1-11,7 * *"),
    ],
)  # fmt: skip
def test_a_range_of_one_value_is_that_value(spec: str, plain: str) -> None:
    start = "2026-11-20T12:00+01:00"
    assert following(cron(spec), start, 12) == following(cron(plain), start, 12)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize("spec", ["* * * * *", "30 2 * * *", "0 0 1 1 *", "0 12 29 2 *"])
def test_no_cron_time_is_after_the_year_9999(spec: str, zone: str, sample: Sample) -> None:
    times, end = cron(spec, zone), at("9999-12-31T23:59+00:00")
    for moment in sample((end, end + 59, end + DAY_S, end + 100 * 366 * DAY_S), 2):
        assert times.after(moment) is None
        last = times.last(moment)
        assert end - 5 * 366 * DAY_S < last <= end
        assert times.missed(last, moment) == 0


@pytest.mark.parametrize("spec", ["30 2 * * *", "*/30 * * * *", "0 */2 * * *", "15 1-3 * * sun"])
@pytest.mark.parametrize("day", ["2026-03-29T00:00+01:00", "2026-10-25T00:00+02:00"])
def test_the_last_time_is_the_one_before_the_next(spec: str, day: str) -> None:
    times = cron(spec)
    found, moment = [], at(day)
    while moment < at(day) + 90_000:
        following = times.after(moment)
        assert following is not None
        assert following > moment
        found.append(moment := following)
    for earlier, later in pairwise(found):
        assert [times.last(each) for each in (earlier, later - 1)] == [earlier, earlier]
        assert times.missed(earlier, later) == 1


def test_a_period_counts_from_its_beginning() -> None:
    times = recurrence_of(ScheduleKind.EVERY, "60", "UTC", 1000, RealZones())
    assert [times.after(each) for each in (0, 1000, 1059, 1060)] == [1060, 1060, 1060, 1120]
    assert [times.last(each) for each in (1060, 1119, 1120)] == [1060, 1060, 1120]
    assert [times.missed(1060, each) for each in (1119, 1120, 1300)] == [0, 1, 4]
    assert times.missed(1060, 10**9) == MOST_MISSED


@pytest.mark.parametrize(
    ("spec", "zone", "expected"),
    [
        ("2026-11-23T09:00+02:00", "UTC", "2026-11-23T07:00+00:00"),
        ("2026-11-23T09:00", "Europe/Berlin", "2026-11-23T08:00+00:00"),
        ("2026-11-23T09:00:00.25Z", "UTC", "2026-11-23T09:00:01+00:00"),
        # The clocks go from 2:00 to 3:00, from 3:00 back to 2:00, and over a whole day.
        ("2026-03-29T02:30", "Europe/Berlin", "2026-03-29T01:00+00:00"),
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30+00:00"),
        ("2011-12-30T12:00", "Pacific/Apia", "2011-12-30T10:00+00:00"),
    ],
)
def test_a_one_time_schedule_has_one_time(spec: str, zone: str, expected: str) -> None:
    times = recurrence_of(ScheduleKind.ONCE, spec, zone, 0, RealZones())
    nominal = at(expected)
    assert [times.after(nominal - 1), times.after(nominal)] == [nominal, None]
    assert times.last(nominal + 5) == nominal
    assert times.missed(nominal, nominal + 5) == 0


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "..", "Europe", "/etc/passwd"])
def test_an_unknown_zone_is_refused(zone: str) -> None:
    with pytest.raises(BadSchedule, match="is not known; see the section on schedules"):
        cron("0 9 * * *", zone)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("cron", "61 * * * *"), ("cron", "* * * *"), ("cron", "* * * * * *"), ("cron", "@daily"),
        ("cron", "R * * * *"), ("cron", "H * * * *"), ("cron", "0 0 31 2 *"), ("cron", ""),
        ("cron", "0 0 L * *"), ("cron", "0 0 * foo *"), ("cron", "0 0 * * mon#1"),
        ("every", "0"), ("every", "-5"), ("every", "1.5"), ("every", "9999999999"), ("every", "x"),
        ("once", "soon"), ("once", ""), ("once", "2026-13-01T00:00"),
    ],
)  # fmt: skip
def test_a_malformed_specification_is_refused(kind: str, spec: str) -> None:
    with pytest.raises(BadSchedule, match="spec="):
        recurrence_of(ScheduleKind(kind), spec, "UTC", 0, RealZones())


def test_missed_times_are_counted_up_to_a_limit() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    end = start + timedelta(days=2)
    times = cron("* * * * *", "UTC")
    assert times.missed(round(start.timestamp()), round(end.timestamp())) == MOST_MISSED
