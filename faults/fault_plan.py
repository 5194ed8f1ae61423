"""A fault plan: the faults of a run, as plain data that prints on one line and parses back.

``fsync */events.jsonl #3 EIO:ext4; off write * after 40KiB ENOSPC`` has two rules, of which the
second is switched off. A rule reads ``[off] CALLS GLOB [CONDITION] EFFECT``. ``GLOB`` is a
pattern of ``fnmatch`` over the path by which the program made the call; its ``*`` matches ``/``
as well. ``faults/injector.py`` carries a plan out.

=================== ==================================================================
condition           the rule strikes
=================== ==================================================================
``#3``              at the third call that it matches
``#3+``             from the third such call on; ``#1+`` is the default and not printed
``after 40KiB``     once such writes have grown their files by 40 KiB
``from 12``         from mutating operation 12 of each lifetime on
``above 16``        at an open, while at least 16 descriptors are open
=================== ==================================================================

=================== ==================================================================
effect              consequence
=================== ==================================================================
``ENOSPC``          the call fails with this errno and changes nothing
``EIO:ext4``        fsync fails under a policy: ext4, xfs, ext4-journal, btrfs or lying
``short:10B``       the call transfers at most 10 bytes
``rot:4``           sector 4 of the file reads damaged, always in the same way
``misdirected:4``   the data goes to sector 4 of the file instead of its own place
``back:90s``        the wall clock steps back
=================== ==================================================================
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import ClassVar, Final, TypeAlias, TypeVar

from faults.call_kind import ALL_CALLS, CALLS_FAILING_WITH, ERRNOS, MUTATING, CallKind
from sim.disk.cache.operation import SyncFailure
from sim.errors import HarnessError

_SIZES: Final = {"MiB": 1 << 20, "KiB": 1 << 10, "B": 1}
_MOST_DIGITS: Final = 100
_DURATIONS_NS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}

# -- conditions ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NthCall:
    """Strike at matching call ``first``, counted from 1; with ``onwards`` at all later ones too."""

    fits: ClassVar = ALL_CALLS
    first: int = 1
    onwards: bool = False

    def __post_init__(self) -> None:
        if self.first < 1:
            raise HarnessError(f"calls count from 1, got first={self.first}")

    def __str__(self) -> str:
        return f"#{self.first}{'+' * self.onwards}"


@dataclass(frozen=True, slots=True)
class AfterGrowth:
    """Strike once matching writes have taken ``room_bytes`` of new space."""

    fits: ClassVar = frozenset({CallKind.WRITE, CallKind.FSYNC, CallKind.CLOSE})
    room_bytes: int

    def __str__(self) -> str:
        return f"after {_printed(self.room_bytes, _SIZES)}"


@dataclass(frozen=True, slots=True)
class FromOperation:
    """Strike at every matching operation of a lifetime from number ``operation`` on."""

    fits: ClassVar = MUTATING
    operation: int

    def __str__(self) -> str:
        return f"from {self.operation}"


@dataclass(frozen=True, slots=True)
class AboveDescriptors:
    """Strike while at least ``descriptors`` are open."""

    fits: ClassVar = frozenset({CallKind.OPEN})
    descriptors: int

    def __str__(self) -> str:
        return f"above {self.descriptors}"


Condition: TypeAlias = "NthCall | AfterGrowth | FromOperation | AboveDescriptors"
ALWAYS: Final = NthCall(1, onwards=True)


# -- effects -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Refuse:
    """Fail the call with ``errno``; it changes nothing."""

    errno: int

    def __post_init__(self) -> None:
        if self.errno not in ERRNOS.values():
            raise HarnessError(f"errno={self.errno} is none of {', '.join(ERRNOS)}")

    @property
    def fits(self) -> frozenset[CallKind]:
        """The calls that can fail with this errno."""
        return CALLS_FAILING_WITH[self.errno]

    def __str__(self) -> str:
        return errno.errorcode[self.errno]


@dataclass(frozen=True, slots=True)
class FailSync:
    """Fail the barrier under ``policy``; nothing becomes durable."""

    fits: ClassVar = frozenset({CallKind.FSYNC})
    policy: SyncFailure

    def __str__(self) -> str:
        return f"EIO:{self.policy}"


@dataclass(frozen=True, slots=True)
class ShortTransfer:
    """Transfer at most ``most_bytes``, at least 1."""

    fits: ClassVar = frozenset({CallKind.WRITE, CallKind.READ})
    most_bytes: int

    def __post_init__(self) -> None:
        if self.most_bytes < 1:
            raise HarnessError(f"a short call transfers a byte, got most_bytes={self.most_bytes}")

    def __str__(self) -> str:
        return f"short:{_printed(self.most_bytes, _SIZES)}"


@dataclass(frozen=True, slots=True)
class Rot:
    """Damage every read of ``sector`` (512 bytes, from 0) of the file."""

    fits: ClassVar = frozenset({CallKind.READ})
    sector: int

    def __str__(self) -> str:
        return f"rot:{self.sector}"


@dataclass(frozen=True, slots=True)
class Misdirect:
    """Show the data of the write at ``sector`` of the file, and old data at its own place."""

    fits: ClassVar = frozenset({CallKind.WRITE})
    sector: int

    def __str__(self) -> str:
        return f"misdirected:{self.sector}"


@dataclass(frozen=True, slots=True)
class StepBack:
    """Set the wall clock back by ``back_ns``."""

    fits: ClassVar = frozenset({CallKind.CLOCK})
    back_ns: int

    def __str__(self) -> str:
        return f"back:{_printed(self.back_ns, _DURATIONS_NS)}"


Effect: TypeAlias = "Refuse | FailSync | ShortTransfer | Rot | Misdirect | StepBack"

_EXAMPLES: Final[tuple[Effect, ...]] = (
    *(Refuse(number) for number in ERRNOS.values()),
    *(FailSync(policy) for policy in SyncFailure),
    ShortTransfer(10),
    Rot(4),
    Misdirect(4),
    StepBack(90_000_000_000),
)


# -- rule and plan --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FaultRule:
    """Inject ``effect`` into the calls on paths that match ``glob``, under ``condition``.

    Raises ``HarnessError`` for a combination that has no meaning.
    """

    calls: CallKind
    glob: str
    effect: Effect
    condition: Condition = ALWAYS
    on: bool = True

    def __post_init__(self) -> None:
        for invalid, complaint in _complaints(self.calls, self.glob, self.effect, self.condition):
            if invalid:
                raise HarnessError(f"fault rule '{self}': {complaint}")

    def __str__(self) -> str:
        condition = "" if self.condition == ALWAYS else f" {self.condition}"
        off = "" if self.on else "off "
        return f"{off}{self.calls} {self.glob}{condition} {self.effect}"

    @classmethod
    def parse(cls, text: str) -> FaultRule:
        """Return the rule that prints as ``text``; ``HarnessError`` names the malformed piece."""
        pieces = text.split()
        on = pieces[:1] != ["off"]
        if not on:
            del pieces[0]
        if len(pieces) < 3:
            raise HarnessError(
                f"fault rule {text.strip()!r} needs calls, a glob and an effect, "
                "as in 'write *.jsonl #2 EIO'"
            )
        calls, glob, *condition, effect = pieces
        return cls(
            _member(CallKind, calls, "calls"), glob, _effect(effect), _condition(condition), on
        )

    def matches(self, calls: CallKind, path: str) -> bool:
        """Return whether the rule counts a call of this kind on ``path``."""
        kind = calls is self.calls or (self.calls is CallKind.CHANGE and calls in MUTATING)
        return kind and (self.glob == "*" or fnmatchcase(path, self.glob))

    def switched(self, *, on: bool) -> FaultRule:
        """Return the same rule, on or off."""
        return replace(self, on=on)


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """Rules in order; of two that strike at one call, the first is applied first."""

    rules: tuple[FaultRule, ...] = ()

    def __str__(self) -> str:
        return "; ".join(str(rule) for rule in self.rules)

    @classmethod
    def parse(cls, text: str) -> FaultPlan:
        """Return the plan that prints as ``text``; an empty text is a plan without a fault.

        Raises ``HarnessError``, naming the malformed piece.
        """
        if not text.strip():
            return cls()
        return cls(tuple(FaultRule.parse(piece) for piece in text.split(";")))


def _complaints(
    calls: CallKind, glob: str, effect: Effect, condition: Condition
) -> Iterable[tuple[bool, str]]:
    """Return each requirement on a rule: whether it is violated, and the sentence that says so."""
    return (
        (
            not glob or ";" in glob or glob.split() != [glob],
            f"glob {glob!r} is empty or has a space or a ';' in it; write '?' for such a character",
        ),
        (
            calls in {CallKind.FSYNC, CallKind.CHANGE} and str(effect) == "EIO",
            "a failed fsync needs a policy, such as EIO:ext4",
        ),
        (calls not in condition.fits, f"condition '{condition}' fits {_listed(condition.fits)}"),
        (
            calls not in effect.fits,
            f"effect '{effect}' fits {_listed(effect.fits)}; {calls} takes {_effects_of(calls)}",
        ),
        (
            calls is CallKind.CLOCK and glob != "*",
            "the clock has no path, so its glob is '*'",
        ),
        (
            isinstance(condition, AfterGrowth) and str(effect) != "ENOSPC",
            f"condition '{condition}' fits the effect ENOSPC",
        ),
        (
            isinstance(effect, Rot) and condition != ALWAYS,
            "rot is permanent, so it has no condition",
        ),
        (
            isinstance(effect, StepBack)
            and not (isinstance(condition, NthCall) and not condition.onwards),
            "the clock steps back once, at a reading such as '#5'",
        ),
    )


# -- the grammar of one word ---------------------------------------------------------------


def _condition(pieces: list[str]) -> Condition:
    match pieces:
        case []:
            return ALWAYS
        case [word] if word.startswith("#"):
            first = _number(word[1:].removesuffix("+"), "count", 1)
            return NthCall(first, word.endswith("+"))
        case ["after", word]:
            return AfterGrowth(_amount(word, _SIZES, "size"))
        case ["from", word]:
            return FromOperation(_number(word, "operation", 1))
        case ["above", word]:
            return AboveDescriptors(_number(word, "number of descriptors"))
    raise HarnessError(
        f"{' '.join(pieces)!r} in a fault rule is no condition; write '#3', '#3+', "
        "'after 40KiB', 'from 12' or 'above 16'"
    )


def _effect(word: str) -> Effect:
    name, colon, value = word.partition(":")
    match name:
        case _ if name in ERRNOS and not colon:
            return Refuse(ERRNOS[name])
        case "EIO":
            return FailSync(_member(SyncFailure, value, "fsync failure policy"))
        case "short":
            return ShortTransfer(_amount(value, _SIZES, "size"))
        case "rot":
            return Rot(_number(value, "sector"))
        case "misdirected":
            return Misdirect(_number(value, "sector"))
        case "back":
            return StepBack(_amount(value, _DURATIONS_NS, "duration"))
    raise HarnessError(
        f"{word!r} in a fault rule is no effect; write {', '.join(ERRNOS)}, EIO:policy, "
        "short:10B, rot:4, misdirected:4 or back:90s"
    )


_Enum = TypeVar("_Enum", CallKind, SyncFailure)


def _member(kind: type[_Enum], word: str, role: str) -> _Enum:
    try:
        return kind(word)
    except ValueError:
        raise HarnessError(
            f"{role} {word!r} in a fault rule is none of {', '.join(kind)}"
        ) from None


def _number(word: str, role: str, least: int = 0) -> int:
    if not _is_number(word) or int(word) < least:
        raise HarnessError(
            f"{role} {word!r} in a fault rule is not a whole number from {least}"
            f" with at most {_MOST_DIGITS} digits"
        )
    return int(word)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= _MOST_DIGITS


def _amount(word: str, units: dict[str, int], role: str) -> int:
    digits = word.rstrip("MKiBmuns")
    factor = units.get(word[len(digits) :])
    if factor is None or not _is_number(digits):
        known = ", ".join(units)
        raise HarnessError(f"{role} {word!r} in a fault rule is not a whole number of {known}")
    return int(digits) * factor


def _printed(amount: int, units: dict[str, int]) -> str:
    """Write an amount in its largest unit without a remainder: ``40KiB``, ``1500us``."""
    unit = next(unit for unit, factor in units.items() if amount % factor == 0)
    return f"{amount // units[unit]}{unit}"


@cache
def _effects_of(calls: CallKind) -> str:
    """List an example of each effect that fits ``calls``."""
    return ", ".join(str(effect) for effect in _EXAMPLES if calls in effect.fits)


def _listed(calls: frozenset[CallKind]) -> str:
    return ", ".join(kind for kind in CallKind if kind in calls)
