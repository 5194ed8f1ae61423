"""The differences between two JSON values, by path."""

from __future__ import annotations

from collections.abc import Iterator
from json import loads
from typing import Final, NamedTuple

from system.foreign import on_one_line
from system.ports import Json, JsonObject
from system.storage.codec import canonical

MISSING: Final = "(missing)"


class Difference(NamedTuple):
    """A path at which two values differ, on one line.

    The other texts are canonical JSON, or ``(missing)``.
    """

    path: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path or '(all)'}: {self.before} -> {self.after}"

    def to_dict(self) -> JsonObject:
        """Return the difference as a JSON object; it lacks a value that is missing."""
        values = {"before": self.before, "after": self.after}
        found = {name: loads(text) for name, text in values.items() if text != MISSING}
        return {"path": self.path, **found}


def differences(before: Json, after: Json, path: str = "") -> Iterator[Difference]:
    """Yield the differences in the order of the paths; objects and lists are entered."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            shown = on_one_line(name)
            place = f"{path}.{shown}" if path else shown
            if name not in before:
                yield Difference(place, MISSING, _text(after[name]))
            elif name not in after:
                yield Difference(place, _text(before[name]), MISSING)
            else:
                yield from differences(before[name], after[name], place)
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            place = f"{path}[{index}]"
            if index >= len(before):
                yield Difference(place, MISSING, _text(after[index]))
            elif index >= len(after):
                yield Difference(place, _text(before[index]), MISSING)
            else:
                yield from differences(before[index], after[index], place)
    elif _text(before) != _text(after):
        yield Difference(path, _text(before), _text(after))


def _text(value: Json) -> str:
    return canonical(value).decode("ascii")
