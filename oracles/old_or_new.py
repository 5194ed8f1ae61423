"""Old or new, nothing between: the check for programs that replace files.

The values of the history are mappings from path to content (bytes, or None for a file
that is not there). After a crash the files must show, together, the last acknowledged
value or one that was in flight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from oracles.history import Known
from oracles.violation import LostAck, SilentEmpty, TornRecord, Violation

Content = bytes | None
Files = Mapping[str, Content]


class OldOrNew:
    """The check of one history; ``initial`` is what the files held before it began.

    All mappings name the same paths.
    """

    def __init__(self, initial: Files) -> None:
        self._past = [dict(initial)]

    def __call__(self, found: Files, known: Known) -> None:
        """Raise the ``Violation`` that the files ``found`` prove."""
        count = len(known.acknowledged)
        for value in known.acknowledged[len(self._past) - 1 :]:
            self._past.append(self._past[-1] | dict(_files(value)))
        expected = self._past[count]
        allowed = [expected]
        for value in known.in_flight:
            files = dict(_files(value))
            allowed += [expected | files, allowed[-1] | files]
        seen = dict(found)
        if seen not in allowed:
            raise _violation(seen, self._past[:count], expected, count)


def paths_of(values: Iterable[object]) -> list[str]:
    """Return the paths that these values speak of, sorted."""
    return sorted({path for value in values for path in _files(value)})


def _files(value: object) -> Files:
    if not isinstance(value, Mapping):
        raise TypeError(
            f"the default check needs mappings from path to bytes or None, got {value!r}; "
            "acknowledge such a mapping, or give a check of your own"
        )
    return value


def _violation(
    seen: dict[str, Content], older: list[dict[str, Content]], expected: Files, count: int
) -> Violation:
    for path in sorted(seen):
        if expected[path] and not seen[path] and seen[path] is not None:
            return SilentEmpty(
                f"{path} is empty after the crash, and nothing says so",
                expected=expected[path], actual=seen[path],
            )  # fmt: skip
    if seen in older:
        return LostAck(
            f"value {count} was acknowledged, and an older one is back",
            expected=expected, actual=seen,
        )  # fmt: skip
    if any(expected[path] is not None and seen[path] is None for path in sorted(seen)):
        return LostAck("a file that was acknowledged is gone", expected=expected, actual=seen)
    return TornRecord(
        "the files show neither the old value nor the new one", expected=expected, actual=seen
    )
