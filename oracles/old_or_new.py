"""The default check of ``explore``: after a crash the files hold the old values or the new ones.

The values of the history are mappings from path to content: bytes, or None for a file that
does not exist. All files together must show the last acknowledged value or one in flight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from oracles.history import Known
from oracles.violation import LostAck, SilentEmpty, TornRecord, Violation

Content = bytes | None
Files = Mapping[str, Content]


class OldOrNew:
    """Checks one history; ``initial`` is the content of the files before it began.

    All mappings name the same paths.
    """

    def __init__(self, initial: Files) -> None:
        self._past = [dict(initial)]

    def __call__(self, found: Files, known: Known) -> None:
        """Compare the files ``found`` after a crash; raise a ``Violation``."""
        count = len(known.acknowledged)
        for value in known.acknowledged[len(self._past) - 1 :]:
            self._past.append(self._past[-1] | dict(_files(value)))
        expected = self._past[count]
        allowed = [expected]
        for value in known.in_flight:
            files = dict(_files(value))
            allowed += [expected | files, allowed[-1] | files]
        actual = dict(found)
        if actual not in allowed:
            raise _violation(actual, self._past[:count], expected, count)


def paths_of(values: Iterable[object]) -> list[str]:
    """Return the paths named by these values, sorted.

    Raises ``TypeError`` for a value that is no mapping from path to bytes or None.
    """
    paths: set[str] = set()
    for value in values:
        for path, content in _files(value).items():
            _check_types(path, content)
            paths.add(path)
    return sorted(paths)


def _check_types(path: object, content: object) -> None:
    if not isinstance(path, str):
        raise TypeError(f"acknowledged path {path!r} is no text; acknowledge {{'/path': b'...'}}")
    if isinstance(content, str):
        raise TypeError(
            f"the acknowledged content of {path} is text, {content!r}; a file holds bytes: "
            "acknowledge them, for instance with encode()"
        )
    if content is not None and not isinstance(content, bytes):
        raise TypeError(
            f"the acknowledged content of {path} is {content!r}; acknowledge bytes, or None for "
            "no file"
        )


def _files(value: object) -> Files:
    if not isinstance(value, Mapping):
        raise TypeError(
            f"the default check needs mappings from path to bytes or None, got {value!r}; "
            "acknowledge such a mapping, or pass a check of your own"
        )
    return value


def _violation(
    actual: dict[str, Content], older: list[dict[str, Content]], expected: Files, count: int
) -> Violation:
    for path in sorted(actual):
        if expected[path] and not actual[path] and actual[path] is not None:
            return SilentEmpty(
                f"acknowledged content of {path} is lost and the file is empty",
                expected=expected[path], actual=actual[path],
            )  # fmt: skip
    if actual in older:
        return LostAck(
            f"acknowledged value {count} is lost and the files show an older value",
            expected=expected, actual=actual,
        )  # fmt: skip
    missing = [
        path for path in sorted(actual) if expected[path] is not None and actual[path] is None
    ]
    if missing:
        return LostAck(
            f"acknowledged file {missing[0]} does not exist", expected=expected, actual=actual
        )
    return TornRecord(
        "the files show neither the acknowledged value nor one in flight",
        expected=expected, actual=actual,
    )  # fmt: skip
