"""The nominal times of schedules, by trying every minute, or every multiple of a period.

This is slow, and written from the contract alone: a local time that is skipped when the clocks
change counts at the end of the gap. A local time that occurs twice counts once, unless the field
of hours begins with ``*``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Final, Protocol
from zoneinfo import ZoneInfo

DAY_S: Final = 86_400
_SEARCHED_DAYS: Final = 400
_LOWEST: Final = (0, 0, 1, 1, 0)
_HIGHEST: Final = (59, 23, 31, 12, 7)


class NominalTimes(Protocol):
    """Times in whole seconds since 1970."""

    def after(self, moment: int) -> int | None:
        """Return the first one after ``moment``, or None."""
        ...

    def number(self, after: int, until: int) -> int:
        """Return the number of those after ``after`` and not after ``until``."""
        ...

    def last(self, moment: int) -> int:
        """Return the last one that is not after ``moment``; there must be one."""
        ...


@dataclass(frozen=True, slots=True)
class OneTime:
    """One time."""

    nominal: int

    def after(self, moment: int) -> int | None:
        """Return the time if it is after ``moment``, else None."""
        return self.nominal if moment < self.nominal else None

    def number(self, after: int, until: int) -> int:
        """Return 1 if the time is in the range, else 0."""
        return int(after < self.nominal <= until)

    def last(self, moment: int) -> int:
        """Return the time."""
        del moment
        return self.nominal


@dataclass(frozen=True, slots=True)
class Periodic:
    """All multiples of ``period_s`` after ``anchor``."""

    anchor: int
    period_s: int

    def after(self, moment: int) -> int:
        """Return the next multiple."""
        moment = max(moment, self.anchor)
        return moment + self.period_s - (moment - self.anchor) % self.period_s

    def number(self, after: int, until: int) -> int:
        """Return the difference of two numbers of multiples."""
        return (until - self.anchor) // self.period_s - (after - self.anchor) // self.period_s

    def last(self, moment: int) -> int:
        """Return the last multiple."""
        return moment - (moment - self.anchor) % self.period_s


@dataclass(frozen=True, slots=True)
class CronTimes:
    """The times of five cron fields of numbers in a zone, found minute by minute."""

    spec: str
    zone: str

    def after(self, moment: int) -> int | None:
        """Return the first match of the coming 400 days."""
        first = self._date(moment)
        for offset in range(_SEARCHED_DAYS):
            for each in cron_day(self.spec, self.zone, first + timedelta(offset)):
                if each > moment:
                    return each
        return None

    def number(self, after: int, until: int) -> int:
        """Count the matches of each day."""
        return sum(after < each <= until for each in self._matches(after, until))

    def last(self, moment: int) -> int:
        """Return the last match of the days before."""
        span_s = DAY_S
        while not (found := self._matches(moment - span_s, moment)):
            span_s *= 2
        return found[-1]

    def _matches(self, after: int, until: int) -> list[int]:
        first, last = self._date(after), self._date(until)
        days = [first + timedelta(offset) for offset in range((last - first).days + 1)]
        matches = [each for day in days for each in cron_day(self.spec, self.zone, day)]
        return [each for each in matches if after < each <= until]

    def _date(self, moment: int) -> date:
        return datetime.fromtimestamp(moment, ZoneInfo(self.zone)).date()


@lru_cache(4_096)
def cron_day(spec: str, zone: str, day: date) -> tuple[int, ...]:
    """Return the matches among the local times of one day, in their order."""
    minutes, hours, *_ = fields = spec.split(" ")
    if not _is_day(fields, day):
        return ()
    local = ZoneInfo(zone)
    found = set()
    for hour in _values(hours, 1):
        for minute in _values(minutes, 0):
            wall = datetime(day.year, day.month, day.day, hour, minute, tzinfo=local)
            readings = [wall.replace(fold=fold) for fold in (0, 1)]
            moments = sorted({round(each.timestamp()) for each in readings})
            if datetime.fromtimestamp(moments[0], local).replace(fold=0) != wall:
                found.add(_end_of_gap(moments[0], moments[-1], local))
            elif hours.startswith("*"):
                found.update(moments)
            else:
                found.add(moments[0])
    return tuple(sorted(found))


def _end_of_gap(before: int, behind: int, zone: ZoneInfo) -> int:
    """Return the second at which the offset of a zone changes."""
    low, high = before - DAY_S // 4, behind + DAY_S // 4
    old = datetime.fromtimestamp(low, zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == old:
            low = middle
        else:
            high = middle
    return high


def _is_day(fields: list[str], day: date) -> bool:
    of_month, month, of_week = fields[2:]
    if day.month not in _values(month, 3):
        return False
    by_date = day.day in _values(of_month, 2)
    by_week = day.isoweekday() % 7 in {each % 7 for each in _values(of_week, 4)}
    if of_month.startswith("*") or of_week.startswith("*"):
        return by_date and by_week
    return by_date or by_week


def _values(field: str, position: int) -> list[int]:
    values: set[int] = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        low, high = _LOWEST[position], _HIGHEST[position]
        if span != "*":
            first, _, last = span.partition("-")
            low, high = int(first), int(last or (high if step else first))
        values.update(range(low, high + 1, int(step or 1)))
    return sorted(values)
