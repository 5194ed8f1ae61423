"""Repeats a recorded program on a real file system, and counts the crash images that fail.

The program runs on a block device that logs every write and flush, first alone, then beside a
process that makes the file system commit again and again. The kernel mounts the crash images of
the log, and the check of the recording judges each of them.
"""

from __future__ import annotations

import os
import select
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from powercut.calibrate.background import touch_helper
from powercut.calibrate.crash_images import CrashImage, crash_images
from powercut.calibrate.real_file_system import RealFileSystem
from powercut.calibrate.tree import HELPER_FILE
from powercut.calibrate.write_log import LogEntry
from powercut.explorer.dump import write_image
from powercut.fuse.checks_folder import memory_folder
from powercut.fuse.command_check import CheckRunner
from powercut.fuse.image_check import Files, FilesCheck, file_content, link_content
from powercut.fuse.mount import attach, detach, sync_file_system
from powercut.fuse.program import Program, start
from powercut.fuse.recording import Recording
from powercut.fuse.watched_calls import answer, receive
from sim.choices import SeededChoices
from sim.disk.cache.inode import BLOCK_BYTES
from sim.errors import HarnessError

_PIPE_BYTES = 1 << 16


class Confirmation(NamedTuple):
    """The images of one file system: all that were mounted, and those that failed.

    ``refused`` were not mounted by the kernel. ``statements`` are the different failures.
    """

    images: int
    failed: int
    refused: int
    statements: tuple[str, ...]


class _Run(NamedTuple):
    """One run: the log of the device, and its length at each acknowledgement."""

    log: list[LogEntry]
    marks: list[int]


class Confirmer:
    """Confirms one recording on one file system."""

    def __init__(self, recording: Recording, real: RealFileSystem, timeout_s: float) -> None:
        self._recording = recording
        self._real = real
        self._timeout_s = timeout_s
        self._files = None if recording.check else FilesCheck(recording)

    def confirm(self, most_images: int) -> Confirmation:
        """Run the program twice, and check about ``most_images`` crash images.

        Raises ``HarnessError`` if the program prints other lines than in the recording, or leaves
        other files without a check command.
        """
        folder = tempfile.mkdtemp(prefix="powercut-confirm-", dir=memory_folder())
        try:
            images, refused, statements = 0, 0, []
            for committing in (False, True):
                run = self._run(committing=committing)
                for image in crash_images(run.log, run.marks, SeededChoices(0), most_images // 2):
                    images += 1
                    try:
                        statement = self._statement(image, run, folder)
                    except OSError:
                        refused += 1
                    else:
                        statements += [statement] if statement else []
            return Confirmation(images, len(statements), refused, tuple(dict.fromkeys(statements)))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    # -- the program -----------------------------------------------------------------------

    def _run(self, *, committing: bool) -> _Run:
        devices, recording = self._real.devices, self._recording
        devices.create("program")
        try:
            with self._mounted("program"):
                write_image(recording.journal.image, recording.mount_point)
                touch_helper(recording.mount_point)
                sync_file_system(recording.mount_point)
                devices.start_log("program")
                if committing:
                    with _commits(recording.mount_point):
                        marks = self._run_program()
                else:
                    marks = self._run_program()
                    touch_helper(recording.mount_point)
                log = devices.end_log()
                self._must_be_as_recorded()
                return _Run(log, marks)
        finally:
            devices.remove("program")

    def _run_program(self) -> list[int]:
        """Run the program; return the length of the log at each line, and at its end."""
        recording = self._recording
        program = start(recording.command, recording.mount_point)
        try:
            lines = self._serve_until_end(program)
            status = program.exit_status()
        finally:
            program.end()
        if not status:
            lines.append(("exit 0", self._real.devices.log_length()))
        if [text for text, _ in lines] != [text for _, text in recording.acknowledgements]:
            raise HarnessError(
                f"on {self._real.file_system.name} the program ends with exit status {status} and "
                "other lines than in the recording"
            )
        return [mark for _, mark in lines]

    def _serve_until_end(self, program: Program) -> list[tuple[str, int]]:
        poll = select.poll()
        for descriptor in (program.output, program.ended, program.calls):
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        lines: list[tuple[str, int]] = []
        begun = b""
        while True:
            ready = dict(poll.poll())
            if program.calls in ready:
                call = receive(program.calls) if ready[program.calls] & select.POLLIN else None
                if call is not None:
                    answer(program.calls, call, done=False)
                else:
                    poll.unregister(program.calls)
            elif program.output in ready:
                data = os.read(program.output, _PIPE_BYTES)
                mark = self._real.devices.log_length()
                *whole, begun = (begun + data).split(b"\n")
                if not data:
                    poll.unregister(program.output)
                    whole, begun = [begun] if begun else [], b""
                lines += [(os.fsdecode(line), mark) for line in whole]
            elif program.ended in ready:
                return lines

    def _must_be_as_recorded(self) -> None:
        if self._files is None:
            return
        entries = len(self._recording.acknowledgements)
        if self._files.violation(_files(self._recording.mount_point), entries) is not None:
            raise HarnessError(
                "the program does not write the same bytes each time, so its files cannot be "
                "compared with the recording; use a check command"
            )

    # -- the images ------------------------------------------------------------------------

    def _statement(self, image: CrashImage, run: _Run, folder: str) -> str:
        """Mount one image and check it; return how it fails, or an empty text."""
        recording, devices = self._recording, self._real.devices
        entries = sum(mark <= max(image.positions) for mark in run.marks)
        devices.create_crash_image("crash", image.survivors)
        try:
            with self._mounted("crash"):
                if self._files is not None:
                    return late_statement(
                        self._files, _files(recording.mount_point), run.marks, entries
                    )
                lines = [text for _, text in recording.acknowledgements[:entries]]
                outcome = CheckRunner(folder).run(
                    recording.check, recording.mount_point, lines, self._timeout_s
                )
                return "" if outcome.passed else f"the check fails, {outcome}"
        finally:
            devices.remove("crash")

    @contextmanager
    def _mounted(self, name: str) -> Iterator[None]:
        """Mount an image at the path of the recording, for the duration of the context."""
        with self._real.mounted(name) as mounted:
            attach(mounted, self._recording.mount_point)
            try:
                yield
            finally:
                detach(self._recording.mount_point)


def late_statement(check: FilesCheck, found: Files, marks: Sequence[int], entries: int) -> str:
    """Return the failure of files that a crash left after ``entries`` or more lines, else "".

    A line is seen somewhat later than it was printed, so the files may be those of a later one.
    """
    violations = [check.violation(found, number) for number in range(entries, len(marks) + 1)]
    first = violations[0]
    return "" if first is None or None in violations else first.statement


@contextmanager
def _commits(root: str) -> Iterator[None]:
    """Run a process beside the block that makes the file system commit without a pause."""
    process = os.fork()
    if not process:
        with suppress(OSError):
            while True:
                touch_helper(root)
        os._exit(0)
    try:
        yield
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)


def _files(root: str) -> Files:
    found: Files = {}
    for folder, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = Path(folder, name)
            key = f"/{path.relative_to(root)}"
            if path.is_symlink():
                found[key] = link_content(os.readlink(path))
            elif path.is_file() and name != HELPER_FILE:
                found[key] = _content(path)
    return found


def _content(path: Path) -> bytes:
    """Return what is compared of a real file, without reading its holes."""
    blocks: dict[int, bytes] = {}
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        position = 0
        while position < size:
            try:
                start = os.lseek(file.fileno(), position, os.SEEK_DATA)
            except OSError:  # ENXIO: only a hole follows
                break
            block = start // BLOCK_BYTES
            blocks[block] = os.pread(file.fileno(), BLOCK_BYTES, block * BLOCK_BYTES)
            position = (block + 1) * BLOCK_BYTES
    return file_content(size, blocks)
