"""Explore: run a workload once, and check every disk that a crash of it may leave.

The workload runs on a recording disk. At each operation of the journal every crash image is
built that the persistence model allows, distinguished from earlier ones, booted and checked.
The workload is not run again, so the cost grows linearly with its operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from os import PathLike
from typing import TypeAlias, cast

from oracles.violation import Violation
from powercut.explorer.arguments import (
    as_check,
    as_image,
    as_limits,
    as_model,
    as_root,
    must_be_functions,
)
from powercut.explorer.check_violation import FAILS_AT_START
from powercut.explorer.crash_state import disks_along, done_at
from powercut.explorer.default_check import default_check
from powercut.explorer.interposed_check import InterposedCheck
from powercut.explorer.judge import Check as ProcessCheck
from powercut.explorer.judge import Judge, never_stop
from powercut.explorer.limits import Limits
from powercut.explorer.recorded_workload import (
    RecordedWorkload,
    Workload,
    must_acknowledge,
    must_use_the_disk,
    record,
    with_whole_paths,
)
from powercut.explorer.repair import OutOfTime
from powercut.explorer.ticker import Tick
from powercut.explorer.unmodified import UnmodifiedCheck, takes_one
from powercut.explorer.verdicts import Exploration
from powercut.interpose.interposed import DEFAULT_ROOT
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, PersistenceModel
from sim.disk.disk import Disk
from sim.errors import HarnessError

Check: TypeAlias = ProcessCheck | UnmodifiedCheck
"""A check takes ``(process, known)``, or ``known`` alone and is interposed."""


def explore(
    workload: Workload,
    check: Check | None = None,
    model: str | PersistenceModel = "posix",
    limits: Limits | None = None,
    image: Image | None = None,
    root: str | PathLike[str] = DEFAULT_ROOT,
) -> Exploration:
    """Run ``workload(ack)`` once, and check every crash of it under ``model``.

    The workload is ordinary Python: ``open``, ``os``, ``pathlib``, ``sqlite3`` and all code on
    top of them see the simulated disk below ``root``, where relative paths start. It calls
    ``ack(value)`` when ``value`` must survive every later crash, and may call
    ``ack.attempt(value)`` before it starts to write ``value``. A workload with two parameters,
    ``(process, ack)``, uses ``process`` in place of ``os`` instead.

    ``check(known)`` is called on the disk that the next boot finds, with the values that were
    acknowledged and in flight at the crash; ``check(process, known)`` gets a process as well.
    It raises a ``Violation``; any other exception counts as a recovery that fails. A ``check`` or
    ``limits`` that is left out, or None, is the attribute of the workload with this name, if there
    is one. Without a check, the values are mappings from path to content (None for no file), and
    after a crash the files must show the last acknowledged value or one in flight. To judge a
    workload with the attribute ``check`` so, pass another function that calls it.

    A workload that takes ``ack`` alone runs in a forked process, and so does each call of its
    check: memory of one cannot answer for the disk in another.

    ``image`` is the disk on which the workload starts; the default is an empty one.
    ``image_of(directory)`` copies a directory.

    Raises ``HarnessError`` for a mistaken argument, such as an unknown model; for a workload that
    fails by itself, hangs, or uses the real machine beside the disk; for one that acknowledged
    nothing or did nothing on the disk; and for values that are no mappings if there is no check.

    Example::

        def save(ack):
            with open("note", "wb") as file:
                file.write(b"hello")
                file.flush()
                os.fsync(file.fileno())
            ack({"note": b"hello"})

        assert explore(save, model="ext4-ordered").safe
    """
    must_be_functions(workload, check)
    check = as_check(check, workload)
    found, limits = as_model(model), as_limits(limits, workload)
    recorded = record(workload, found, as_image(image), as_root(root), limits)
    return judged(recorded, check, [found], limits)[found.name]


def explore_models(
    workload: Workload,
    check: Check | None = None,
    limits: Limits | None = None,
    image: Image | None = None,
    root: str | PathLike[str] = DEFAULT_ROOT,
) -> dict[str, Exploration]:
    """Explore under every persistence model; return the verdicts by model, strongest first.

    The workload runs once, on a disk under ``posix``, which guarantees least. ``check`` and
    ``limits`` are those of ``explore``.
    """
    must_be_functions(workload, check)
    check = as_check(check, workload)
    models, limits = tuple(MODELS.values()), as_limits(limits, workload)
    recorded = record(workload, models[-1], as_image(image), as_root(root), limits)
    return judged(recorded, check, models, limits)


def judged(
    recorded: RecordedWorkload,
    check: Check | None,
    models: Iterable[PersistenceModel],
    limits: Limits | None = None,
    processes: int = 1,
    tick: Tick = never_stop,
    deciding: int | None = None,
    verdicts: dict[str, Exploration] | None = None,
) -> dict[str, Exploration]:
    """Return the verdicts on a recorded workload by the name of the model, in their order.

    The check runs in ``processes`` processes; for the lazy engine in ``deciding``, if given.
    The verdicts are put into ``verdicts``. If the check ends one with a ``HarnessError``, this has
    those before it, and what that one has found by then.

    Raises ``HarnessError`` if they would be safe because nothing was acknowledged or done.
    """
    must_use_the_disk(recorded)
    recorded, judge = judge_of(recorded, check, limits or Limits(), processes, tick, deciding)
    verdicts = {} if verdicts is None else verdicts
    for model in models:
        try:
            verdicts[model.name] = judge.explore(recorded, model)
        except HarnessError:
            if judge.unfinished is not None:
                verdicts[model.name] = judge.unfinished
            raise
    if all(found.safe for found in verdicts.values()):
        must_acknowledge(recorded)
    return verdicts


def must_pass_undamaged(verdicts: Mapping[str, Exploration]) -> None:
    """Raise ``HarnessError`` if the check also fails without a crash, and so decides nothing.

    If it has failed after a kill, it runs once more: on the disk that the workload leaves. It must
    pass there, unless the time is over before it ends, and on the disk with which the workload
    starts, where nothing is acknowledged.
    """
    failures = [failure for found in verdicts.values() for failure in found.failures]
    killed = [failure for failure in failures if not failure.needs_power_cut]
    if not killed:
        return
    found = next(iter(verdicts.values()))
    journal, history = found.workload.journal, found.workload.history
    ((_, image),) = disks_along(journal, found.model, {len(journal)})
    known = history.known(len(history.entries))
    violation: Violation | None = None
    with suppress(OutOfTime):
        violation = found.checker.violation(Disk(image, found.model), known)
    if violation is not None:
        raise HarnessError(
            f"on the undamaged disk, without any crash, {_with_place(violation)}; correct the "
            "check, or the workload"
        )
    for failure in killed:
        if not failure.entries and not done_at(failure.crashes[0]):
            raise HarnessError(
                "on the disk with which the workload starts, "
                f"{_with_place(failure.violation)}; {FAILS_AT_START}"
            )


def _with_place(violation: Violation) -> str:
    """Return the sentence of a violation, with the line of the check that raised it, if known."""
    at = violation.evidence.get("at")
    return violation.statement if at is None else f"{violation.statement}, at {at}"


def judge_of(
    recorded: RecordedWorkload,
    check: Check | None,
    limits: Limits,
    processes: int = 1,
    tick: Tick = never_stop,
    deciding: int | None = None,
    *,
    prints: bool = False,
) -> tuple[RecordedWorkload, Judge]:
    """Return the judge of a recorded workload, and the workload in the form that it judges.

    The output of an interposed check is dropped, unless ``prints`` is True. Else the check runs
    once without any crash; raises ``HarnessError`` if it does not return there.
    """
    if check is None:
        recorded = with_whole_paths(recorded)
        check = default_check(recorded)
    elif recorded.root or takes_one(check, "known"):
        check = InterposedCheck(check, recorded.root or DEFAULT_ROOT, limits, prints=prints)
        if not prints:
            disk = Disk(Disk.from_journal(recorded.journal).unmounted())
            known = recorded.history.known(len(recorded.history.entries))
            check.try_undamaged(Process(disk), known, learns=processes > 1)
    return recorded, Judge(cast("ProcessCheck", check), limits, processes, tick, deciding)
