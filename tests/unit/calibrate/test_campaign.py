"""A campaign records programs in turn, then shares the time that is left among reductions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from powercut.calibrate.campaign import Campaign, Records
from powercut.calibrate.row import ObservedOutcome, Program, Row
from powercut.calibrate.tally import Tally

FOREIGN = {"f": "Z10"}


class Kernel:
    """Records nothing: each program leaves one tree, a foreign one if it makes these calls."""

    def __init__(self, fs: str, *needed: str) -> None:
        self.fs = fs
        self.needed = needed
        self.recorded: list[tuple[int, int]] = []

    def record(self, program: Program, seed: int, most_images: int = 30) -> Row:
        self.recorded.append((seed, most_images))
        names = [call[0] for call in program.calls]
        is_foreign = bool(self.needed) and set(self.needed) <= set(names)
        return Row(
            fs=self.fs,
            kernel="6.18.44",
            setup=[],
            ops=[list(call) for call in program.calls if call[0] == "bg"],
            results=[None for name in names if name == "bg"],
            marks=[0 for name in names if name == "bg"],
            log=[],
            images=1,
            mount_failed=[],
            seen=[ObservedOutcome(k=0, out=FOREIGN if is_foreign else {}, n=1, how=[])],
            seed=seed,
            seconds=0.1,
        )


def ticks() -> Iterator[float]:
    """Yield the time: each look at the clock takes a second."""
    return map(float, count())


def campaign(tally: Tally, rows: list[Row], **recorders: Records) -> Campaign:
    clock = ticks()
    return Campaign(recorders, tally, lambda: next(clock), rows.append)


def test_file_systems_take_turns_with_the_same_programs_until_the_time_is_over() -> None:
    tally, rows = Tally(), list[Row]()
    campaign(tally, rows, ext4=Kernel("ext4"), xfs=Kernel("xfs")).run(5, 9)
    found = [(row["fs"], row["seed"]) for row in rows]
    assert found == [("ext4", 5), ("xfs", 5), ("ext4", 6), ("xfs", 6), ("ext4", 7), ("xfs", 7)]
    assert {name: counts.programs for name, counts in tally.counts.items()} == {
        "ext4": 3,
        "xfs": 3,
    }


def test_contradictions_are_reduced_with_more_images_and_within_their_time() -> None:
    tally, rows = Tally(), list[Row]()
    kernel = Kernel("ext4", "bg")
    run = campaign(tally, rows, ext4=kernel)
    run.run(0, 40)
    (found, programs), *others = run.contradictions()
    assert not others
    assert programs == len(tally.contradictions)
    assert [call[0] for call in found.row["ops"]] == ["bg"]
    again = [images for _, images in kernel.recorded if images != 30]
    assert again
    assert set(again) == {100}
    assert len(again) <= 40


def test_campaign_that_is_interrupted_has_its_contradictions() -> None:
    tally, rows = Tally(), list[Row]()
    run = campaign(tally, rows, ext4=Kernel("ext4", "bg"))
    run._record(0, 20)
    assert [size for _, size in run.contradictions()] == [len(tally.contradictions)]


def test_reductions_share_the_time_that_is_left_evenly() -> None:
    kernels = {name: Kernel(name, "bg") for name in ("ext4", "xfs", "btrfs")}
    campaign(Tally(), [], **kernels).run(0, 40)
    recorded = [[images for _, images in kernel.recorded] for kernel in kernels.values()]
    assert [images.count(100) for images in recorded] == [2, 2, 2]
