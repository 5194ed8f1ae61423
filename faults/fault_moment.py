"""When a fault rule strikes, among the calls that it matches: one small value per way.

==============  ======================================================================
``#3``          at the third such call
``#3+``         from the third such call on; ``#1+`` goes without saying
``after 40KiB`` once such writes have grown their files by so much
``from 12``     from mutating operation 12 of each lifetime on
``above 16``    at an open, while so many descriptors are open
==============  ======================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from faults.fault_units import number, size_bytes, size_word
from sim.errors import HarnessError


@dataclass(frozen=True, slots=True)
class Nth:
    """At matching call ``first``, from 1; with ``onwards`` at all later ones too."""

    first: int = 1
    onwards: bool = False

    def __post_init__(self) -> None:
        if self.first < 1:
            raise HarnessError(f"calls count from 1, got first={self.first}")

    def __str__(self) -> str:
        return f"#{self.first}{'+' * self.onwards}"


@dataclass(frozen=True, slots=True)
class After:
    """Once matching writes have taken ``room_bytes`` of new space."""

    room_bytes: int

    def __str__(self) -> str:
        return f"after {size_word(self.room_bytes)}"


@dataclass(frozen=True, slots=True)
class From:
    """At every operation of a lifetime from number ``operation`` on."""

    operation: int

    def __str__(self) -> str:
        return f"from {self.operation}"


@dataclass(frozen=True, slots=True)
class Above:
    """While ``descriptors`` are open already."""

    descriptors: int

    def __str__(self) -> str:
        return f"above {self.descriptors}"


Moment: TypeAlias = "Nth | After | From | Above"
ALWAYS = Nth(1, onwards=True)


def parse_moment(text: str) -> Moment:
    """Read what ``str`` wrote; ``HarnessError`` names the piece that is wrong."""
    match text.split():
        case []:
            return ALWAYS
        case [word] if word.startswith("#"):
            count = word[1:].removesuffix("+")
            return Nth(number(count, "count", 1), word.endswith("+"))
        case ["after", word]:
            return After(size_bytes(word))
        case ["from", word]:
            return From(number(word, "operation", 1))
        case ["above", word]:
            return Above(number(word, "number of descriptors"))
    raise HarnessError(
        f"{text!r} in a fault rule is no moment; write '#3', '#3+', 'after 40KiB', "
        "'from 12' or 'above 16'"
    )
