"""Explore: run a workload once, and check every disk that a crash of it may leave.

The workload runs on a recording disk. At each operation of the journal every crash image is
built that the persistence model allows, distinguished from earlier ones, booted and checked.
The workload is not run again, so the cost grows linearly with its operations.
"""

from __future__ import annotations

from collections.abc import Iterable

from powercut.explorer.judge import Check, Judge, default_check
from powercut.explorer.limits import Limits
from powercut.explorer.recorded_workload import RecordedWorkload, Workload, record
from powercut.explorer.verdicts import Exploration
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, PersistenceModel, model_named


def explore(
    workload: Workload,
    check: Check | None = None,
    model: str | PersistenceModel = "posix",
    limits: Limits | None = None,
    image: Image | None = None,
) -> Exploration:
    """Run ``workload(process, ack)`` once, and check every crash of it under ``model``.

    The workload uses ``process`` as it would use ``os``. It calls ``ack(value)`` when
    ``value`` must survive every later crash, and may call ``ack.attempt(value)`` before it
    starts to write ``value``.

    ``check(process, known)`` is called with the disk that the next boot finds, and with the
    values that were acknowledged and in flight at the crash. It raises a ``Violation``; any
    other exception counts as a recovery that fails. Without a check, the values are mappings
    from path to content (None for no file), and after a crash the files must show the last
    acknowledged value or one in flight.

    ``image`` is the disk on which the workload starts; the default is an empty one.

    Raises ``HarnessError`` for an unknown model, for a workload that fails by itself, and for
    values that are no mappings if there is no check.

    Example::

        def save(process, ack):
            fd = process.open("/note", os.O_CREAT | os.O_WRONLY)
            process.write(fd, b"hello")
            process.fsync(fd)
            ack({"/note": b"hello"})

        assert explore(save, model="ext4-ordered").safe
    """
    found = model_named(model) if isinstance(model, str) else model
    recorded = record(workload, found, image or Image.empty())
    return judged(recorded, check, [found], limits)[found.name]


def explore_models(
    workload: Workload,
    check: Check | None = None,
    limits: Limits | None = None,
    image: Image | None = None,
) -> dict[str, Exploration]:
    """Explore under every persistence model; return the verdicts by model, strongest first.

    The workload runs once, on a disk under ``posix``, which promises least.
    """
    models = tuple(MODELS.values())
    recorded = record(workload, models[-1], image or Image.empty())
    return judged(recorded, check, models, limits)


def judged(
    recorded: RecordedWorkload,
    check: Check | None,
    models: Iterable[PersistenceModel],
    limits: Limits | None = None,
) -> dict[str, Exploration]:
    """Return the verdicts on a recorded workload by the name of the model, in their order."""
    judge = Judge(check or default_check(recorded), limits or Limits())
    return {model.name: judge.explore(recorded, model) for model in models}
