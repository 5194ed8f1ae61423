"""A finding loses an acknowledgement only, or the old value as well."""

from __future__ import annotations

import os

import pytest

from oracles.history import History, Known
from oracles.violation import LostAck, Violation
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.explore import explore, judged
from powercut.explorer.harm import Harm, Harms
from powercut.explorer.judge import Judge
from powercut.explorer.missing_barrier import Gap
from powercut.explorer.recorded_workload import record
from powercut.report.findings import harms_text
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, POSIX, is_stronger
from sim.disk.disk import Disk
from tests.unit.explorer.test_diagnosis import diagnosed, gap, in_place


def test_a_disk_that_was_right_earlier_is_a_lost_acknowledgement_whatever_the_violation() -> None:
    def check(process: Process, known: Known) -> None:
        names = process.listdir("/")
        assert "f" in names or not known.acknowledged, names

    def workload(process: Process, ack: History) -> None:
        process.close(process.open("/f", os.O_CREAT | os.O_WRONLY))
        ack("created")

    (cause,) = diagnosed(workload, check).causes
    assert list(cause.harms) == [Harm.LOST_ACKNOWLEDGEMENT]
    assert gap(cause) == ("/", "create", "ack")


def test_a_disk_that_was_right_behind_a_barrier_is_a_lost_acknowledgement() -> None:
    """A table was made, and synced, before the first acknowledgement; only its row is lost."""

    def workload(process: Process, ack: History) -> None:
        descriptor = process.open("/t", os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, b"table ")
        process.fsync(descriptor)
        process.sync()
        process.write(descriptor, b"row ")
        ack("row")

    def check(process: Process, known: Known) -> None:
        with process.open_file("/t", "rb") as file:
            rows = file.read().decode().split()[1:]
        assert rows == list(known.acknowledged), rows

    cause = next(
        cause for cause in diagnosed(workload, check, ("scc",)).causes if isinstance(cause.gap, Gap)
    )
    assert gap(cause) == ("/t", "write", "ack")
    assert list(cause.harms) == [Harm.LOST_ACKNOWLEDGEMENT]


def test_a_disk_that_was_right_between_two_writes_is_a_lost_acknowledgement() -> None:
    """Two rows are written before both are acknowledged; a power cut loses the second one."""

    def workload(process: Process, ack: History) -> None:
        descriptor = process.open("/t", os.O_CREAT | os.O_WRONLY)
        process.sync()
        for row in (b"1 ", b"2 "):
            process.write(descriptor, row)
        ack("1")
        ack("2")

    def check(process: Process, known: Known) -> None:
        rows = []
        if "t" in process.listdir("/"):
            with process.open_file("/t", "rb") as file:
                rows = file.read().decode().split()
        assert rows[: len(known.acknowledged)] == list(known.acknowledged), rows

    (cause,) = diagnosed(workload, check, ("scc",)).causes
    assert list(cause.harms) == [Harm.LOST_ACKNOWLEDGEMENT]


@pytest.mark.parametrize("is_silent", [False, True])
def test_the_loss_of_half_a_group_is_a_lost_acknowledgement_whatever_the_text(
    *, is_silent: bool
) -> None:
    """No earlier disk that was right has as many rows."""

    def workload(process: Process, ack: History) -> None:
        descriptor = process.open("/t", os.O_CREAT | os.O_WRONLY)
        process.sync()
        for row in range(40):
            process.write(descriptor, b"%d " % row)
        for row in range(40):
            ack(row)

    def check(process: Process, known: Known) -> None:
        rows = []
        if "t" in process.listdir("/"):
            with process.open_file("/t", "rb") as file:
                rows = file.read().split()
        lost = len(rows) < len(known.acknowledged)
        assert not lost, "" if is_silent else f"row {len(rows)} is lost"

    (cause,) = diagnosed(workload, check, ("scc",)).causes
    assert list(cause.harms) == [Harm.LOST_ACKNOWLEDGEMENT]


@pytest.mark.parametrize("is_silent", [False, True])
def test_a_file_that_is_neither_old_nor_new_is_corrupt_whatever_the_text(
    *, is_silent: bool
) -> None:
    def workload(process: Process, ack: History) -> None:
        process.close(process.open("/n", os.O_CREAT | os.O_WRONLY))
        process.sync()
        for number in (b"1", b"2"):
            descriptor = process.open("/new", os.O_CREAT | os.O_WRONLY)
            process.write(descriptor, number)
            process.rename("/new", "/n")
            ack(number.decode())
            process.sync()

    def check(process: Process, known: Known) -> None:
        """Demand the last number, or the next one; nothing before the first one."""
        if known.acknowledged:
            with process.open_file("/n", "rb") as file:
                content = file.read().decode()
            is_right = content in (known.acknowledged[-1], *known.in_flight)
            assert is_right, "" if is_silent else content

    found = diagnosed(workload, check, ("ext4",))
    harms = {path: [*cause.harms] for cause in found.causes for path in gap(cause)[:1]}
    assert harms == {"/n": [Harm.LOST_ACKNOWLEDGEMENT], "/new": [Harm.CORRUPTION]}


def test_the_harm_is_unknown_if_too_many_acknowledgements_may_be_lost() -> None:
    """The check accepts one number of rows at each moment, and is not tried for all of them."""

    def workload(process: Process, ack: History) -> None:
        descriptor = process.open("/t", os.O_CREAT | os.O_WRONLY)
        process.sync()
        process.write(descriptor, b"row" * 400)
        for row in range(400):
            ack(row)

    def check(process: Process, known: Known) -> None:
        with process.open_file("/t", "rb") as file:
            rows = len(file.read().rstrip(b"\0")) // 3
        assert rows in {len(known.acknowledged), 400}

    found = explore(workload, check, "ext4")
    harms = Harms({"ext4": found})
    last = [each for each in found.failures if each.entries == 400]
    assert {harms.of("ext4", each) for each in last} == {None, Harm.LOST_ACKNOWLEDGEMENT}


def has_the_number(process: Process, known: Known) -> None:
    """Check the number in the file /n, which is 0 if the file is empty or does not exist."""
    number = 0
    if "n" in process.listdir("/"):
        with process.open_file("/n", "rb") as file:
            number = int(file.read() or b"0")
    assert number >= len(known.acknowledged), number


def test_a_disk_that_was_right_until_an_early_acknowledgement_is_a_lost_acknowledgement() -> None:
    """Each number is acknowledged before it is written in the place of the one before."""

    def workload(process: Process, ack: History) -> None:
        descriptor = process.open("/n", os.O_CREAT | os.O_WRONLY)
        process.sync()
        for number in (b"1", b"2"):
            ack(number.decode())
            process.pwrite(descriptor, number, 0)

    kill, *_ = diagnosed(workload, has_the_number, ("scc",)).causes
    assert kill.harm_of_kills is Harm.LOST_ACKNOWLEDGEMENT
    assert {each.entries for each in kill.failures["scc"]} == {1, 2}


@pytest.mark.parametrize("is_early", [False, True])
def test_a_file_that_a_kill_leaves_empty_is_corrupt_also_where_it_is_as_good_as_missing(
    *, is_early: bool
) -> None:
    def workload(process: Process, ack: History) -> None:
        descriptor = process.open("/n", os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, b"1")
        process.sync()
        ack("1")
        if is_early:
            ack("2")
        process.ftruncate(descriptor, 0)
        process.pwrite(descriptor, b"2", 0)
        process.sync()
        if not is_early:
            ack("2")

    kill, *_ = diagnosed(workload, has_the_number, ("scc",)).causes
    assert kill.harm_of_kills is Harm.CORRUPTION


def test_an_early_acknowledgement_is_lost_though_another_file_is_emptied() -> None:
    def workload(process: Process, ack: History) -> None:
        descriptor = process.open("/n", os.O_CREAT | os.O_WRONLY)
        journal = process.open("/journal", os.O_CREAT | os.O_WRONLY)
        process.write(journal, b"x")
        process.sync()
        ack("1")
        process.ftruncate(journal, 0)
        process.pwrite(descriptor, b"1", 0)

    kill, *_ = diagnosed(workload, has_the_number, ("scc",)).causes
    assert kill.harm_of_kills is Harm.LOST_ACKNOWLEDGEMENT


def test_a_file_that_loses_its_old_content_as_well_is_corrupt() -> None:
    _, power_cut = diagnosed(in_place, models=("ext4",)).causes
    assert list(power_cut.harms) == list(Harm)


def replace_by_two_rows(process: Process, ack: History) -> None:
    """Losing B takes fewer lost sectors than losing A; without A the file is corrupt."""
    process.close(process.open("/t", os.O_CREAT | os.O_WRONLY))
    process.sync()
    descriptor = process.open("/new", os.O_CREAT | os.O_WRONLY)
    process.write(descriptor, b"A" * 1024 + b"B" * 30)
    process.rename("/new", "/t")
    process.fsync(process.open("/", os.O_RDONLY))
    ack("B")


def has_two_rows(process: Process, known: Known) -> None:
    content = b""
    if "t" in process.listdir("/"):
        with process.open_file("/t", "rb") as file:
            content = file.read()
    if not content.endswith(b"B" * 30) and known.acknowledged:
        raise LostAck("B is lost")
    assert b"A" in content or b"B" not in content


def test_the_failure_that_is_shown_does_the_worst_harm() -> None:
    (cause,) = diagnosed(replace_by_two_rows, has_two_rows, ("ext4",)).causes
    assert list(cause.harms) == [*Harm]
    assert [str(each.violation) for each in cause.failures["ext4"]].count("B is lost") > 1
    assert cause.failure.violation.property_name == "CheckFailed"
    simplicity = [each.simplicity for each in cause.failures["ext4"][1:]]
    assert simplicity == sorted(simplicity)
    assert simplicity[0] < cause.failure.simplicity


def test_the_harms_of_all_failures_after_the_same_acknowledgements_are_named() -> None:
    """B may be torn in 29 places, which takes one lost sector each."""
    (cause,) = diagnosed(replace_by_two_rows, has_two_rows, ("posix",)).causes
    simple = sorted(cause.failures["posix"], key=lambda failure: failure.simplicity)[:29]
    assert {each.violation.property_name for each in simple} == {"LostAck"}
    assert list(cause.harms) == [*Harm]
    assert cause.failure.violation.property_name == "CheckFailed"


def test_a_weaker_model_is_named_where_its_failures_are_a_sample_without_that_harm() -> None:
    recorded = record(replace_by_two_rows, POSIX, Image.empty())
    models = [MODELS[name] for name in ("ext4", "xfs", "posix")]
    explorations = judged(recorded, has_two_rows, models)
    for name in ("xfs", "posix"):
        failures = explorations[name].failures
        failures[:] = [each for each in failures if isinstance(each.violation, LostAck)]
    (cause,) = diagnose(explorations).causes
    assert cause.harms[Harm.LOST_ACKNOWLEDGEMENT] == ["ext4", "xfs", "posix"]
    assert cause.harms[Harm.CORRUPTION] == ["ext4", "posix"]


def test_a_model_is_stronger_than_all_that_follow_it() -> None:
    weaker = {name: {each for each in MODELS if is_stronger(name, each)} for name in MODELS}
    assert weaker["ext4"] == {"ext4-ordered", "ext4-writeback", "posix"}
    assert weaker["scc"] == {"ext4-journal", "ext4", *weaker["ext4"]}
    assert (weaker["xfs"], weaker["btrfs"], weaker["posix"]) == ({"posix"}, {"posix"}, set())


def test_a_kill_is_shown_though_power_cuts_do_more_harm() -> None:
    """The content is replaced in place, which may be torn, and then loses its last row."""

    def workload(process: Process, ack: History) -> None:
        descriptor = process.open("/t", os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, b"A" * 1024 + b"B")
        process.sync()
        ack("B")
        process.pwrite(descriptor, b"C" * 1024, 0)
        process.ftruncate(descriptor, 1024)

    def check(process: Process, known: Known) -> None:
        if known.acknowledged:
            with process.open_file("/t", "rb") as file:
                content = file.read()
            assert len({*content[:1024]}) == 1
            if b"B" not in content:
                raise LostAck("B is lost")

    (cause,) = diagnosed(workload, check, ("ext4",)).causes
    assert not cause.failure.needs_power_cut
    assert harms_text(cause) == "lost acknowledgement (corruption at a power cut on ext4), "


def test_the_latest_disk_is_compared_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def workload(process: Process, ack: History) -> None:
        for number in range(20):
            process.sync()
            process.close(process.open(f"/{number}", os.O_CREAT | os.O_WRONLY))
            ack(number)

    def check(process: Process, known: Known) -> None:
        names = process.listdir("/")
        assert len(names) >= len(known.acknowledged), len(names)

    found = explore(workload, check, "scc")
    checked: list[Known] = []
    violation = Judge.violation

    def counted(judge: Judge, disk: Disk, known: Known) -> Violation | None:
        checked.append(known)
        return violation(judge, disk, known)

    monkeypatch.setattr(Judge, "violation", counted)
    last = max(found.failures, key=lambda failure: failure.entries)
    assert last.entries == 20
    assert Harms({"scc": found}).of("scc", last) is Harm.LOST_ACKNOWLEDGEMENT
    assert len(checked) < 5
