"""``state.db`` on a device that fails a write of a checkpoint; needs root, FUSE and loop devices.

On ext4 of Linux 6.18, plain SQLite then leaves a malformed database: the next checkpoint succeeds,
its pages go to blocks that stay unwritten, and the next commit overwrites the log.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

import pytest

from powercut.fuse.mount import attach, enter_mount_namespace
from system.durable.errors import StateStopped
from system.durable.open_state import open_state
from system.durable.stores import Stores
from system.durable.trigger import TRIGGERS, Trigger, TriggerSpec
from system.host import real_host
from tests.litmus.failing_images import (
    FAILS_AGAIN,
    after_power_cut,
    file_system_on_failing_images,
)
from tests.unit.durable.durable_bench import KnownSessions

T = TypeVar("T")

FILLER = 500_000 * "x"
"""After nine such bodies the log has the 1,000 pages for which a checkpoint waits."""
MARK = 31 * FAILS_AGAIN
"""So long that one page only has a run that the device looks for, wherever pages end."""


@pytest.mark.parametrize("name", ["ext4", "xfs", "btrfs"])
def test_no_commit_is_lost_if_the_device_fails_a_write_of_a_checkpoint(
    name: str, tmp_path: Path
) -> None:
    with file_system_on_failing_images(name) as system:
        system.devices.create("run")
        with system.mounted("run") as mounted:
            system.devices.start_log("run")
            emitted, is_stopped = in_process(partial(at_place, mounted, tmp_path, fail_and_go_on))
            length = system.devices.log_length()
        with after_power_cut(system, length) as mounted:
            found = in_process(partial(at_place, mounted, tmp_path, sound))
    assert set(found) == set(emitted)
    assert is_stopped


def fail_and_go_on(root: str) -> tuple[list[str], bool]:
    """Emit triggers in two processes, the first of which has a checkpoint that fails.

    Returns the ids of those that were acknowledged, and whether the first database stopped.
    """
    early, is_stopped = in_process(partial(emit, root, [FILLER + MARK + FILLER, *7 * [FILLER]]))
    late, _ = in_process(partial(emit, root, []))
    return early + late, is_stopped


def emit(root: str, bodies: list[str]) -> tuple[list[str], bool]:
    """Emit triggers with these bodies, and five small ones, unless the database stops."""
    host = real_host(root)
    state = open_state(host, None)
    emitter = Stores(host, 1, KnownSessions()).emitter
    emitted = list[str]()
    with suppress(StateStopped):
        for body in [*bodies, *"abcde"]:
            spec = TriggerSpec("IMMEDIATE", body, session_id="s")
            emitted.append(state.transact(partial(emitter.emit, spec=spec)).trigger_id)
    is_stopped = state.stopped is not None
    state.close()
    return emitted, is_stopped


def sound(root: str) -> list[str]:
    """Return the ids of the triggers whose rows are as they were written."""
    state = open_state(real_host(root), None)
    rows = state.transact(lambda transaction: list(TRIGGERS.select(transaction, "TRUE")))
    return [row.id for _, row in rows if isinstance(row, Trigger)]


def at_place(mounted: int, path: Path, call: Callable[[str], T]) -> T:
    """Return ``call(path)`` with the mount at ``path``, which only this process sees from now on.

    SQLite resolves symbolic links, so it cannot open a database below ``/proc/self/fd``.
    """
    enter_mount_namespace()
    attach(mounted, str(path))
    return call(str(path))


def in_process(call: Callable[[], T]) -> T:
    """Return the result of ``call`` in a process of its own; raises ``EOFError`` if it fails."""
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send_result, args=(theirs, call))
    process.start()
    theirs.close()
    try:
        result: T = ours.recv()
    finally:
        process.join()
    return result


def _send_result(pipe: Connection, call: Callable[[], object]) -> None:
    pipe.send(call())
