"""Programs whose verdict under every persistence model is known independently.

The correct ones must be safe under every model, the others must be caught: a false alarm is
the most expensive failure of a simulator, a missed bug the most dangerous.
"""

from __future__ import annotations

import dbm.dumb
import importlib.util
import json
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from oracles.history import History, Known
from oracles.violation import SilentEmpty, TornRecord, Violation
from powercut.explorer.explore import explore, explore_models
from powercut.explorer.limits import Limits
from powercut.explorer.verdicts import Exploration
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS
from sim.disk.disk import Disk

ALL = frozenset(MODELS)
WRITE = os.O_CREAT | os.O_TRUNC | os.O_WRONLY


def _sync_root(process: Process) -> None:
    descriptor = process.open("/", os.O_RDONLY | os.O_DIRECTORY)
    process.fsync(descriptor)
    process.close(descriptor)


def _atomic_write(process: Process, data: bytes, *, fsync: bool, fsync_directory: bool) -> None:
    descriptor = process.open("/f.tmp", WRITE, 0o644)
    process.write(descriptor, data)
    if fsync:
        process.fsync(descriptor)
    process.close(descriptor)
    process.replace("/f.tmp", "/f")
    if fsync_directory:
        _sync_root(process)


def _writer(
    *, fsync: bool, fsync_directory: bool, acknowledge: bool
) -> Callable[[Process, History], None]:
    """Return a workload that creates /f and replaces it, and acknowledges if ``acknowledge``."""

    def workload(process: Process, ack: History) -> None:
        for data in (b"old value", b"the new value"):
            ack.attempt({"/f": data})
            _atomic_write(process, data, fsync=fsync, fsync_directory=fsync_directory)
            if acknowledge:
                ack({"/f": data})

    return workload


def _safe(verdicts: dict[str, Exploration]) -> frozenset[str]:
    assert all(verdict.exhaustive for verdict in verdicts.values())
    return frozenset(name for name, verdict in verdicts.items() if verdict.safe)


# From the definitions of the models. Without fsync, only models that order data before the
# rename leave complete files; the first rename is to a new name, which btrfs does not order
# either. No model makes a rename durable by itself, so without a sync of the directory an
# acknowledgement is wrong under all of them.
VERDICTS = {
    # fsync, fsync of the directory: models under which it is atomic, and those where durable
    (False, False): (frozenset({"scc", "ext4-journal"}), frozenset()),
    (False, True): (
        frozenset({"scc", "ext4-journal"}), frozenset({"scc", "ext4-journal"}),
    ),
    (True, False): (ALL, frozenset()),
    (True, True): (ALL, ALL),
}  # fmt: skip

UNLIMITED = Limits(states_per_point=100_000)


@pytest.mark.parametrize(("fsync", "fsync_directory"), VERDICTS)
def test_an_atomic_write_is_safe_under_the_models_of_the_table(
    fsync: bool, fsync_directory: bool
) -> None:
    def verdicts(*, acknowledge: bool) -> frozenset[str]:
        workload = _writer(fsync=fsync, fsync_directory=fsync_directory, acknowledge=acknowledge)
        return _safe(explore_models(workload, limits=UNLIMITED))

    atomic, durable = VERDICTS[fsync, fsync_directory]
    assert verdicts(acknowledge=False) == atomic
    assert verdicts(acknowledge=True) == durable


def _replace_existing(process: Process, ack: History) -> None:
    ack.attempt({"/f": b"the new value"})
    _atomic_write(process, b"the new value", fsync=False, fsync_directory=False)


def _image_with_old_value() -> Image:
    disk = Disk()
    _atomic_write(Process(disk), b"old value", fsync=True, fsync_directory=True)
    return disk.snapshot()


def test_replacing_a_file_without_fsync_is_atomic_under_models_whose_rename_waits() -> None:
    image = _image_with_old_value()
    safe = {
        model
        for model in MODELS
        if explore(_replace_existing, model=model, image=image, limits=UNLIMITED).safe
    }
    assert safe == {"scc", "ext4-journal"}


_VERSIONS = (b"old value", b"the first", b"the second", b"the third")


def _replace_again(process: Process, ack: History, *, fsync_again: bool) -> None:
    for number, data in enumerate(_VERSIONS[1:]):
        temporary = f"/t{number % 2}"
        descriptor = process.open(temporary, WRITE, 0o644)
        process.write(descriptor, data)
        process.fsync(descriptor)
        process.replace(temporary, "/f")
        if fsync_again:
            process.fsync(descriptor)
        process.close(descriptor)
    ack("replaced")


def _check_version(process: Process, known: Known) -> None:
    del known
    with process.open_file("/f", "rb") as file:
        found = file.read()
    if found not in _VERSIONS:
        raise Violation("the file has no version of its content", found=found)


@pytest.mark.parametrize("fsync_again", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_replacements_without_a_barrier_on_the_directory_leave_one_of_the_versions(
    model: str, fsync_again: bool
) -> None:
    work = partial(_replace_again, fsync_again=fsync_again)
    found = explore(
        work, _check_version, model=model, image=_image_with_old_value(), limits=UNLIMITED
    )
    assert (found.safe, found.exhaustive) == (True, True)


def _create_and_replace(process: Process, ack: History) -> None:
    descriptor = process.open("/f", WRITE, 0o644)
    process.write(descriptor, _VERSIONS[0])
    process.fsync(descriptor)
    process.close(descriptor)
    ack("created")
    _replace_again(process, ack, fsync_again=False)


def _check_created(process: Process, known: Known) -> None:
    if known.acknowledged:
        _check_version(process, known)


def test_a_name_that_only_fsync_of_its_file_made_durable_survives_replacements() -> None:
    found = explore_models(_create_and_replace, _check_created, limits=UNLIMITED)
    # Under posix, fsync of a file does not make its name durable.
    assert _safe(found) == ALL - {"posix"}


@pytest.mark.parametrize("model", MODELS)
def test_no_program_that_replaces_files_survives_a_torn_rename(model: str) -> None:
    workload = _writer(fsync=True, fsync_directory=True, acknowledge=True)
    assert explore(workload, model=model).safe
    assert not explore(workload, model=MODELS[model].with_torn_rename()).safe


def _rewrite_json_in_place(process: Process, ack: History) -> None:
    for count in range(2):
        value = json.dumps({"count": count}).encode()
        ack.attempt({"/state.json": value})
        descriptor = process.open("/state.json", WRITE, 0o644)
        process.write(descriptor, value)
        process.fsync(descriptor)
        process.close(descriptor)
        _sync_root(process)
        ack({"/state.json": value})


@pytest.mark.parametrize("model", MODELS)
def test_rewriting_json_in_place_is_caught(model: str) -> None:
    result = explore(_rewrite_json_in_place, model=model)
    assert not result.safe
    assert {type(failure.violation) for failure in result.failures} & {SilentEmpty, TornRecord}


# -- dbm.dumb keeps its index in memory until it is closed ---------------------------------


class _Files:
    """The functions of ``io`` and ``os`` that ``dbm.dumb`` uses, on a simulated disk."""

    def __init__(self, process: Process) -> None:
        self.open = process.open_file
        for name in ("unlink", "rename", "chmod", "stat"):
            setattr(self, name, getattr(process, name))
        self.fsencode = os.fsencode


def _dumb_on(process: Process) -> Any:
    """Load a copy of ``dbm.dumb`` that uses this disk."""
    assert dbm.dumb.__file__ is not None
    spec = importlib.util.spec_from_file_location("dumb_on_disk", dbm.dumb.__file__)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    files = _Files(process)
    for names in (module, module._Database):
        names._io = names._os = files
    return module


def _store_in_dumb(process: Process, ack: History) -> None:
    database = _dumb_on(process).open("/store", "c")
    for key in ("a", "b"):
        database[key] = b"value of " + key.encode()
        ack(key)
    database.close()


def _check_dumb(process: Process, known: Known) -> None:
    database = _dumb_on(process).open("/store", "c")
    lost = [key for key in known.acknowledged if database.get(key) is None]
    if lost:
        raise Violation("stored keys are lost", lost=lost)


def test_dbm_dumb_loses_keys_under_a_plain_kill() -> None:
    result = explore(_store_in_dumb, _check_dumb, model="scc")
    kinds = {failure.crashes[0].kind for failure in result.failures}
    assert not result.safe
    assert "kill" in kinds


def test_the_check_on_dbm_dumb_accepts_a_clean_close() -> None:
    disk = Disk()
    history = History(lambda: disk.operations)
    _store_in_dumb(Process(disk), history)
    _check_dumb(Process(Disk(disk.snapshot())), history.known(len(history.entries)))
