"""Fresh ids that repeat from run to run: a generator seeded by the choices of the run."""

from __future__ import annotations

from typing import Final

from sim.choices import Choices, SeededChoices

_MAX_SEED: Final = (1 << 16) - 1
_UUID_BITS: Final = 128


class SimulatedIds:
    """The ids of one world, unique across its lifetimes."""

    __slots__ = ("_source",)

    def __init__(self, choices: Choices) -> None:
        self.choose(choices)

    def choose(self, choices: Choices) -> None:
        """Draw a new seed, which determines all later ids."""
        self._source = SeededChoices(choices.integer("ids", 0, _MAX_SEED))

    def uuid_hex(self) -> str:
        """Return a fresh UUID (version 4, RFC 9562) as 32 lower-case hex digits."""
        bits = self._bits(_UUID_BITS)
        bits = bits & ~(0xF << 76) | 0x4 << 76
        bits = bits & ~(0x3 << 62) | 0x2 << 62
        return f"{bits:032x}"

    def random_hex(self, digits: int) -> str:
        """Return ``digits`` random lower-case hex digits."""
        return f"{self._bits(4 * digits):0{digits}x}"

    def _bits(self, count: int) -> int:
        bits = 0
        for _ in range(0, count, 64):
            bits = bits << 64 | self._source.integer("bits", 0, (1 << 64) - 1)
        return bits & ((1 << count) - 1)
