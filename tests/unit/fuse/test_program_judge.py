"""The passes of the judge of a recorded program."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import count
from select import select
from typing import Any

import pytest

from oracles.history import Known
from oracles.violation import CheckFailed
from powercut.explorer.built_explorer import MOST_ENDLESS
from powercut.explorer.cause import NoGap
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.repair import OutOfTime
from powercut.explorer.ticker import Stopped
from powercut.explorer.verdicts import Exploration
from powercut.fuse import check_runs, model_searches, program_judge
from powercut.fuse.crash_search import Search, search
from powercut.fuse.disk_mount import MountWay
from powercut.fuse.found_image import Found, Rank
from powercut.fuse.image_check import Checked, CommandCheck, FilesCheck, file_content
from powercut.fuse.program_judge import ProgramJudge
from powercut.fuse.recording import Acknowledgement, Recording
from powercut.fuse.recovery_crashes import Recovery
from powercut.report.findings import endless_lines
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.journal_file import encode_journal
from sim.disk.crash.persistence import POSIX, PersistenceModel
from sim.disk.disk import Disk

FILES = 12
PASSED = Checked(None)


class _FirstBeforeLast:
    """Fails if the last file is there, and the first one is not."""

    def begin(self, folder: str) -> _FirstBeforeLast:
        assert folder
        return self

    def check(self, image: Image, entries: int) -> Checked:
        assert entries in {0, 1}
        files = image.files()
        if f"/{FILES}" in files and "/1" not in files:
            return Checked(CheckFailed("the first file is missing"))
        return Checked(None)


def many_files() -> Recording:
    return of_files(FILES)


def of_files(count: int) -> Recording:
    disk = Disk()
    process = Process(disk)
    for number in range(1, count + 1):
        process.close(process.open(f"/{number}", os.O_CREAT | os.O_WRONLY))
    ends = (Acknowledgement(len(disk.journal), "done"),)
    return Recording(("app",), "", "", "/disk", 0, ends, (), disk.journal)


def unknown_disk() -> Disk:
    """Return a disk that no crash of these programs leaves."""
    disk = Disk()
    Process(disk).mkdir("/unknown")
    return disk


def only_one_alone(images: Iterable[Found], most: int) -> list[Found]:
    return [each for each in images if each.rank is Rank.ONE_ALONE][:most]


def test_a_failure_that_loses_much_is_followed_by_those_that_lose_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(program_judge, "best", only_one_alone)
    checks = 400
    judge = ProgramJudge(many_files(), _FirstBeforeLast(), checks, 1)
    found = judge.judge([POSIX])["posix"]
    losses = [len(failure.crashes[0].survivors.lost) for failure in found.failures]
    assert max(losses) > FILES, "the second pass has found the failure"
    assert min(losses) <= 2
    assert judge.counts.checked <= checks + checks // 8


def _without_searches(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if not text.startswith("searching images: ")]


def test_each_part_of_the_work_is_shown() -> None:
    texts: list[str] = []
    judge = ProgramJudge(many_files(), _FirstBeforeLast(), 40, 1, show=texts.append)
    diagnose(judge.judge([POSIX]))
    assert "searching images: 1 of 1 model" in texts
    checks = [f"checking images: {done} of 40" for done in range(1, 41)]
    assert _without_searches(texts)[:40] == checks
    assert texts[-1] == "searching for missing barriers"


def test_a_long_search_of_one_model_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, tell = os.pipe()

    def slow_search(*arguments: Any) -> Search:
        assert select([shown], [], [], 30)[0], "nothing is shown during the search"
        return search(*arguments)

    def show(text: str) -> None:
        if text == "searching images: 0 of 1 model":
            os.write(tell, b".")

    monkeypatch.setattr(model_searches, "search", slow_search)
    ProgramJudge(many_files(), _FirstBeforeLast(), 1, 1, show=show).judge([POSIX])
    os.close(shown)
    os.close(tell)


def test_the_time_is_shown_that_long_checks_still_take(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count(0, 12)
    monkeypatch.setattr(check_runs, "monotonic", lambda: next(clock))
    texts: list[str] = []
    ProgramJudge(many_files(), _FirstBeforeLast(), 9, 1, show=texts.append).judge([POSIX])
    assert _without_searches(texts)[:9] == [
        "checking images: 1 of 9, about 2 minutes left (-n N checks fewer)",
        *(f"checking images: {done} of 9, about 1 minute left (-n N checks fewer)"
          for done in range(2, 7)),
        *(f"checking images: {done} of 9" for done in range(7, 10)),
    ]  # fmt: skip


def test_a_time_that_is_over_during_the_checks_leaves_the_results_so_far() -> None:
    done: list[str] = []
    judge = ProgramJudge(
        many_files(), _FirstBeforeLast(), 400, 1, show=done.append,
        is_over=lambda: len(_without_searches(done)) >= 40,
    )  # fmt: skip
    found = judge.judge([POSIX])["posix"]
    assert (found.states, found.stopped, found.exhaustive) == (40, True, False)
    assert judge.counts.checked == 40


def test_a_time_that_is_over_after_the_checks_ends_the_search_for_barriers() -> None:
    over: list[str] = []
    judge = ProgramJudge(many_files(), _FirstBeforeLast(), 400, 1, is_over=lambda: bool(over))
    verdicts = judge.judge([POSIX])
    assert not verdicts["posix"].stopped
    over.append("now")
    assert [cause.gap for cause in diagnose(verdicts).causes] == [NoGap.NOT_SEARCHED]
    with pytest.raises(OutOfTime):
        judge.violation(unknown_disk(), Known((), ()))


def test_a_time_that_is_over_ends_the_search_for_images_behind_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[Found] = []

    def behind(workload: object, model: str, failing: Iterable[Found]) -> Iterator[Found]:
        del workload, model
        for found in [*failing]:
            taken.append(found)
            yield found

    monkeypatch.setattr(program_judge, "behind_writes", behind)
    judge = ProgramJudge(many_files(), _FirstBeforeLast(), 400, 1, is_over=lambda: len(taken) > 2)
    found = judge.judge([POSIX])["posix"]
    assert found.stopped
    assert found.failures
    assert len(taken) == 3


class _Hangs:
    """Does not end if ``which`` is true for the paths of an image."""

    def __init__(self, which: Callable[[Collection[str]], bool]) -> None:
        self._which = which

    def begin(self, folder: str) -> _Hangs:
        assert folder
        return self

    def check(self, image: Image, entries: int) -> Checked:
        assert entries in {0, 1}
        if self._which(image.files()):
            return Checked(CheckFailed("it did not end"), is_endless=True)
        return Checked(None)


def test_a_pass_ends_after_some_checks_that_do_not_end() -> None:
    done: list[str] = []
    check = _Hangs(lambda files: "/3" in files)
    judge = ProgramJudge(many_files(), check, 400, 1, show=done.append)
    verdicts = judge.judge([POSIX])
    found = verdicts["posix"]
    assert len(found.failures) == found.endless == MOST_ENDLESS
    assert (found.exhaustive, found.stopped, found.gave_up) == (False, False, False)
    assert found.states < 400
    (line,) = endless_lines(diagnose(verdicts))
    assert line.startswith("note      the check did not end on 8 states, and was ended; the other")


def test_a_pass_whose_last_check_does_not_end_leaves_nothing_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def judged() -> Exploration:
        return ProgramJudge(of_files(2), _Hangs(lambda _: True), 400, 1).judge([POSIX])["posix"]

    monkeypatch.setattr(check_runs, "MOST_ENDLESS", 400)
    images = judged().states
    monkeypatch.setattr(check_runs, "MOST_ENDLESS", images)
    found = judged()
    assert (found.endless, found.exhaustive, found.states) == (0, True, images)
    monkeypatch.setattr(check_runs, "MOST_ENDLESS", images - 1)
    assert judged().endless == images - 1


def test_nothing_more_is_checked_after_many_checks_that_do_not_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check_runs, "MOST_ENDLESS_IN_ALL", 4)
    judge = ProgramJudge(many_files(), _Hangs(lambda files: "/3" in files), 400, 1)
    found = judge.judge([POSIX])["posix"]
    assert len(found.failures) == 4
    assert found.gave_up
    assert found.stopped
    assert judge.is_over(found)
    with pytest.raises(OutOfTime):
        judge.violation(unknown_disk(), Known((), ()))


def of_long_file() -> Recording:
    """A file of three blocks is written, and acknowledged, without a barrier."""
    process = Process(Disk())
    descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
    process.write(descriptor, b"long" * 3000)
    process.close(descriptor)
    journal = process.disk.journal
    ends = (Acknowledgement(len(journal), "done"),)
    return Recording(("app",), "", "", "/disk", 0, ends, (), journal)


def test_only_images_for_commands_are_limited_by_their_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(program_judge, "_FEWEST_CHECKS", 3)
    monkeypatch.setattr(program_judge, "_CHECKED_BYTES", 1)
    recording = of_long_file()
    command = ProgramJudge(recording, _Always(PASSED), None, 1)
    command.judge([POSIX])
    compared = ProgramJudge(recording, FilesCheck(recording), None, 1)
    assert compared.judge([POSIX])["posix"].failures
    assert command.counts.checked == 3
    assert compared.counts.checked == compared.counts.images == command.counts.images > 3
    wanted = ProgramJudge(recording, _Always(PASSED), 4, 1)
    wanted.judge([POSIX])
    assert wanted.counts.checked == 4, "the user has given the number"


def test_comparisons_are_shown_and_stopped() -> None:
    texts: list[str] = []
    recording = of_long_file()
    judge = ProgramJudge(
        recording, FilesCheck(recording), 400, 1, show=texts.append,
        is_over=lambda: len(_without_searches(texts)) >= 3,
    )  # fmt: skip
    assert judge.judge([POSIX])["posix"].stopped
    assert [text.partition(" of ")[0] for text in _without_searches(texts)] == [
        f"checking images: {done}" for done in (1, 2, 3)
    ]


def test_a_long_content_is_equal_from_blocks_and_from_a_disk() -> None:
    recording = of_long_file()
    check = FilesCheck(recording)
    content = b"long" * 3000
    blocks = {index: content[start : start + 4096] for index, start in enumerate((0, 4096, 8192))}
    assert check.violation({"/f": file_content(len(content), blocks)}, 1) is None
    assert check.violation({"/f": file_content(len(content), {0: blocks[0]})}, 1) is not None
    assert check.violation({"/f": file_content(len(content) - 1, blocks)}, 1) is not None


class _Always:
    """Gives every image the same result."""

    def __init__(self, result: Checked) -> None:
        self._result = result

    def begin(self, folder: str) -> _Always:
        assert folder
        return self

    def check(self, image: Image, entries: int) -> Checked:
        del image, entries
        return self._result


NOT_SAMPLED = frozenset[str]()


def recovered(
    monkeypatch: pytest.MonkeyPatch,
    checks: int,
    sampled: frozenset[str] = NOT_SAMPLED,
    result: Checked = PASSED,
    is_interrupted: bool = False,
) -> tuple[int, bool]:
    """Judge a recording whose checks write nothing; return how many are crashed, and whether the
    verdict is exhaustive.
    """
    recording = of_files(2)
    nested = CommandCheck("true", 1, recording, MountWay.ROOT)
    judge = ProgramJudge(recording, _Always(result), checks, 1, nested)
    crashed: list[object] = []

    def recover(
        images: Sequence[tuple[Image, int, list[PersistenceModel]]], check: CommandCheck
    ) -> dict[int, Recovery]:
        assert check is nested
        if is_interrupted:
            raise Stopped
        crashed.extend(images)
        recovery = Recovery(encode_journal(recording.journal), {"posix": []}, sampled)
        return dict.fromkeys(range(len(images)), recovery)

    monkeypatch.setattr(judge, "_recover", recover)
    verdict = judge.judge([POSIX])["posix"]
    return len(crashed), verdict.exhaustive


def test_a_verdict_is_exhaustive_if_every_check_that_passes_is_crashed_in_all_ways(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert recovered(monkeypatch, 1000) == (8, True)
    assert recovered(monkeypatch, 10) == (1, False)
    assert recovered(monkeypatch, 1000, sampled=frozenset({"posix"})) == (8, False)
    assert recovered(monkeypatch, 1000, is_interrupted=True) == (0, False)


def test_a_flaky_check_is_not_crashed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert recovered(monkeypatch, 1000, result=Checked(None, is_flaky=True))[0] == 0
