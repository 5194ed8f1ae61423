"""Runs programs on a real file system, and mounts the crash images that each could leave."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from powercut.calibrate.background import do_background, touch_helper, wait_for_tick
from powercut.calibrate.crash_images import CrashImage, crash_images
from powercut.calibrate.file_system import FileSystem
from powercut.calibrate.observations import Observations
from powercut.calibrate.program import Call, Caller
from powercut.calibrate.real_file_system import RealFileSystem, real_file_system
from powercut.calibrate.row import Program, Row
from powercut.calibrate.tree import outcome_of
from powercut.calibrate.write_log import Flush, LogEntry
from powercut.fuse.mount import path_of, sync_file_system
from sim.choices import SeededChoices
from sim.errors import HarnessError

MOST_IMAGES: Final = 30


class SetupFailed(HarnessError):
    """A set-up call of a program failed, so its crash images would say nothing.

    Cause: the program is wrong. Cure: correct its set-up.
    """


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of a program: its results, the requests to the device, and their number by call."""

    results: list[str | None]
    marks: list[int]
    log: list[LogEntry]


class _RealCalls:
    """The functions of ``os``, but ``sync`` is for the file system mounted at ``root`` only."""

    open = staticmethod(os.open)
    close = staticmethod(os.close)
    write = staticmethod(os.write)
    pwrite = staticmethod(os.pwrite)
    ftruncate = staticmethod(os.ftruncate)
    posix_fallocate = staticmethod(os.posix_fallocate)
    fsync = staticmethod(os.fsync)
    fdatasync = staticmethod(os.fdatasync)
    rename = staticmethod(os.rename)
    link = staticmethod(os.link)
    unlink = staticmethod(os.unlink)
    symlink = staticmethod(os.symlink)
    mkdir = staticmethod(os.mkdir)
    rmdir = staticmethod(os.rmdir)
    chmod = staticmethod(os.chmod)
    utime = staticmethod(os.utime)

    def __init__(self, root: str) -> None:
        self._root = root

    def sync(self) -> None:
        """Write out everything of the one file system."""
        sync_file_system(self._root)


class Recorder:
    """Records programs on one file system, which is made once."""

    def __init__(self, real: RealFileSystem) -> None:
        self._real = real
        self._file_system = real.file_system
        self._devices = real.devices

    def record(self, program: Program, seed: int, most_images: int = MOST_IMAGES) -> Row:
        """Run ``program`` and mount its crash images, about ``most_images`` at most.

        ``seed`` chooses the sample of images. Raises ``SetupFailed``.
        """
        began = time.perf_counter()
        run = self._run(program)
        images = crash_images(run.log, run.marks, SeededChoices(seed), most_images)
        observations = Observations(run.marks)
        for image in images:
            self._observe(image, observations)
        return Row(
            fs=self._file_system.name,
            kernel=os.uname().release,
            setup=[list(call) for call in program.setup],
            ops=[list(call) for call in program.calls],
            results=run.results,
            marks=run.marks,
            log=[["f"] if isinstance(e, Flush) else ["w", e.offset, e.size] for e in run.log],
            images=len(images),
            mount_failed=observations.refused,
            seen=observations.outcomes(),
            seed=seed,
            seconds=round(time.perf_counter() - began, 2),
        )

    def _run(self, program: Program) -> _Run:
        self._devices.create("program")
        try:
            with self._real.mounted("program") as mounted:
                return self._run_at(path_of(mounted), program)
        finally:
            self._devices.remove("program")

    def _run_at(self, root: str, program: Program) -> _Run:
        caller = Caller(_RealCalls(root), lambda path: f"{root}/{path}")
        try:
            for call in program.setup:
                if error := caller.do(call):
                    raise SetupFailed(f"a set-up call failed: {call!r} with {error}")
            touch_helper(root)
            sync_file_system(root)
            wait_for_tick()
            self._devices.start_log("program")
            results, marks = [], []
            for call in program.calls:
                results.append(self._do(caller, root, call))
                marks.append(self._devices.log_length())
            return _Run(results, marks, self._devices.end_log())
        finally:
            caller.close_all()

    def _do(self, caller: Caller, root: str, call: Call) -> str | None:
        if call[0] != "bg":
            return caller.do(call)
        do_background(root, self._file_system.kind, call)
        return None

    def _observe(self, image: CrashImage, observations: Observations) -> None:
        self._devices.create_crash_image("crash", image.survivors)
        try:
            with self._real.mounted("crash") as mounted:
                outcome = outcome_of(path_of(mounted))
        except OSError as error:
            observations.refuse(image, error)
        else:
            observations.add(image, outcome)
        finally:
            self._devices.remove("crash")


@contextmanager
def recorder(file_system: FileSystem) -> Iterator[Recorder]:
    """A recorder for ``file_system``. Afterwards its devices, mounts and images are gone.

    Raises ``CannotRecord``.
    """
    with real_file_system(file_system) as real:
        yield Recorder(real)
