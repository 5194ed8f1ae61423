"""Choices answer the simplest first, repeat by seed and by replay, and report a divergence."""

from __future__ import annotations

import pytest

from sim.choices import (
    Chosen,
    Diverged,
    PlainChoices,
    RecordingChoices,
    ReplayChoices,
    SeededChoices,
)


def test_plain_choices_are_always_the_simplest() -> None:
    plain = PlainChoices()
    assert plain.integer("faults", 3, 9) == 3
    assert plain.pick("order", ("first", "second")) == "first"


def test_a_seed_gives_the_same_answers_on_every_machine() -> None:
    seeded = SeededChoices(7)
    assert [seeded.integer("n", 0, 999) for _ in range(6)] == [389, 16, 900, 582, 452, 249]


def test_seeded_answers_reach_both_ends_of_the_range_and_nothing_beyond() -> None:
    seeded = SeededChoices(1)
    assert {seeded.integer("n", 2, 5) for _ in range(200)} == {2, 3, 4, 5}


def test_neighbouring_seeds_give_unrelated_answers() -> None:
    firsts = [SeededChoices(seed).integer("n", 0, 1_000_000) for seed in range(50)]
    assert len(set(firsts)) == 50
    assert firsts != sorted(firsts)


def test_a_recording_replays_to_the_same_answers() -> None:
    recording = RecordingChoices(SeededChoices(3))
    asked = [recording.integer("a", 0, 10), recording.pick("b", (1, 2, 4))]
    replay = ReplayChoices(recording.chosen)
    assert [replay.integer("a", 0, 10), replay.pick("b", (1, 2, 4))] == asked
    assert replay.unused == 0


def test_a_recording_is_appended_to_the_given_list() -> None:
    chosen: list[Chosen] = []
    RecordingChoices(PlainChoices(), chosen).integer("a", 2, 10)
    assert chosen == [Chosen("a", 2, 10, 2)]


def test_replay_passes_over_answers_to_questions_that_are_not_asked() -> None:
    replay = ReplayChoices([Chosen(label, 0, 9, number) for number, label in enumerate("abcb")])
    assert [replay.integer("b", 0, 9), replay.integer("b", 0, 9)] == [1, 3]
    assert replay.unused == 2


@pytest.mark.parametrize(("label", "high"), [("other", 10), ("a", 11)], ids=["label", "range"])
def test_replay_reports_a_question_that_was_not_recorded(label: str, high: int) -> None:
    replay = ReplayChoices([Chosen("a", 0, 10, 4), Chosen("a", 0, 10, 5)])
    replay.integer("a", 0, 10)
    with pytest.raises(Diverged) as diverged:
        replay.integer(label, 0, high)
    assert diverged.value.position == 1
    assert diverged.value.asked == f"{label}[0..{high}]"
    assert diverged.value.recorded == "a[0..10]"


def test_replay_never_goes_back_to_an_answer_that_it_passed_over() -> None:
    replay = ReplayChoices([Chosen("a", 0, 9, 1), Chosen("b", 0, 9, 2)])
    replay.integer("b", 0, 9)
    with pytest.raises(Diverged, match=r"choice 2: asked=a\[0\.\.9\] recorded=nothing more"):
        replay.integer("a", 0, 9)
