"""A program of a user: it imports every public name from ``powercut`` and uses it.

``test_front_door.py`` runs it in a fresh process and type-checks it in a project of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from hypothesis import given, settings
from hypothesis import strategies as st

import powercut
from powercut import (
    MODELS,
    ActionKind,
    Arguments,
    Boot,
    Choices,
    CrashCounter,
    CrashingDisk,
    CrashKind,
    CrashPoint,
    Disk,
    DiskTarget,
    Duplicated,
    Engine,
    Exploration,
    Failure,
    FalseAlarm,
    FaultFamily,
    FaultInjector,
    FaultPlan,
    Garbage,
    HarnessError,
    History,
    HypothesisChoices,
    Image,
    InvalidState,
    Journal,
    Known,
    Limits,
    LostAck,
    Mutant,
    OsModule,
    PersistenceModel,
    Phantom,
    Phase,
    PlainChoices,
    PowerOff,
    Process,
    Reordered,
    Resurrected,
    SeededChoices,
    ShadowFile,
    ShadowLog,
    SilentEmpty,
    SimulatedCrash,
    SourcePatch,
    SurvivorSet,
    Target,
    TornRecord,
    TwoPhases,
    UnreadableAfterCrash,
    UnsupportedOperation,
    Violation,
    World,
    abandon,
    connect,
    explore,
    explore_models,
    image_of,
    interposed,
    load_journal,
    model_named,
    recovery_unit,
    save_journal,
)

VIOLATIONS: tuple[type[Violation], ...] = (
    Duplicated, FalseAlarm, Garbage, InvalidState, Phantom, LostAck, Reordered, Resurrected,
    SilentEmpty, TornRecord, UnreadableAfterCrash,
)  # fmt: skip


def save(process: Process, ack: History) -> None:
    descriptor = process.open("/note", os.O_CREAT | os.O_WRONLY, 0o644)
    process.write(descriptor, b"hello")
    process.fsync(descriptor)
    process.close(descriptor)
    ack({"/note": b"hello"})


def names_of(process: Process, path: str) -> list[str]:
    return process.listdir(path)


def nothing(process: Process, known: Known) -> None:
    assert isinstance(known, Known)
    process.listdir("/")


class Note(DiskTarget):
    families_left_out = MappingProxyType({FaultFamily.CLOCK: "it reads no clock"})

    def __init__(self) -> None:
        self.expected = ShadowFile[bytes]()

    def actions(self) -> Sequence[ActionKind]:
        return [ActionKind("list", 1, self._list)]

    def recover(self, host: Process) -> None:
        self.host = host

    def _list(self, arguments: Arguments) -> str:
        assert not arguments
        return str(self.host.listdir("/"))


def use_explorer() -> None:
    found: Exploration = explore(save, model="posix", limits=Limits(samples=8, engine=Engine.AUTO))
    failure: Failure = found.failures[0]
    point: CrashPoint = failure.crashes[0]
    assert isinstance(failure.violation, Violation)
    assert CrashPoint.parse(str(point)) == point
    assert explore(save, nothing, model=model_named("scc")).safe
    two_phases = TwoPhases(
        lambda process: recovery_unit(process, names_of, "/"), lambda names, _: names.sort()
    )
    assert explore(save, two_phases, model="scc").safe
    verdicts = explore_models(save)
    assert list(verdicts) == list(MODELS)
    model: PersistenceModel = MODELS["posix"]
    assert not verdicts[model.name].safe


def use_disk() -> None:
    disk = Disk(Image.empty(), MODELS["ext4-ordered"])
    disk.interposer = CrashCounter(disk, 2, Phase.BEFORE)
    history = History(lambda: disk.operations)
    with suppress(SimulatedCrash):
        save(Process(disk), history)
    with suppress(PowerOff):
        Process(disk).mkdir("/d")
    image = disk.power_cut(SurvivorSet())
    assert image.files() == {"/note": b""}
    second = Disk(image)
    FaultInjector(FaultPlan.parse("write * #1 ENOSPC")).install(second)
    with suppress(OSError):
        save(Process(second), history)
    assert second.files() == {"/note": b""}
    assert issubclass(UnsupportedOperation, HarnessError)
    save_journal(disk.journal, "recorded.journal")
    journal: Journal = load_journal("recorded.journal")
    assert Disk.from_journal(journal, MODELS["posix"]).files() == {"/note": b""}


def use_crashing_disk(choices: Choices) -> None:
    disk = CrashingDisk(model="posix")
    with disk.crash(choices):
        save(disk.process, History(lambda: 0))
    assert disk.crashes[0].kind in CrashKind
    assert OsModule(disk.process).path.exists("/")


@settings(max_examples=5, deadline=None, derandomize=True, database=None)
@given(st.data())
def use_hypothesis(data: st.DataObject) -> None:
    use_crashing_disk(HypothesisChoices(data))


def use_target() -> None:
    def make_host(boot: Boot) -> Process:
        return boot.process

    world: World[Process] = World(make_host, PlainChoices())
    target: Target[Process] = Note()
    target.recover(world.boot())
    assert target.actions()[0].perform({}) == "[]"
    patch = SourcePatch("store", "fsync(descriptor)", "fstat(descriptor)")
    assert Mutant("no fsync", Note, (LostAck,), (patch,)).patches
    log = ShadowLog[str]()
    log.begin("a line")
    log.acknowledge()
    log.check(["a line"])


def use_sqlite() -> None:
    assert image_of(os.curdir).files()
    with interposed(Process(Disk())) as process:
        Path("note").write_bytes(b"hello")
    assert process.disk.files() == {"/disk/note": b"hello"}
    connection = connect(Process(Disk()), "/main.db")
    connection.execute("PRAGMA journal_mode=DELETE").fetchall()
    connection.execute("CREATE TABLE t (x)")
    abandon(connection)


def main() -> None:
    """Use every name twice: one use must not spoil the next."""
    for _ in range(2):
        use_explorer()
        use_disk()
        use_crashing_disk(SeededChoices(7))
        use_hypothesis()
        use_target()
        use_sqlite()
        for violation in VIOLATIONS:
            assert powercut.LostAck is LostAck
            assert str(violation("it happened"))
        for name in powercut.__all__:
            assert getattr(powercut, name) is globals()[name]
        assert powercut.explore(save, nothing).safe


if __name__ == "__main__":
    main()
    sys.stdout.write("every name was used twice\n")
