"""The default check of ``explore``: after a crash the files hold the old values or the new ones.

The values of the history are mappings from path to content: bytes, or None for a file that
does not exist. All files together must show the last acknowledged value or one in flight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from oracles.history import Known
from oracles.violation import LostAck, SilentEmpty, TornRecord, Violation

MIXED: Final = "the files hold parts of different values"
"""The statement of a violation in which each file is right, but not all of them together."""

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
            raise _violation(actual, self._past[: count + 1], allowed[1:])


def paths_of(values: Iterable[object]) -> list[str]:
    """Return the paths named by these values, sorted.

    Raises ``TypeError`` for a value that is not a mapping from path to bytes or None.
    """
    paths: set[str] = set()
    for value in values:
        for path, content in _files(value).items():
            _check_types(path, content)
            paths.add(path)
    return sorted(paths)


def _check_types(path: object, content: object) -> None:
    if not isinstance(path, str):
        raise TypeError(
            f"acknowledged path {path!r} is not a text; acknowledge {{'/path': b'...'}}"
        )
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
    actual: dict[str, Content],
    past: Sequence[Files],
    in_flight: Sequence[Files],
) -> Violation:
    """Return the worst that has happened to a file; ``past`` ends with the last acknowledged."""
    older, expected = past[:-1], past[-1]
    differs = [path for path in sorted(actual) if actual[path] != expected[path]]
    allowed = [expected, *in_flight]
    torn = _evidence(actual, allowed, differs)
    evidence = {name: torn[name] for name in ("expected", "actual")}
    stale: list[str] = []
    for path in differs:
        content = actual[path]
        if any(files[path] == content for files in in_flight):
            continue
        if any(files[path] == content for files in older):
            stale.append(path)
        elif expected[path] and not content:
            state = "does not exist" if content is None else "is empty"
            return SilentEmpty(f"{path} {state}: its acknowledged content is lost", **evidence)
        else:
            return TornRecord(
                f"{path} holds neither an acknowledged content nor one in flight", **torn
            )
    if not stale:
        # Each content is right by itself, so the files that are still as expected matter too.
        parts = [path for path in sorted(actual) if any(actual[path] != it[path] for it in allowed)]
        return TornRecord(MIXED, **_evidence(actual, allowed, parts))
    if all(actual[path] is None for path in stale):
        return LostAck(
            f"acknowledged value {len(older)} is lost: {stale[0]} does not exist", **evidence
        )
    return LostAck(
        f"acknowledged value {len(older)} is lost: {stale[0]} shows an older one", **evidence
    )


def _evidence(actual: Files, allowed: Sequence[Files], paths: Sequence[str]) -> dict[str, object]:
    """Return the contents of ``paths``: expected, in flight if there are others, and actual."""
    expected, *in_flight = _distinct(allowed, paths)
    (found,) = _distinct([actual], paths)
    others = {"in_flight": in_flight} if in_flight else {}
    return {"expected": expected, **others, "actual": found}


def _distinct(several: Iterable[Files], paths: Sequence[str]) -> list[Files]:
    """Return the contents of ``paths`` in each of these values, equal ones once."""
    found: list[Files] = []
    for files in several:
        contents = {path: files[path] for path in paths}
        if contents not in found:
            found.append(contents)
    return found
