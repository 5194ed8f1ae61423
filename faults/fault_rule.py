"""One rule of a fault plan, as plain data: which calls, when among them, and what happens.

It reads ``fsync */events.jsonl #3 EIO:ext4``: calls, glob, moment, effect; and with ``off``
before it, it is switched off. The glob is ``fnmatch``'s, over the path through which the
program made the call, and its ``*`` takes a ``/`` too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from faults.fault_effect import (
    Effect,
    FailSync,
    Misdirect,
    Refuse,
    Rot,
    Short,
    StepBack,
    parse_effect,
)
from faults.fault_moment import ALWAYS, Above, After, From, Moment, Nth, parse_moment
from sim.errors import HarnessError


class Calls(StrEnum):
    """Which calls a rule matches; ``change`` is every mutating operation, fsync included."""

    CREATE = "create"
    WRITE = "write"
    RESIZE = "resize"
    LINK = "link"
    UNLINK = "unlink"
    RENAME = "rename"
    ATTRIBUTES = "attributes"
    FSYNC = "fsync"
    CHANGE = "change"
    READ = "read"
    OPEN = "open"
    CLOSE = "close"
    CLOCK = "clock"


_MUTATING: Final = frozenset(Calls) - {Calls.READ, Calls.OPEN, Calls.CLOSE, Calls.CLOCK}
_CALLS_OF_EFFECT: Final[dict[type[Effect], frozenset[Calls]]] = {
    Refuse: frozenset(Calls) - {Calls.CLOCK},
    FailSync: frozenset({Calls.FSYNC}),
    Short: frozenset({Calls.WRITE, Calls.READ}),
    Rot: frozenset({Calls.READ}),
    Misdirect: frozenset({Calls.WRITE}),
    StepBack: frozenset({Calls.CLOCK}),
}
_CALLS_OF_MOMENT: Final[dict[type[Moment], frozenset[Calls]]] = {
    Nth: frozenset(Calls),
    After: frozenset({Calls.WRITE, Calls.FSYNC, Calls.CLOSE}),
    From: _MUTATING,
    Above: frozenset({Calls.OPEN}),
}


@dataclass(frozen=True, slots=True)
class FaultRule:
    """Calls of these kinds on paths that fit ``glob`` suffer ``effect``, each at its ``moment``.

    Raises ``HarnessError`` for a combination that means nothing.
    """

    calls: Calls
    glob: str
    effect: Effect
    moment: Moment = ALWAYS
    on: bool = True

    def __post_init__(self) -> None:
        complaint = _complaint(self)
        if complaint:
            raise HarnessError(f"fault rule '{self}': {complaint}")

    def __str__(self) -> str:
        moment = "" if self.moment == ALWAYS else f" {self.moment}"
        off = "" if self.on else "off "
        return f"{off}{self.calls} {self.glob}{moment} {self.effect}"

    @classmethod
    def parse(cls, text: str) -> FaultRule:
        """Read what ``str`` wrote; ``HarnessError`` names the piece that is wrong."""
        words = text.split()
        on = words[:1] != ["off"]
        if not on:
            del words[0]
        if len(words) < 3:
            raise HarnessError(
                f"fault rule {text.strip()!r} needs calls, a glob and an effect, "
                "as in 'write *.jsonl #2 EIO'"
            )
        effect = parse_effect(words[-1])
        return cls(_calls(words[0]), words[1], effect, parse_moment(" ".join(words[2:-1])), on)

    def matches(self, calls: Calls, path: str) -> bool:
        """Say whether a call of this kind on ``path`` is one of those that the rule counts."""
        kind = calls is self.calls or (self.calls is Calls.CHANGE and calls in _MUTATING)
        return kind and (self.glob == "*" or fnmatchcase(path, self.glob))

    def switched(self, *, on: bool) -> FaultRule:
        """Return the same rule, on or off."""
        return replace(self, on=on)


def _complaint(rule: FaultRule) -> str:
    """Say what makes no sense about a rule, or nothing."""
    effect, moment = rule.effect, rule.moment
    if not rule.glob or ";" in rule.glob or rule.glob.split() != [rule.glob]:
        return f"glob {rule.glob!r} has a space or a ';' in it, or nothing; write '?' for those"
    if rule.calls not in _CALLS_OF_EFFECT[type(effect)]:
        return f"effect '{effect}' fits {_listed(_CALLS_OF_EFFECT[type(effect)])}"
    if rule.calls not in _CALLS_OF_MOMENT[type(moment)]:
        return f"moment '{moment}' fits {_listed(_CALLS_OF_MOMENT[type(moment)])}"
    return _oddity(rule)


def _oddity(rule: FaultRule) -> str:
    """Say what makes no sense beyond the two tables."""
    effect, moment = rule.effect, rule.moment
    if rule.calls is Calls.CLOCK and rule.glob != "*":
        return "the clock has no path, so its glob is '*'"
    if isinstance(moment, After) and str(effect) != "ENOSPC":
        return f"moment '{moment}' fits the effect ENOSPC"
    if rule.calls in {Calls.FSYNC, Calls.CHANGE} and str(effect) == "EIO":
        return "a failed fsync needs a policy, such as EIO:ext4"
    if isinstance(effect, Rot) and moment != ALWAYS:
        return "rot stays, so it has no moment"
    if isinstance(effect, StepBack) and not (isinstance(moment, Nth) and not moment.onwards):
        return "the clock steps back once, at a moment such as '#5'"
    return ""


def _listed(calls: frozenset[Calls]) -> str:
    return ", ".join(kind for kind in Calls if kind in calls)


def _calls(word: str) -> Calls:
    try:
        return Calls(word)
    except ValueError:
        known = ", ".join(Calls)
        raise HarnessError(f"calls {word!r} in a fault rule are none of {known}") from None
