"""``powercut show``: every operation of a recording, with its number, and its acknowledgements."""

from __future__ import annotations

import os
from pathlib import Path

from powercut.fuse.recording import Acknowledgement, Recording, save_recording
from sim.disk.cache.operation import SyncFailure
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from tests.unit.disk.test_failed_syncs_reported import FailingSyncs
from tests.unit.fuse.recorded import needs_mounts, powercut_in, recorded

SHOWN = """\
 1  mkdir of /d
 2  create of /d/t
 3  write of /d/t, bytes 0 to 4
 4  write of /d/t, bytes 4 to 8, stores to mapped memory
 5  fsync of /d/t, data only
    ack 1 (saved)
 6  rename of /d/t to /f
 7  symlink of /l to f
 8  link of /g
 9  truncate of /d/t to 2 bytes
10  allocate of /d/t to 9 bytes
11  write of /f, bytes 0 to 1
12  fsync of /f, data only, pages of bytes 0 to 1
13  change of attributes of /f
14  unlink of /g
15  rmdir of /d
16  sync of everything
17  failed fsync of /d/t
18  drop of pages of /d/t, bytes 4096 to the end
19  drop of pages of /d/t, bytes 0 to 4096
    ack 2 (exit 0)
"""


def program(process: Process) -> None:
    process.mkdir("/d")
    file = process.open("/d/t", os.O_CREAT | os.O_RDWR)
    process.write(file, b"data")
    process.write(file, b"more")
    process.fdatasync(file)
    process.rename("/d/t", "/f")
    process.symlink("f", "/l")
    process.link("/f", "/g")
    process.ftruncate(file, 2)
    process.posix_fallocate(file, 0, 9)
    process.pwrite(process.open("/f", os.O_WRONLY | os.O_DSYNC), b"x", 0)
    process.chmod("/f", 0o600)
    process.unlink("/g")
    process.rmdir("/d")
    process.sync()
    process.disk.interposer = FailingSyncs(SyncFailure.LYING)
    process.fsync(file)
    process.posix_fadvise(file, 1, 0, os.POSIX_FADV_DONTNEED)
    process.posix_fadvise(file, 0, 5000, os.POSIX_FADV_DONTNEED)


def test_each_kind_of_operation(tmp_path: Path) -> None:
    disk = Disk()
    program(Process(disk))
    recording = Recording(
        command=("program",), setup="", check="", mount_point="/disk", exit_status=0,
        acknowledgements=(Acknowledgement(5, "saved"), Acknowledgement(19, "exit 0")),
        notes=(), journal=disk.journal, mapped=(4,),
    )  # fmt: skip
    save_recording(recording, tmp_path / "it.recording")
    result = powercut_in(tmp_path, "show", "it.recording")
    assert (result.stdout, result.stderr, result.returncode) == (SHOWN, "", 0)


@needs_mounts
def test_names_of_files_are_one_line(tmp_path: Path) -> None:
    recorded(tmp_path, "echo data > 'a\nb'")
    result = powercut_in(tmp_path, "show", "it.recording")
    assert result.stdout.splitlines()[0] == r"1  create of /a\nb"


def test_another_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "it.recording").write_text("{}\n")
    result = powercut_in(tmp_path, "show", "it.recording")
    assert result.returncode == 2
    assert result.stderr == "Error: it.recording is not a recording of `powercut record`\n"
