"""The nominal times of a schedule: whole seconds since 1970, computed from the schedule alone.

In a cron specification, local times that are skipped when the clocks change are moved to the end
of the gap. Local times that occur twice count once, unless the field of hours begins with ``*``.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from itertools import islice, takewhile
from math import ceil
from typing import Final

from croniter import CroniterBadCronError, croniter

from system.durable.errors import BadSchedule
from system.durable.seconds import YEAR_10000
from system.ports import Zones

LONGEST_PERIOD_S: Final = 10 * 366 * 86_400
MOST_MISSED: Final = 1_000
"""The number up to which missed occurrences are counted."""

_FIRST_SPAN_S: Final = 3_600
_LONGEST_REPEAT_S: Final = 3 * 3_600
"""The longest time that occurs twice when the clocks change is two hours."""

_VALUE: Final = r"(?:\d{1,2}|[A-Za-z]{3})"
_ITEM: Final = rf"(?:\*|{_VALUE}(?:-{_VALUE})?)(?:/\d{{1,2}})?"
_FIELD: Final = rf"{_ITEM}(?:,{_ITEM})*"
_CRON: Final = re.compile(rf"{_FIELD}(?: {_FIELD}){{4}}")
_RANGE_OF_ONE: Final = re.compile(r"\b0?(\w+)-0?\1\b(?:/\d+)?", re.IGNORECASE)


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
        """Return the next multiple; none is after the year 9999."""
        count = max(1, (moment - self.anchor) // self.period_s + 1)
        following = self.anchor + count * self.period_s
        return following if following < YEAR_10000 else None

    def last(self, moment: int) -> int:
        """Return the last multiple."""
        assert self.anchor + self.period_s <= moment
        return self.anchor + (moment - self.anchor) // self.period_s * self.period_s

    def missed(self, nominal: int, moment: int) -> int:
        """Return a number of multiples without counting them."""
        return min(MOST_MISSED, (moment - nominal) // self.period_s)


@dataclass(frozen=True, slots=True)
class Cron(Recurrence):
    """The local times of ``zone`` that match ``spec``.

    croniter is asked about times without a zone, because it is wrong where the clocks change.
    """

    spec: str
    zone: tzinfo

    def after(self, moment: int) -> int | None:
        """Return the next match; none is after the year 9999."""
        try:
            local = datetime.fromtimestamp(moment, self.zone).replace(tzinfo=None)
            for match in self._matches(local):
                found = first_reading(match, self.zone)
                if found > moment:
                    return min([found, *self._second_readings(moment, local)])
        except (ValueError, OverflowError):
            pass
        return None

    def _matches(self, local: datetime) -> Iterator[datetime]:
        """Yield the matches after a local time; raises ``ValueError`` if there is none."""
        matches = croniter(self.spec, local.replace(tzinfo=UTC).timestamp())
        while True:
            found: float = matches.get_next(float)
            yield datetime.fromtimestamp(found, UTC).replace(tzinfo=None)

    def _second_readings(self, moment: int, local: datetime) -> Iterator[int]:
        """Yield matches after ``moment`` that occur for the second time, if they count."""
        near = timedelta(seconds=_LONGEST_REPEAT_S)
        is_hourly = self.spec.split(" ")[1].startswith("*")
        if not is_hourly or self._offset(moment, -near) <= self._offset(moment, near):
            return
        for match in takewhile(lambda each: each < local + near, self._matches(local - near)):
            found = round(match.replace(tzinfo=self.zone, fold=1).timestamp())
            if found > moment:
                yield found

    def _offset(self, moment: int, distance: timedelta) -> timedelta:
        offset = (datetime.fromtimestamp(moment, UTC) + distance).astimezone(self.zone).utcoffset()
        assert offset is not None
        return offset

    def last(self, moment: int) -> int:
        """Return the last match; croniter goes back incorrectly at changes of the clocks."""
        moment, span_s = min(moment, YEAR_10000), _FIRST_SPAN_S
        while (found := self.after(moment - span_s)) is None or found > moment:
            span_s *= 8
        times = takewhile(lambda each: each <= moment, self._times(found))
        return max(times, default=found)


def first_reading(local: datetime, zone: tzinfo) -> int:
    """Return the moment of a local time, whole seconds since 1970, rounded up.

    That of a time that occurs twice is the first one, that of a skipped time the end of the gap.
    """
    early, late = (local.replace(tzinfo=zone, fold=fold) for fold in (1, 0))
    moment, before = ceil(late.timestamp()), ceil(early.timestamp())
    if before >= moment:
        return moment
    # In a gap the offset before it gives the later moment.
    while moment - before > 1:
        middle = (before + moment) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == early.utcoffset():
            moment = middle
        else:
            before = middle
    return moment


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
    if moment.tzinfo is None:
        return Once(first_reading(moment, zone))
    return Once(ceil((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()))


def _every(spec: str, anchor: int) -> Every:
    is_number = re.fullmatch(r"[1-9][0-9]{0,9}", spec) is not None
    if not is_number or int(spec) > LONGEST_PERIOD_S:
        raise BadSchedule(f"spec={spec!r:.100} is not a number of seconds up to {LONGEST_PERIOD_S}")
    return Every(int(spec), anchor)


def _cron(spec: str, zone: tzinfo) -> Cron:
    if _CRON.fullmatch(spec) is None:
        raise BadSchedule(f"spec={spec!r:.100} is not five cron fields of numbers, names and *,-/")
    # croniter takes a range of one value for a star.
    cron = Cron(_RANGE_OF_ONE.sub(r"\1", spec), zone)
    try:
        croniter.expand(cron.spec)
    except CroniterBadCronError as bad:
        raise BadSchedule(f"spec={spec!r:.100} is not a cron specification ({bad})") from None
    if cron.after(0) is None:
        raise BadSchedule(f"spec={spec!r:.100} matches no time")
    return cron
