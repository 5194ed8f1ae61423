"""Runs programs on a real file system, and mounts the crash images that each could leave."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from powercut.calibrate.background import do_background, touch_helper, wait_for_tick
from powercut.calibrate.crash_images import CrashImage, crash_images
from powercut.calibrate.file_system import FileSystem, Kind
from powercut.calibrate.image_device import ImageDevices, image_devices
from powercut.calibrate.observations import Observations
from powercut.calibrate.program import Call, Caller
from powercut.calibrate.real_calls import RealCalls
from powercut.calibrate.requirements import command_path
from powercut.calibrate.row import Program, Row
from powercut.calibrate.tree import outcome_of
from powercut.calibrate.write_log import Flush, LogEntry
from powercut.fuse.mount import mount, path_of, sync_file_system
from sim.choices import SeededChoices
from sim.errors import HarnessError

MOST_IMAGES: Final = 30

_STALE_BYTES: Final = 12 << 20
_BTRFS_FORGET_DEVICE: Final = 0x50009405


class SetupFailed(HarnessError):
    """A set-up call of a program failed, so its crash images would say nothing.

    Cause: the program is wrong. Cure: correct its set-up.
    """


class CannotRecord(HarnessError):
    """A file system cannot be made and mounted on this machine.

    Cause: the kernel or its tools refuse it, for the reason in the message. Cure: remove the
    reason, or leave out this file system.
    """


@dataclass(frozen=True, slots=True)
class _Run:
    """What one run of a program left: its results, and the requests to the device."""

    results: list[str | None]
    marks: list[int]
    log: list[LogEntry]


class Recorder:
    """Records programs on one file system, which is made once."""

    def __init__(self, file_system: FileSystem, devices: ImageDevices) -> None:
        """Make the file system; raises ``OSError`` or ``subprocess.CalledProcessError``."""
        self._file_system = file_system
        self._devices = devices
        self._make_base()

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
            seen=observations.seen(),
            seed=seed,
            seconds=round(time.perf_counter() - began, 2),
        )

    def _make_base(self) -> None:
        """Make the file system, and leave the letter S in blocks that are free."""
        self._devices.create("base")
        with self._attached("base") as path:
            name, *options = self._file_system.mkfs
            command = [command_path(name) or name, *options, path]
            subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - mkfs, our device
        with self._mounted("base") as root:
            touch_helper(root)
            stale = f"{root}/stale"
            with open(stale, "wb") as file:
                file.write(b"S" * _STALE_BYTES)
                file.flush()
                os.fsync(file.fileno())
            os.unlink(stale)
            sync_file_system(root)
        self._devices.become_base("base")
        self._devices.remove("base")

    def _run(self, program: Program) -> _Run:
        self._devices.create("program")
        try:
            with self._mounted("program") as root:
                return self._run_at(root, program)
        finally:
            self._devices.remove("program")

    def _run_at(self, root: str, program: Program) -> _Run:
        caller = Caller(RealCalls(root), lambda path: f"{root}/{path}")
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
            with self._attached("crash") as path:
                try:
                    with self._mounted_device(path) as root:
                        outcome = outcome_of(root)
                except OSError as error:
                    observations.refuse(image, error)
                else:
                    observations.add(image, outcome)
        finally:
            self._devices.remove("crash")

    @contextmanager
    def _mounted(self, name: str) -> Iterator[str]:
        """The path of the root of an image, mounted for the duration of the context."""
        with self._attached(name) as path, self._mounted_device(path) as root:
            yield root

    @contextmanager
    def _attached(self, name: str) -> Iterator[str]:
        with self._devices.attached(name) as device:
            yield device.path

    @contextmanager
    def _mounted_device(self, path: str) -> Iterator[str]:
        system = self._file_system
        mounted = mount(system.kind.value, path, system.options)
        try:
            yield path_of(mounted)
        finally:
            os.close(mounted)
            if system.kind is Kind.BTRFS:
                _forget_btrfs(path)


@contextmanager
def recorder(file_system: FileSystem) -> Iterator[Recorder]:
    """A recorder for ``file_system``. Afterwards its devices, mounts and images are gone.

    Raises ``CannotRecord``.
    """
    with ExitStack() as stack:
        try:
            devices = stack.enter_context(image_devices(file_system.size_bytes))
            made = Recorder(file_system, devices)
        except OSError as error:
            raise CannotRecord(f"cannot record {file_system.name}: {error}") from None
        except subprocess.CalledProcessError as error:
            said = " ".join(error.stderr.decode(errors="replace").split())
            reason = f"{file_system.mkfs[0]} failed: {said}"
            raise CannotRecord(f"cannot record {file_system.name}: {reason}") from None
        yield made


def _forget_btrfs(path: str) -> None:
    """Remove an unmounted device from the list that btrfs keeps of all that it has seen."""
    arguments = bytearray(bytes(8) + path.encode().ljust(4088, b"\0"))
    control = os.open("/dev/btrfs-control", os.O_RDWR | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # Newer kernels keep no unmounted device.
            fcntl.ioctl(control, _BTRFS_FORGET_DEVICE, arguments)
    finally:
        os.close(control)
