"""Stores to mapped memory after which the program goes on before the kernel writes their pages.

A kill does not lose them, though the disk that is recorded lacks them until then.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from oracles.violation import CheckFailed
from powercut.explorer.cause import Diagnosis, NoGap
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.missing_barrier import Gap
from powercut.explorer.unwritten_stores import UnsyncedStores
from powercut.fuse.image_check import Checked
from powercut.fuse.program_judge import ProgramJudge
from powercut.fuse.recording import (
    Acknowledgement,
    Recording,
    load_recording,
    save_recording,
)
from powercut.report.findings import cause_text, finding_lines
from powercut.report.repair import repair_lines
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS
from sim.disk.disk import Disk
from tests.unit.fuse.recorded import needs_mounts, powercut_in

STORES = """
import mmap, os
pages = mmap.mmap(os.open("f", os.O_RDWR), 8192)
pages[10:11] = pages[5000:5001] = b"n"
{barrier}
os.write(1, b"saved\\n")
"""
PARTIAL = "pages.flush(0, 4096)"
CHECK = 'grep -q saved "$POWERCUT_ACKS" || exit 0; test "$(tr -cd n < f | wc -c)" = 2'
CAUSE = (
    "no msync (of all these pages) or fsync of /f between its stores to mapped memory and ack 1 "
    "(saved); if they come after it, a kill loses them too"
)
UNCHECKED = (
    "repair    cannot be checked, because a store to mapped memory is not seen before the kernel "
    "writes its page"
)


class _Counter:
    """Fails unless /f has the number of values that were saved, or one more."""

    def begin(self, folder: str) -> _Counter:
        assert folder
        return self

    def check(self, image: Image, entries: int) -> Checked:
        value = image.files()["/f"]
        if value in {b"%d" % entries, b"%d" % (entries + 1)}:
            return Checked(None)
        return Checked(CheckFailed(f"/f is {value.decode()}"))


def judged(
    writes: Sequence[tuple[str, bytes]],
    saved: Sequence[int],
    mapped: tuple[int, ...],
    before: bytes = b"0",
) -> Diagnosis:
    """Judge a program whose writes are these, with acknowledgements after ``saved`` operations."""
    process = Process(Disk())
    for path, content in (("/f", before), ("/g", b"0")):
        process.write(process.open(path, os.O_CREAT | os.O_WRONLY), content)
    disk = Disk(process.disk.unmounted())
    process = Process(disk)
    for path, data in writes:
        process.pwrite(process.open(path, os.O_WRONLY), data, 0)
    ends = tuple(Acknowledgement(after, "saved") for after in saved)
    recording = Recording(("app",), "", "", "/disk", 0, ends, (), disk.journal, mapped)
    judge = ProgramJudge(recording, _Counter(), 100, 1)
    return diagnose(judge.judge([*MODELS.values()]))


def test_a_store_that_was_acknowledged_before_its_page_is_lost_by_a_power_cut() -> None:
    found = judged([("/f", b"1")], [0], (1,))
    (cause,) = found.causes
    lines = [*finding_lines(found, cause)]
    assert lines[:5] == [
        "FAILED  CheckFailed  lost acknowledgement, on every file system",
        "  /f is 0",
        "  crash     power cut after ack 1 (saved)",
        "  lost      stores to mapped memory of /f, not written yet",
        f"  cause     {CAUSE}",
    ]
    assert list(repair_lines(found)) == [UNCHECKED]


def test_a_power_cut_that_loses_only_stores_does_not_lose_nothing() -> None:
    """The write to /g is unsynced and survives."""
    found = judged([("/g", b"0"), ("/f", b"1")], [1], (2,))
    (cause,) = found.causes
    lost = [line for line in finding_lines(found, cause) if line.startswith("  lost ")]
    assert lost == ["  lost      stores to mapped memory of /f, not written yet"]


def test_the_repair_of_a_missing_fsync_is_kept_beside_such_stores() -> None:
    found = judged([("/f", b"1"), ("/f", b"2")], [0, 2], (1,))
    assert [type(cause.gap) for cause in found.causes] == [UnsyncedStores, Gap]
    effect, unseen = repair_lines(found)
    assert effect == "repair    with that fsync, none of 40 states fails"
    assert unseen == (
        "          8 states of stores to mapped memory are not counted, because such a store is "
        "not seen before the kernel writes its page"
    )


def test_an_fsync_that_later_stores_need_is_a_finding_of_its_own() -> None:
    stores, later = judged([("/f", b"1"), ("/f", b"2")], [0, 2], (1, 2)).causes
    assert isinstance(stores.gap, UnsyncedStores)
    assert isinstance(later.gap, Gap)
    assert (later.gap.first.number, later.gap.last.number) == (2, 2)


def test_each_round_whose_page_is_written_later_belongs_to_it() -> None:
    (cause,) = judged([("/f", b"1"), ("/f", b"2")], [0, 1], (1, 2)).causes
    assert isinstance(cause.gap, UnsyncedStores)
    assert {each.entries for each in cause.failures["scc"]} == {1, 2}
    assert all(each.needs_power_cut for each in cause.failures["scc"])


def test_stores_are_missing_before_the_first_acknowledgement_too() -> None:
    """The program goes on between the writes of the pages, so it has stored, and not synced."""
    found = judged([("/f", b"5"), ("/g", b"1"), ("/f", b"1")], [3], (1, 3))
    (stores,) = (each for each in found.causes if isinstance(each.gap, UnsyncedStores))
    assert stores.failure.needs_power_cut
    assert cause_text(stores) == (
        "no msync (of all these pages) or fsync of /f between its stores to mapped memory and "
        "write of /f (operation 1); if they come after it, a kill loses them too"
    )
    assert not any(cause.gap is NoGap.NOT_ATOMIC for cause in found.causes)


@pytest.mark.parametrize("mapped", [(1, 2), (2,)])
def test_before_the_first_acknowledgement_one_change_may_be_torn(mapped: tuple[int, ...]) -> None:
    """Two pages that are written together, or stores behind a plain write, which a kill parts."""
    found = judged([("/f", b"5"), ("/f", b"1")], [2], mapped)
    assert NoGap.NOT_ATOMIC in [cause.gap for cause in found.causes]
    assert not any(isinstance(cause.gap, UnsyncedStores) for cause in found.causes)


def test_pages_of_another_file_are_passed_over() -> None:
    cause, *_ = judged([("/g", b"1"), ("/g", b"2"), ("/f", b"1")], [0], (1, 3)).causes
    assert isinstance(cause.gap, UnsyncedStores)
    assert cause.gap.paths == ("/f",)


@pytest.mark.parametrize("mapped", [(), (2,)], ids=["nothing", "another file"])
def test_a_plain_write_that_comes_too_late_is_lost_by_a_kill(mapped: tuple[int, ...]) -> None:
    cause, *_ = judged([("/f", b"1"), ("/g", b"1")], [0], mapped).causes
    assert cause.gap is NoGap.ACKNOWLEDGED_EARLY
    assert not cause.failure.needs_power_cut


def test_a_page_that_the_file_did_not_have_was_not_stored_to() -> None:
    cause, *_ = judged([("/f", b"1")], [0], (1,), before=b"").causes
    assert isinstance(cause.gap, NoGap)
    assert not cause.failure.needs_power_cut


def test_the_writes_of_pages_are_the_same_ones_behind_an_inserted_barrier() -> None:
    writes = [("/f", b"1"), ("/g", b"1"), ("/f", b"2"), ("/g", b"2")]
    workload = judged(writes, [0, 2], (1, 3)).repaired["ext4"].workload
    assert len(workload.journal) > len(writes)
    assert [workload.journal[number - 1].path for number in workload.mapped] == ["/f", "/f"]


def test_a_recording_knows_the_writes_of_mapped_pages(tmp_path: Path) -> None:
    disk = Disk()
    Process(disk).mkdir("/d")
    ends = (Acknowledgement(1, "made"),)
    for mapped in ((), (1,)):
        recording = Recording(("app",), "", "", "/disk", 0, ends, (), disk.journal, mapped)
        save_recording(recording, tmp_path / "app.recording")
        assert load_recording(tmp_path / "app.recording").mapped == mapped


@needs_mounts
@pytest.mark.parametrize("barrier", ["", PARTIAL], ids=["no msync", "msync of one page"])
def test_a_program_that_stores_and_acknowledges_is_unsafe_at_a_power_cut(
    tmp_path: Path, barrier: str
) -> None:
    script = tmp_path / "program.py"
    script.write_text(STORES.format(barrier=barrier), encoding="ascii")
    result = powercut_in(
        tmp_path, "try", "--json", "-", "--setup", "head -c 8192 /dev/zero > f", "--check", CHECK,
        "--", sys.executable, str(script),
    )  # fmt: skip
    assert result.returncode == 1, result.stderr
    (finding,) = json.loads(result.stdout)["findings"]
    assert (finding["cause"], finding["weakest"]) == (CAUSE, "on every file system")
    assert "kill" not in " ".join(finding["crashes"])


@needs_mounts
def test_a_program_that_syncs_all_pages_is_safe(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(STORES.format(barrier="pages.flush()"), encoding="ascii")
    result = powercut_in(
        tmp_path, "try", "--setup", "head -c 8192 /dev/zero > f", "--check", CHECK,
        "--", sys.executable, str(script),
    )  # fmt: skip
    assert result.returncode == 0, result.stdout
