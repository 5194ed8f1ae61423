"""Sample texts: realistic names, prompts and mails, and awkward texts that break programs.

A text is one choice among four pools, which Faker makes once, each in another language. The
plainest texts come first, so that reduction ends at a readable name.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from faker import Faker

from sim.choices import Choices
from sim.loop.sandbox import SANDBOX

POOLS: Final = 4
"""The number of pools; the seed of a pool is below it."""

AWKWARD: Final = (
    "",
    " ",
    "two\nlines\r\nand a third",
    'she said "no", \\"never\\", and left\\',
    "a\x00NUL inside",
    "\x1b[31mred\x1b[0m\t\x7f\x85\u2028\u2029",
    "na\u00efve caf\u00e9 \u2192 cafe\u0301",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f525\U0001f3f4\u200d\u2620\ufe0f",
    "\u0627\u0644\u0633\u0644\u0627\u0645 \u202eright to left\u202c",
    '{"v":1,"seq":1,"event":"agent.created"}',
    "\ufeffbyte order mark, \ufffd, \U0010ffff",
)
"""Texts that are known to break parsers, terminals or file names."""

_LOCALES: Final = ("en_US", "de_DE", "ja_JP", "ru_RU")
_LONG_CHARACTERS: Final = 5_000


@lru_cache(maxsize=POOLS)
def pool(seed: int) -> tuple[str, ...]:
    """Return the texts of one pool, plainest first; ``seed`` is below ``POOLS``."""
    faker = Faker(_LOCALES[seed % len(_LOCALES)])
    faker.seed_instance(seed)
    names = tuple(str(faker.first_name()) for _ in range(8))
    prompts = tuple(str(faker.sentence()) for _ in range(6))
    mails = tuple(
        f"From: {faker.name()} <{faker.email()}>\nSubject: {faker.sentence()}\n\n{faker.text()}"
        for _ in range(4)
    )
    paragraph = str(faker.paragraph()) + "\n"
    very_long = paragraph * (_LONG_CHARACTERS // len(paragraph) + 1)
    return (*names, *prompts, *mails, *AWKWARD, very_long)


@lru_cache(maxsize=1)
def _texts() -> tuple[str, ...]:
    """Return the texts of all pools, the plainest first."""
    # Faker reads its own files and the date, on which these texts do not depend.
    with SANDBOX.suspended():
        pools = [pool(seed) for seed in range(POOLS)]
    return tuple(dict.fromkeys(text for rank in zip(*pools, strict=True) for text in rank))


def text(choices: Choices, label: str = "text") -> str:
    """Choose a name, a prompt, a mail, or an awkward text."""
    return choices.pick(label, _texts())
