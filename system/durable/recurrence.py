"""The nominal times of a schedule: whole seconds since 1970, computed from the schedule alone.

In a cron specification, local times that are skipped when the clocks change are moved to the end
of the gap. Local times that occur twice count once, unless the field of hours begins with ``*``.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from itertools import islice, takewhile
from math import ceil
from typing import Final

from croniter import CroniterBadCronError, CroniterBadDateError, croniter

from system.durable.errors import BadSchedule
from system.ports import Zones

LONGEST_PERIOD_S: Final = 10 * 366 * 86_400
MOST_MISSED: Final = 1_000
"""The number up to which missed occurrences are counted."""

_FIRST_SPAN_S: Final = 3_600

_VALUE: Final = r"(?:\d{1,2}|[A-Za-z]{3})"
_ITEM: Final = rf"(?:\*|{_VALUE}(?:-{_VALUE})?)(?:/\d{{1,2}})?"
_FIELD: Final = rf"{_ITEM}(?:,{_ITEM})*"
_CRON: Final = re.compile(rf"{_FIELD}(?: {_FIELD}){{4}}")


class ScheduleKind(StrEnum):
    """The forms of a schedule."""

    ONCE = "once"
    """At an ISO 8601 time; local time of its zone if it names no offset."""
    EVERY = "every"
    """Every given number of seconds from its creation on."""
    CRON = "cron"
    """Minute, hour, day of month, month, day of week in local time of its zone."""


class Recurrence(ABC):
    """The nominal times of one schedule."""

    @abstractmethod
    def after(self, moment: int) -> int | None:
        """Return the first nominal time after ``moment``, or None if there is none."""

    @abstractmethod
    def last(self, moment: int) -> int:
        """Return the last nominal time that is not after ``moment``; there must be one."""

    def missed(self, nominal: int, moment: int) -> int:
        """Return how many nominal times are after ``nominal`` and not after ``moment``."""
        passed = takewhile(lambda each: each <= moment, self._times(nominal))
        return sum(1 for _ in islice(passed, MOST_MISSED))

    def _times(self, nominal: int) -> Iterator[int]:
        following = self.after(nominal)
        while following is not None:
            yield following
            following = self.after(following)


@dataclass(frozen=True, slots=True)
class Once(Recurrence):
    """One nominal time."""

    nominal: int

    def after(self, moment: int) -> int | None:
        """Return it, or None."""
        return self.nominal if moment < self.nominal else None

    def last(self, moment: int) -> int:
        """Return it."""
        assert self.nominal <= moment
        return self.nominal


@dataclass(frozen=True, slots=True)
class Every(Recurrence):
    """All multiples of ``period_s`` after ``anchor``."""

    period_s: int
    anchor: int

    def after(self, moment: int) -> int | None:
        """Return the next multiple."""
        return self.anchor + max(1, (moment - self.anchor) // self.period_s + 1) * self.period_s

    def last(self, moment: int) -> int:
        """Return the last multiple."""
        assert self.anchor + self.period_s <= moment
        return self.anchor + (moment - self.anchor) // self.period_s * self.period_s

    def missed(self, nominal: int, moment: int) -> int:
        """Return a number of multiples without counting them."""
        return min(MOST_MISSED, (moment - nominal) // self.period_s)


@dataclass(frozen=True, slots=True)
class Cron(Recurrence):
    """The local times of ``zone`` that match ``spec``."""

    spec: str
    zone: tzinfo

    def after(self, moment: int) -> int | None:
        """Return the next match."""
        is_hourly = self.spec.split(" ")[1].startswith("*")
        matches = croniter(self.spec, datetime.fromtimestamp(moment, self.zone))
        try:
            found: float = matches.get_next(float)
            while not is_hourly and datetime.fromtimestamp(found, self.zone).fold:
                found = matches.get_next(float)
        except CroniterBadDateError:
            return None
        return round(found)

    def last(self, moment: int) -> int:
        """Return the last match; croniter goes back incorrectly at changes of the clocks."""
        span_s = _FIRST_SPAN_S
        while (found := self.after(moment - span_s)) is None or found > moment:
            span_s *= 8
        times = takewhile(lambda each: each <= moment, self._times(found))
        return max(times, default=found)


def recurrence_of(
    kind: ScheduleKind, spec: str, zone_name: str, anchor: int, zones: Zones
) -> Recurrence:
    """Return the times of a schedule that was created at ``anchor`` (seconds since 1970).

    Raises ``BadSchedule``.
    """
    try:
        zone = zones.zone(zone_name)
    except KeyError:
        raise BadSchedule(f"zone={zone_name!r:.100} is not known") from None
    match kind:
        case ScheduleKind.ONCE:
            return _once(spec, zone)
        case ScheduleKind.EVERY:
            return _every(spec, anchor)
        case ScheduleKind.CRON:
            return _cron(spec, zone)


def _once(spec: str, zone: tzinfo) -> Once:
    try:
        moment = datetime.fromisoformat(spec)
    except ValueError:
        raise BadSchedule(f"spec={spec!r:.100} is not a time in ISO 8601") from None
    local = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
    return Once(ceil((local - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()))


def _every(spec: str, anchor: int) -> Every:
    is_number = re.fullmatch(r"[1-9][0-9]{0,9}", spec) is not None
    if not is_number or int(spec) > LONGEST_PERIOD_S:
        raise BadSchedule(f"spec={spec!r:.100} is not a number of seconds up to {LONGEST_PERIOD_S}")
    return Every(int(spec), anchor)


def _cron(spec: str, zone: tzinfo) -> Cron:
    if _CRON.fullmatch(spec) is None:
        raise BadSchedule(f"spec={spec!r:.100} is not five cron fields of numbers, names and *,-/")
    cron = Cron(spec, zone)
    try:
        found = cron.after(0)
    except CroniterBadCronError as bad:
        raise BadSchedule(f"spec={spec!r:.100} is not a cron specification ({bad})") from None
    if found is None:
        raise BadSchedule(f"spec={spec!r:.100} matches no time")
    return cron
