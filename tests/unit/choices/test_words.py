"""Text for a run: like the real thing, and awkward, for one choice each."""

from __future__ import annotations

from sim.choices import PlainChoices, RecordingChoices, SeededChoices
from sim.words import AWKWARD, POOLS, Words, pool


def test_the_plainest_text_is_a_name() -> None:
    words = Words(PlainChoices())
    assert words.text(PlainChoices()).isalpha()
    assert words.name(PlainChoices()) == words.text(PlainChoices())


def test_a_text_costs_one_choice() -> None:
    words = Words(PlainChoices())
    recording = RecordingChoices(SeededChoices(5))
    words.text(recording)
    assert len(recording.chosen) == 1


def test_every_pool_holds_awkward_text_and_a_very_long_one() -> None:
    for seed in range(POOLS):
        texts = pool(seed)
        assert set(AWKWARD) <= set(texts)
        assert max(map(len, texts)) > 4_000


def test_awkward_text_has_what_breaks_programs() -> None:
    everything = "".join(AWKWARD)
    assert "" in AWKWARD
    for character in '\x00\n\r"\\\x1b\u2028\ufeff':
        assert character in everything
    assert any(ord(character) > 0xFFFF for character in everything)


def test_names_are_plain_and_there_are_few_of_them() -> None:
    words, choices = Words(PlainChoices()), SeededChoices(2)
    assert len({words.name(choices) for _ in range(100)}) <= 8
