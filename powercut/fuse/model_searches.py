"""The searches for the images of several models, in several processes at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from powercut.counted import counted
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.fuse.check_runs import CheckRuns
from powercut.fuse.crash_search import Search, search
from powercut.fuse.parallel import in_processes
from sim.disk.crash.persistence import PersistenceModel


def images_of_models(
    workload: RecordedWorkload, models: Sequence[PersistenceModel], runs: CheckRuns
) -> dict[str, Search]:
    """Return the distinct images of each model, by its name.

    ``runs.show`` is called several times a second with the number of models that are done. Raises
    ``Stopped`` as ``runs.tick``.
    """
    processes = min(runs.processes, len(models))
    found: dict[str, Search] = {}

    def work(number: int) -> Iterator[tuple[str, Search]]:
        for model in models[number::processes]:
            yield model.name, search(workload.journal, workload.history, model)

    def tick() -> None:
        runs.show(f"searching images: {len(found)} of {counted(len(models), 'model')}")
        runs.tick()

    found.update(in_processes(processes, work, tick))
    return {model.name: found[model.name] for model in models}
