"""Sample texts: realistic ones and awkward ones, one choice each."""

from __future__ import annotations

from powercut.fuzz.sample_texts import AWKWARD, POOLS, pool, text
from sim.choices import PlainChoices, RecordingChoices, SeededChoices


def test_the_plainest_text_is_a_name() -> None:
    assert text(PlainChoices()).isalpha()


def test_a_text_costs_one_choice() -> None:
    recording = RecordingChoices(SeededChoices(5))
    text(recording)
    assert len(recording.chosen) == 1


def test_every_text_can_be_chosen() -> None:
    choices = SeededChoices(1)
    chosen = {text(choices) for _ in range(2_000)}
    assert set(AWKWARD) <= chosen
    assert all(set(pool(seed)) <= chosen for seed in range(POOLS))


def test_every_pool_has_a_very_long_text() -> None:
    for seed in range(POOLS):
        assert max(map(len, pool(seed))) > 4_000


def test_awkward_texts_contain_the_characters_that_break_programs() -> None:
    everything = "".join(AWKWARD)
    assert "" in AWKWARD
    for character in '\x00\n\r"\\\x1b\u2028\ufeff':
        assert character in everything
    assert any(ord(character) > 0xFFFF for character in everything)
