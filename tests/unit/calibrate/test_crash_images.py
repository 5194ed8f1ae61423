"""Which crash images a log of block requests has."""

from __future__ import annotations

from powercut.calibrate.crash_images import CrashImage, crash_images
from powercut.calibrate.write_log import Flush, LogEntry, Survivors, Write
from sim.choices import PlainChoices, SeededChoices

A, B, C = Write(0, 512), Write(512, 512), Write(0, 512)


def _survivors(images: list[CrashImage]) -> set[Survivors]:
    return {image.survivors for image in images}


def test_every_subset_of_two_writes_is_an_image() -> None:
    images = crash_images([A, B], [], PlainChoices(), 100)
    assert _survivors(images) == {
        Survivors(-1),
        Survivors(-1, (0,)),
        Survivors(-1, (1,)),
        Survivors(-1, (0, 1)),
    }


def test_flushed_writes_are_in_every_later_image() -> None:
    images = crash_images([A, Flush(), B], [], PlainChoices(), 100)
    last = {i.survivors for i in images if 3 in i.positions}
    assert last == {Survivors(-1, (0,)), Survivors(1, (2,))}
    # Position 2 has the content of position 1 with the write: one image of both.
    assert [sorted(i.positions) for i in images if i.survivors == Survivors(-1, (0,))] == [
        [1, 2, 3]
    ]


def test_write_that_is_overwritten_makes_no_further_image() -> None:
    images = crash_images([A, C], [], PlainChoices(), 100)
    # A alone, C (with or without A), nothing.
    assert len(images) == 3


def test_image_with_a_write_in_two_places_differs_from_one_with_it_in_one() -> None:
    log: list[LogEntry] = [Write(0, 1024), Write(512, 512)]
    # Neither, the first, the first torn, the second, both.
    assert len(crash_images(log, [], PlainChoices(), 100)) == 5


def test_last_write_is_torn_between_sectors() -> None:
    images = crash_images([Write(0, 4096)], [], PlainChoices(), 100)
    assert Survivors(-1, (0,), (0, 512)) in _survivors(images)


def test_sample_has_the_complete_images_of_marks_and_no_more_than_asked_for() -> None:
    log: list[LogEntry] = [Write(4096 * i, 512) for i in range(40)]
    marks = [4, 13, 22]
    everything = crash_images(log, marks, SeededChoices(1), 10_000)
    sample = crash_images(log, marks, SeededChoices(1), 9)
    assert len(everything) > 900
    assert len(sample) == 9
    assert _survivors(sample) < _survivors(everything)
    assert _survivors(sample) > {Survivors(-1, tuple(range(mark))) for mark in (*marks, 40)}


def test_an_image_is_complete_where_it_has_every_write_or_no_unflushed_one() -> None:
    log: list[LogEntry] = [Write(0, 1024), B]
    complete = {i.survivors: i.complete for i in crash_images(log, [], PlainChoices(), 100)}
    assert complete == {
        Survivors(-1): {0, 1, 2},
        Survivors(-1, (0,)): {1},
        Survivors(-1, (0,), (0, 512)): set(),
        Survivors(-1, (1,)): set(),
        Survivors(-1, (0, 1)): {2},
    }


def test_images_of_more_than_four_writes_lack_or_have_one() -> None:
    log: list[LogEntry] = [Write(4096 * i, 512) for i in range(6)]
    found = _survivors(crash_images(log, [], PlainChoices(), 1000))
    assert Survivors(-1, (0, 1, 2, 3, 5)) in found
    assert Survivors(-1, (4,)) in found
