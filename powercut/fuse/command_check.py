"""A check command: judges one image by its exit status, in a directory that holds the image."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from powercut.explorer.dump import write_image
from powercut.fuse.disk_mount import MountWay
from powercut.fuse.mount import attach, detach, enter_mount_namespace, mount
from powercut.fuse.orphans import adopt_orphans, end_orphans
from sim.disk.crash.image import Image

_MOST_OUTPUT: Final = 4096

ACKS: Final = "POWERCUT_ACKS"
"""The environment variable that names the file with the acknowledged lines."""


class CommandEnd(NamedTuple):
    """The end of one check: its exit status (None: it ran out of time), and its last line.

    Lines without a letter or a digit, such as one that points at a column, do not count.
    """

    exit_status: int | None
    last_line: str

    @property
    def passed(self) -> bool:
        return self.exit_status == 0

    def __str__(self) -> str:
        if self.exit_status is None:
            return "it did not end within the time of --timeout"
        line = f": {self.last_line}" if self.last_line else ""
        return f"exit status {self.exit_status}{line}"


class CheckPlace:
    """The directory in which a process runs its checks, one after the other.

    If the machine allows it, this is a mount in memory at the path of the recording, in a
    namespace of this process. ``folder`` is a directory for other files.
    """

    def __init__(self, mount_point: str, way: MountWay, folder: str) -> None:
        """Enter a namespace, in a process that runs checks only; raises ``OSError``."""
        self._is_mounted = way.is_private
        if way.is_private:
            enter_mount_namespace()
            self.directory = mount_point
        else:
            self.directory = f"{folder}/{os.getpid()}"
        self._runner = CheckRunner(folder)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._terminate)

    def run(
        self, command: str, image: Image, acknowledged: Sequence[str], timeout_s: float
    ) -> CommandEnd:
        """Run a check in a fresh directory with the content of ``image``."""
        self._open()
        try:
            write_image(image, self.directory)
            return self._runner.run(command, self.directory, acknowledged, timeout_s)
        finally:
            self._close()

    def _open(self) -> None:
        if self._is_mounted:
            mounted = mount("tmpfs", "powercut", {"mode": "0755"}, 0)
            attach(mounted, self.directory)
            os.close(mounted)
        else:
            os.mkdir(self.directory)

    def _close(self) -> None:
        if self._is_mounted:
            detach(self.directory)
        else:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _terminate(self, _number: int, _frame: object) -> None:
        self._runner.end_process()


class CheckRunner:
    """Runs check commands in directories that exist. ``folder`` is for temporary files."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._child: subprocess.Popen[bytes] | None = None
        self._others: frozenset[int] = frozenset()
        self._is_starting = False
        self._is_ending = False

    def run(
        self, command: str, directory: str, acknowledged: Sequence[str], timeout_s: float
    ) -> CommandEnd:
        """Run a shell command; ``POWERCUT_ACKS`` names a file with the acknowledged lines."""
        variables = acknowledged_in(self._folder, acknowledged)
        self._others = adopt_orphans()
        with tempfile.TemporaryFile(dir=self._folder) as output:
            self._is_starting = True
            self._child = subprocess.Popen(
                ["/bin/sh", "-c", command],
                cwd=directory,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._is_starting = False
            if self._is_ending:
                self.end_process()
            try:
                status: int | None = self._child.wait(timeout_s)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                self.kill()
            output.seek(max(0, output.seek(0, os.SEEK_END) - _MOST_OUTPUT))
            lines = os.fsdecode(output.read()).strip().splitlines()
            lines = [line for line in lines if any(map(str.isalnum, line))] or lines
        if status is not None and status < 0:
            status = 128 - status
        return CommandEnd(status, lines[-1] if lines else "")

    def end_process(self) -> None:
        """End the check and this process; a check that is being started ends soon after.

        The handler of a signal may call it at any time.
        """
        self._is_ending = True
        if self._is_starting:
            return
        if self._child is not None:
            self._kill(self._child.pid)
            # Popen.wait would wait for its lock, which the call that was interrupted may hold.
            with suppress(ChildProcessError):
                os.waitpid(self._child.pid, 0)
            end_orphans(self._others)
        os._exit(128 + signal.SIGTERM)

    def kill(self) -> None:
        """End every process of the check, daemons as well."""
        if self._child is not None:
            self._kill(self._child.pid)
            self._child.wait()
            end_orphans(self._others)
            self._child = None

    def _kill(self, group: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def acknowledged_in(folder: str, acknowledged: Sequence[str]) -> dict[str, str]:
    """Write the acknowledged lines to a file of this process; return the variable that names it."""
    path = f"{folder}/{os.getpid()}.acks"
    write_acknowledged(Path(path), acknowledged)
    return {ACKS: path}


def write_acknowledged(path: Path, acknowledged: Sequence[str]) -> None:
    """Write a file of acknowledged lines, as a check reads it; raises ``OSError``."""
    path.write_bytes(os.fsencode("".join(f"{line}\n" for line in acknowledged)))
