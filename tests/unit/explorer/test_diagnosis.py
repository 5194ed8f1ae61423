"""Failures are grouped by cause; each cause has its missing barrier, its harm and its models."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from faults.crash_point import CrashKind
from oracles.history import History, Known
from oracles.violation import LostAck, Violation
from powercut.explorer.cause import Cause, Diagnosis, NoGap
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.event import between, events_of
from powercut.explorer.explore import judged
from powercut.explorer.harm import Harm
from powercut.explorer.judge import Check
from powercut.explorer.limits import Limits
from powercut.explorer.missing_barrier import Gap, MissingBarrier, insert
from powercut.explorer.recorded_workload import RecordedWorkload, record
from powercut.explorer.repair import repair
from powercut.explorer.verdicts import Exploration
from powercut.report.findings import cause_text
from sim.disk.cache.operation import Sync
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import EXT4, MODELS, POSIX, PersistenceModel

Workload = Callable[[Process, History], None]
ALL = tuple(MODELS)


def diagnosed(
    workload: Workload,
    check: Check | None = None,
    models: Sequence[str] = ALL,
    limits: Limits | None = None,
) -> Diagnosis:
    recorded = record(workload, POSIX, Image.empty())
    return diagnose(judged(recorded, check, [MODELS[name] for name in models], limits))


def gap(cause: Cause) -> tuple[str, str, str]:
    assert isinstance(cause.gap, Gap)
    return cause.gap.path, cause.gap.first.kind, cause.gap.last.kind


def save(process: Process, ack: History) -> None:
    """Replace a file twice, without any barrier."""
    for data in (b"one", b"two"):
        descriptor = process.open("/f.tmp", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        process.write(descriptor, data)
        process.close(descriptor)
        process.replace("/f.tmp", "/f")
        ack({"/f": data})


def test_each_missing_barrier_is_one_cause_in_every_round_of_a_loop() -> None:
    found = diagnosed(save)
    directory, data = found.causes
    assert gap(directory) == ("/", "rename", "ack")
    assert gap(data) == ("/f.tmp", "write", "rename")
    assert tuple(directory.failures) == ALL
    assert tuple(data.failures) == ALL[2:]
    assert directory.harms == {Harm.LOST_ACKNOWLEDGEMENT: list(ALL)}
    assert data.harms == {Harm.CORRUPTION: list(ALL[2:])}
    assert all(each.safe for each in found.repaired.values())


def test_the_strongest_model_and_the_fewest_lost_pieces_are_shown() -> None:
    directory, data = diagnosed(save).causes
    assert (directory.model, data.model) == ("scc", "ext4")
    for cause in (directory, data):
        assert sum(len(p.survivors.lost) for p in cause.failure.crashes) == 1


def test_the_round_of_a_loop_is_named_whose_loss_is_shown() -> None:
    def workload(process: Process, ack: History) -> None:
        for number in (1, 2):
            process.mkdir(f"/{number}")
            process.sync()
            process.close(process.open(f"/{number}/f", os.O_CREAT | os.O_WRONLY))
            ack(number)

    def second_is_there(process: Process, known: Known) -> None:
        if 2 in known.acknowledged and process.listdir("/2") != ["f"]:
            raise LostAck("the second file is lost")

    (cause,) = diagnosed(workload, second_is_there, models=("posix",)).causes
    assert isinstance(cause.gap, Gap)
    assert (cause.gap.path, cause.gap.first.path) == ("/2", "/2/f")


def test_of_barriers_that_suffice_the_one_for_the_lost_operation_is_named() -> None:
    def commit(process: Process, ack: History) -> None:
        """Commit by a removal of the rollback journal, without any barrier."""
        for name in ("/db", "/journal"):
            descriptor = process.open(name, os.O_CREAT | os.O_WRONLY)
            process.write(descriptor, b"old")
            process.close(descriptor)
        process.sync()
        descriptor = process.open("/db", os.O_WRONLY)
        process.write(descriptor, b"new")
        process.close(descriptor)
        process.unlink("/journal")
        ack("new")

    def is_committed(process: Process, known: Known) -> None:
        if known.acknowledged:
            with process.open_file("/db", "rb") as file:
                if file.read() != b"new" or "journal" in process.listdir("/"):
                    raise LostAck("the commit is lost")

    # Under scc any barrier after the commit prevents the loss of the removal.
    removal, data = diagnosed(commit, is_committed).causes
    assert gap(removal) == ("/", "unlink", "ack")
    assert tuple(removal.failures) == ALL
    assert gap(data) == ("/db", "write", "ack")


def test_new_directories_need_a_barrier_each() -> None:
    def workload(process: Process, ack: History) -> None:
        process.mkdir("/a")
        process.mkdir("/a/b")
        descriptor = process.open("/a/b/f", os.O_CREAT | os.O_WRONLY)
        process.fsync(descriptor)
        ack({"/a/b/f": b""})

    found = diagnosed(workload)
    assert [gap(cause) for cause in found.causes] == [
        ("/a/b", "create", "ack"), ("/a", "mkdir", "ack"), ("/", "mkdir", "ack"),
    ]  # fmt: skip
    assert {tuple(cause.failures) for cause in found.causes} == {("posix",)}
    assert found.repaired["posix"].safe


def in_place(process: Process, ack: History) -> None:
    descriptor = process.open("/f", os.O_CREAT | os.O_RDWR)
    process.write(descriptor, b"old")
    process.sync()
    ack({"/f": b"old"})
    process.ftruncate(descriptor, 0)
    process.pwrite(descriptor, b"new", 0)
    ack({"/f": b"new"})


def test_a_kill_has_no_missing_barrier_and_the_barriers_of_others_are_still_found() -> None:
    kill, power_cut = diagnosed(in_place).causes
    assert kill.gap is NoGap.NOT_ATOMIC
    assert not kill.failure.needs_power_cut
    assert {p.kind for each in kill.failures["scc"] for p in each.crashes} == set(CrashKind)
    assert gap(power_cut) == ("/f", "write", "ack")
    for name in ALL:
        states = [{each.state for each in cause.failures[name]} for cause in (kill, power_cut)]
        assert states[0].isdisjoint(states[1])


def test_what_no_barrier_prevents_is_left_in_the_repaired_explorations() -> None:
    found = diagnosed(in_place, models=("scc",))
    kill, _ = found.causes
    assert found.repaired["scc"].failed == len(kill.failures["scc"]) > 0


def test_a_write_that_may_be_torn_has_no_missing_barrier() -> None:
    def workload(process: Process, _: History) -> None:
        descriptor = process.open("/f", os.O_CREAT | os.O_RDWR)
        process.write(descriptor, b"old")
        process.sync()
        process.pwrite(descriptor, b"new", 0)
        process.fsync(descriptor)

    def check(process: Process, _: Known) -> None:
        if "f" in process.listdir("/"):
            with process.open_file("/f", "rb") as file:
                content = file.read()
            if content.startswith(b"n") and content != b"new":
                raise Violation("torn")

    (cause,) = diagnosed(workload, check).causes
    assert cause.gap is NoGap.NOT_ATOMIC
    assert cause.failure.needs_power_cut
    assert tuple(cause.failures) == ("posix",)


def test_a_name_that_does_not_matter_hides_no_harm_of_a_kill() -> None:
    """A crash that also loses the lock is no other finding than one that keeps it."""

    def workload(process: Process, ack: History) -> None:
        process.close(process.open("/lock", os.O_CREAT))
        for data in (b"1", b"2"):
            descriptor = process.open("/f", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
            process.write(descriptor, data)
            process.close(descriptor)
            ack({"/f": data})

    kill, *others = diagnosed(workload).causes
    assert kill.gap is NoGap.NOT_ATOMIC
    assert [gap(each) for each in others] == [("/f", "write", "ack"), ("/", "create", "ack")]


def test_a_name_that_does_not_matter_hides_no_call_that_is_not_atomic() -> None:
    """The content is empty right behind the write, whether the lock is there or not."""

    def workload(process: Process, ack: History) -> None:
        process.close(process.open("/lock", os.O_CREAT))
        descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, b"1")
        process.fsync(descriptor)
        ack("saved")

    def check(process: Process, _: Known) -> None:
        if "f" in process.listdir("/") and process.stat("/f").st_size:
            with process.open_file("/f", "rb") as file:
                assert file.read() == b"1"

    (cause,) = diagnosed(workload, check).causes
    assert cause.gap is NoGap.NOT_ATOMIC
    assert cause.failure.needs_power_cut
    text = cause_text(cause)
    assert text == (
        "no fsync helps: none fits between the lost call and the crash; the change is not atomic"
    )


def test_a_rename_that_an_earlier_barrier_makes_atomic_misses_that_barrier() -> None:
    """On btrfs a rename over a name that is not durable may leave neither of the two files."""

    def workload(process: Process, ack: History) -> None:
        for name in ("/one", "/two"):
            process.close(process.open(name, os.O_CREAT | os.O_WRONLY))
            if name == "/one":
                process.sync()
            process.rename(name, "/f")
            ack("there")

    def check(process: Process, known: Known) -> None:
        names = process.listdir("/")
        assert "f" in names or not known.acknowledged, len(names)

    found = diagnosed(workload, check, ("btrfs",))
    assert [gap(cause) for cause in found.causes] == [("/", "rename", "ack")]
    assert found.repaired["btrfs"].safe


def test_a_barrier_that_a_power_cut_after_a_kill_needs_is_found() -> None:
    """The kill keeps /f in the page cache, the recovery reads it, and a power cut takes it."""

    def workload(process: Process, ack: History) -> None:
        process.close(process.open("/f", os.O_CREAT | os.O_WRONLY))
        ack.attempt("f")
        process.close(process.open("/g", os.O_CREAT | os.O_WRONLY))

    def check(process: Process, _: Known) -> None:
        names = process.listdir("/")
        if "seen" in names and "f" not in names:
            raise LostAck("recovery built on a file that was not durable")
        if "g" in names and "seen" not in names:
            process.mkdir("/seen")

    (cause,) = diagnosed(workload, check, ("posix",), Limits(nested=1)).causes
    assert cause.recovery is not None
    assert gap(cause.recovery.causes[0]) == ("/", "create", "mkdir")
    assert len(cause.failure.crashes) == 2


def test_pairs_of_barriers_are_tried_where_no_single_one_helps() -> None:
    def workload(process: Process, ack: History) -> None:
        first = process.open("/a", os.O_CREAT | os.O_WRONLY)
        second = process.open("/b", os.O_CREAT | os.O_WRONLY)
        process.write(first, b"a")
        process.write(second, b"b")
        ack(None)

    def check(process: Process, known: Known) -> None:
        sizes = [process.stat(name).st_size for name in process.listdir("/")]
        if known.acknowledged and sizes != [1, 1]:
            raise Violation("not both")

    recorded = record(workload, EXT4, Image.empty())
    first = judged(recorded, check, [EXT4])["ext4"]

    def explore(changed: RecordedWorkload, model: PersistenceModel) -> Exploration:
        synced = {each.inode for each in changed.journal if isinstance(each, Sync)}
        found = Exploration(model, changed, first.checker)
        if not {2, 3} <= synced:
            for failure in first.failures:
                found.fail(failure)
        return found

    repaired = repair(first, explore)
    assert len(repaired.barriers) == 2
    assert repaired.left == ()


def test_acknowledgements_follow_the_barriers_inserted_before_them() -> None:
    recorded = record(save, POSIX, Image.empty())
    found = diagnosed(save, models=("scc",))
    (cause,) = found.causes
    assert isinstance(cause.gap, Gap)
    exploration = found.explorations["scc"]
    (barrier,) = repair(exploration, exploration.checker.explore).barriers
    assert isinstance(barrier, MissingBarrier)
    changed = insert(recorded, barrier).workload
    assert [type(each).__name__ for each in changed.journal] == [
        *("Create", "Write", "Rename", "Sync"), *("Create", "Write", "Rename", "Sync"),
    ]  # fmt: skip
    assert [entry.after for entry in changed.history.entries] == [4, 8]
    assert [place.line for place in changed.places.values()] == [
        place.line for place in recorded.places.values()
    ]


def test_a_model_under_which_any_of_two_barriers_suffices_has_a_cause_as_well() -> None:
    """A barrier on one of two directories covers a rename between them, but not under posix."""

    def workload(process: Process, ack: History) -> None:
        process.mkdir("/d")
        process.mkdir("/e")
        process.close(process.open("/d/f", os.O_CREAT | os.O_WRONLY))
        process.sync()
        process.rename("/d/f", "/e/f")
        ack("moved")

    def check(process: Process, known: Known) -> None:
        if known.acknowledged:
            assert process.listdir("/e") == ["f"]
            assert process.listdir("/d") == []

    found = diagnosed(workload, check)
    assert [gap(cause)[0] for cause in found.causes] == ["/e", "/d"]
    assert all(set(cause.failures) >= {"posix"} for cause in found.causes)
    assert sum("ext4" in cause.failures for cause in found.causes) == 1
    assert found.unsafe_models == ALL


def test_a_helper_without_a_barrier_is_one_cause_for_all_its_files() -> None:
    def put(process: Process, path: str) -> None:
        descriptor = process.open(path, os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, b"x")
        process.close(descriptor)

    def workload(process: Process, ack: History) -> None:
        put(process, "/first")
        put(process, "/second")
        ack("both")

    def check(process: Process, known: Known) -> None:
        if known.acknowledged:
            assert process.stat("/first").st_size == process.stat("/second").st_size == 1

    (cause,) = diagnosed(workload, check, ("xfs",)).causes
    assert gap(cause) == ("/second", "write", "ack")


def test_numbered_names_are_one_cause_where_no_lines_are_known() -> None:
    def workload(process: Process, ack: History) -> None:
        for number in range(3):
            descriptor = process.open(f"/f.tmp{number}", os.O_CREAT | os.O_WRONLY)
            process.write(descriptor, b"%d" % number)
            process.fsync(descriptor)
            process.close(descriptor)
            process.replace(f"/f.tmp{number}", "/f")
            ack({"/f": b"%d" % number})

    recorded = record(workload, POSIX, Image.empty())
    entries = [entry._replace(place=None) for entry in recorded.history.entries]
    history = History(lambda: len(recorded.journal), entries=entries)
    blind = RecordedWorkload(recorded.journal, history)
    (cause,) = diagnose(judged(blind, None, [MODELS["xfs"]])).causes
    text = "rename of /f.tmp0 to /f (operation 4) and ack 1, and at 2 more places"
    assert cause_text(cause) == f"no fsync of / between {text}"


def test_a_text_acknowledged_at_an_unknown_line_is_shown() -> None:
    def workload(process: Process, ack: History) -> None:
        process.mkdir("/d")
        ack("saved the directory\nwith a name")

    recorded = record(workload, POSIX, Image.empty())
    entries = [entry._replace(place=None) for entry in recorded.history.entries]
    history = History(lambda: len(recorded.journal), entries=entries)
    blind = RecordedWorkload(recorded.journal, history)
    *_, last = events_of(blind)
    assert str(last) == "ack 1 (saved the directory with a na…)"
    assert last.site == last.site._replace(path="")


def test_two_writes_of_one_line_to_one_file_are_named_by_their_numbers() -> None:
    def workload(process: Process, ack: History) -> None:
        descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
        for data in (b"one", b"two"):
            process.write(descriptor, data)
        ack({"/f": b"onetwo"})

    _, first, last, ack = events_of(record(workload, POSIX, Image.empty()))
    where = str(first).removeprefix("write at ")
    assert between(first, last) == (
        f"between write of /f (operation 2) and write of /f (operation 3) at {where}"
    )
    assert between(last, ack) == f"between {last} and {ack}"
