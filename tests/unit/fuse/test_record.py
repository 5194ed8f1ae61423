"""``powercut record``: the journal of a program, and the positions of its acknowledgements."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from powercut.fuse.recording import Recording, load_recording
from sim.disk.cache.operation import Rename, Sync, Write
from sim.disk.crash.persistence import MODELS
from sim.disk.disk import Disk
from sim.errors import HarnessError
from tests.meta.source_tree import ROOT
from tests.unit.fuse.recorded import needs_mounts, powercut_in, recorded

pytestmark = needs_mounts

UNNAMED = """
import os
os.mkdir("d")
fd = os.open("d", os.O_TMPFILE | os.O_RDWR)
os.write(fd, b"data")
os.rename("d", "e")
os.fsync(fd)
os.link(f"/proc/self/fd/{fd}", "f", src_dir_fd=os.open("/", os.O_RDONLY), follow_symlinks=True)
os.write(fd, b"more")
"""
OPEN_AND_UNLINKED = """
import os
fd = os.open("f", os.O_CREAT | os.O_RDWR)
os.unlink("f")
os.write(fd, b"unseen")
assert os.pread(fd, 9, 0) == b"unseen"
os.mkdir("d")
"""
MAPPED = """
import mmap, os
fd = os.open("m", os.O_CREAT | os.O_RDWR)
os.ftruncate(fd, 4096)
with mmap.mmap(fd, 4096) as pages:
    pages[:5] = b"bytes"
    pages.flush()
assert os.pread(fd, 5, 0) == b"bytes"
"""


def operations(recording: Recording) -> list[str]:
    """The operations of a recording, each as its kind and its paths."""
    return [
        f"{type(each).__name__} {each.path}"
        + (f" {each.to_path}" if isinstance(each, Rename) else "")
        for each in recording.journal
    ]


def acknowledged(recording: Recording) -> list[tuple[int, str]]:
    return [(after, text) for after, text in recording.acknowledgements]


def files_after(recording: Recording) -> dict[str, bytes]:
    """The files that the program left, by reading its journal again."""
    return Disk.from_journal(recording.journal).files()


def test_a_line_is_acknowledged_between_the_operations_that_surround_it(tmp_path: Path) -> None:
    recording = recorded(
        tmp_path, "echo first; echo data > t; echo second; mv t f; sync f; sync .; echo third"
    )
    assert operations(recording) == [
        "Create /t", "Write /t", "Rename /t /f", "Sync /f", "Sync /",
    ]  # fmt: skip
    assert acknowledged(recording) == [
        (0, "first"), (2, "second"), (5, "third"), (5, "exit 0"),
    ]  # fmt: skip
    assert files_after(recording) == {"/f": b"data\n"}
    assert Path(recording.command[0]).is_absolute()


def test_program_removes_a_directory_of_which_one_listing_does_not_hold_all_names(
    tmp_path: Path,
) -> None:
    recording = recorded(
        tmp_path, "mkdir d; for i in $(seq 400); do : > d/name-$i; done; rm -r d; ls -a; nproc"
    )
    assert recording.exit_status == 0
    assert [text for _, text in acknowledged(recording)] == [".", "..", "1", "exit 0"]


WRITTEN_BY_ANOTHER_USER = """
import os
with open('f', 'wb') as file:
    os.fchmod(file.fileno(), 0o4777)
os.stat('f')
if not os.fork():
    os.setuid(1000)
    with open('f', 'r+b', buffering=0) as file:
        file.write(b'x')
    os._exit(0)
os.wait()
print(oct(os.stat('f').st_mode))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed")
def test_a_write_by_another_user_takes_the_setuid_bit_at_once(tmp_path: Path) -> None:
    result = powercut_in(tmp_path, "record", "--", sys.executable, "-c", WRITTEN_BY_ANOTHER_USER)
    assert "  after operation 4: 0o100777" in result.stdout.splitlines()


def test_a_line_without_an_end_counts_and_a_failed_program_has_no_exit(tmp_path: Path) -> None:
    recording = recorded(tmp_path, "echo data > f; printf half; exit 3")
    assert acknowledged(recording) == [(2, "half")]
    assert recording.exit_status == 3


def test_the_setup_is_durable_and_not_in_the_journal(tmp_path: Path) -> None:
    recording = recorded(tmp_path, "cat f; echo new > f", "--setup", "echo old > f")
    assert acknowledged(recording) == [(0, "old"), (2, "exit 0")]
    assert recording.journal.image.files() == {"/f": b"old\n"}
    assert operations(recording) == ["Resize /f", "Write /f"]


def test_an_unlinked_file_works_while_it_is_open(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(OPEN_AND_UNLINKED, encoding="ascii")
    recording = recorded(tmp_path, f"{sys.executable} {script}")
    assert operations(recording) == ["Create /f", "Unlink /f", "Write /f", "Create /d"]
    assert files_after(recording) == {}


def test_an_unnamed_file_has_no_path_until_it_is_linked(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(UNNAMED, encoding="ascii")
    assert operations(recorded(tmp_path, f"{sys.executable} {script}")) == [
        *("Create /d", "Create /d", "Write an unnamed file", "Rename /d /e"),
        *("Sync an unnamed file", "Link /f", "Write /f"),
    ]


@pytest.mark.parametrize(
    ("barrier", "is_counted"),
    [("pages.flush()", True), ("os.fdatasync(fd)", True), ("os.fsync(fd)", False), ("pass", False)],
)
def test_stores_to_mapped_memory_are_named_and_so_are_their_barriers(
    tmp_path: Path, barrier: str, *, is_counted: bool
) -> None:
    script = tmp_path / "program.py"
    script.write_text(MAPPED.replace("pages.flush()", barrier), encoding="ascii")
    recording = recorded(tmp_path, f"{sys.executable} {script}")
    stores, *barriers = recording.notes
    assert stores.startswith("stores to mapped memory of /m reached")
    assert stores.endswith("until then a kill seems to lose them, which it does not")
    counted = (
        "each msync or fdatasync of /m counted for the whole file; an msync of some pages "
        "guarantees less"
    )
    assert barriers == [counted] * is_counted
    (written,) = recording.mapped
    assert isinstance(recording.journal[written - 1], Write)
    assert files_after(recording) == {"/m": b"bytes".ljust(4096, b"\0")}


def test_special_files_are_refused_and_named(tmp_path: Path) -> None:
    recording = recorded(tmp_path, "mkfifo p 2>/dev/null; echo $?; mkdir d")
    assert acknowledged(recording) == [(0, "1"), (1, "exit 0")]
    assert recording.notes == ("special files are not modelled and were refused: /p",)


EXCHANGE = """
import ctypes, os
os.close(os.open("f", os.O_CREAT))
os.close(os.open("g", os.O_CREAT))
assert ctypes.CDLL(None).renameat2(-100, b"f", -100, b"g", 2) == -1
"""
EXTENDED_ATTRIBUTE = """
import errno, os
os.close(os.open("f", os.O_CREAT))
os.close(os.open("g", os.O_CREAT))
for path, key in (("f", "user.key"), ("g", "system.posix_acl_access")):
    try:
        os.setxattr(path, key, b"value")
    except OSError as error:
        assert error.errno == errno.EOPNOTSUPP, error
"""
HOLE = """
import ctypes
file = open("f", "w")
file.write("data")
file.flush()
assert ctypes.CDLL(None).fallocate(file.fileno(), 3, ctypes.c_long(0), ctypes.c_long(9)) == -1
"""


@pytest.mark.parametrize(
    ("script", "note"),
    [
        (EXCHANGE, "exchanges of names (RENAME_EXCHANGE) are not modelled and were refused: /g"),
        (EXTENDED_ATTRIBUTE, "extended attributes are not modelled and were refused: /f"),
        (HOLE, "holes and other modes of fallocate are not modelled and were refused: /f"),
    ],
)
def test_a_refused_call_is_named(tmp_path: Path, script: str, note: str) -> None:
    (tmp_path / "program.py").write_text(script, encoding="ascii")
    recording = recorded(tmp_path, f"{sys.executable} {tmp_path / 'program.py'}")
    assert recording.exit_status == 0
    assert recording.notes == (note,)


def test_a_mistake_ends_with_the_calls_that_were_refused(tmp_path: Path) -> None:
    result = powercut_in(tmp_path, "record", "--", "sh", "-c", "mkfifo p 2>/dev/null")
    assert result.returncode == 2
    assert result.stderr.endswith("; special files are not modelled and were refused: /p\n")


def test_a_write_through_o_dsync_is_followed_by_a_barrier(tmp_path: Path) -> None:
    recording = recorded(tmp_path, "dd if=/dev/zero of=f bs=10 count=2 oflag=dsync 2>/dev/null")
    assert operations(recording) == [
        "Create /f", "Write /f", "Sync /f", "Write /f", "Sync /f",
    ]  # fmt: skip


RANGES = """
import ctypes, os, sys
fd = os.open("f", os.O_CREAT | os.O_RDWR)
os.write(fd, b"data")
assert ctypes.CDLL(None).sync_file_range(fd, 0, 0, int(sys.argv[1])) == 0
"""


def test_barriers_that_fuse_does_not_pass_on_reach_the_disk(tmp_path: Path) -> None:
    recording = recorded(tmp_path, "echo > f; sync; echo synced; mkdir d; sync -f d; sync -f /")
    assert operations(recording) == [
        "Create /f", "Write /f", "Sync ", "Create /d", "Sync ",
    ]  # fmt: skip
    assert acknowledged(recording) == [(3, "synced"), (5, "exit 0")]


def test_a_synced_range_counts_as_a_barrier_and_is_named(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(RANGES, encoding="ascii")
    recording = recorded(tmp_path, f"{sys.executable} {script} 7")
    assert operations(recording) == ["Create /f", "Write /f", "Sync /f"]
    assert recording.notes == ("sync_file_range of /f counted as fdatasync, which guarantees more",)


def test_a_range_that_the_program_does_not_wait_for_is_not_synced(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(RANGES, encoding="ascii")
    wait_before, write, wait_after = 1, 2, 4
    for flags in (0, wait_before, write, wait_after, wait_before | write):
        recording = recorded(tmp_path, f"{sys.executable} {script} {flags}")
        assert operations(recording) == ["Create /f", "Write /f"]
        assert recording.notes == ()


def test_a_barrier_is_for_data_only_if_the_program_asks_for_that(tmp_path: Path) -> None:
    once = "dd if=/dev/zero of=f bs=10 count=1 status=none oflag="
    recording = recorded(tmp_path, f"echo > f; sync f; sync -d f; {once}sync; {once}dsync")
    barriers = [each for each in recording.journal if isinstance(each, Sync)]
    assert [each.data_only for each in barriers] == [False, True, False, True]


def test_a_file_has_the_path_of_its_directory_after_a_rename(tmp_path: Path) -> None:
    recording = recorded(tmp_path, "mkdir d; echo > d/f; mv d e; echo >> e/f")
    assert operations(recording)[-2:] == ["Rename /d /e", "Write /e/f"]


def test_a_recording_is_read_under_every_model(tmp_path: Path) -> None:
    journal = recorded(tmp_path, "mkdir d; echo data > d/f; ln d/f g").journal
    for model in MODELS.values():
        assert Disk.from_journal(journal, model).files() == {"/d/f": b"data\n", "/g": b"data\n"}


def test_other_files_and_newer_versions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "it.recording"
    recorded(tmp_path, "echo > f")
    header, _, journal = path.read_bytes().partition(b"\n")
    newer = json.loads(header) | {"version": 2}
    path.write_bytes(json.dumps(newer).encode() + b"\n" + journal)
    with pytest.raises(HarnessError, match="has version 2 of the format"):
        load_recording(path)
    path.write_bytes(header + b"\n" + journal[:-40])
    with pytest.raises(HarnessError, match="is damaged"):
        load_recording(path)
    for other in (journal, b"[" * 100_000):
        path.write_bytes(other)
        with pytest.raises(HarnessError, match="is not a recording"):
            load_recording(path)
    with pytest.raises(HarnessError, match="cannot read"):
        load_recording(tmp_path / "missing")


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("sh", "-c", "true"), "the program changed nothing in "),
        (("sh", "-c", "exit 3"), "the program ended with exit status 3 and changed nothing in "),
        (("sh", "-c", "echo > f; exit 3"), "nothing was acknowledged, so nothing can be lost"),
        (("no-such-program",), "there is no program 'no-such-program' that can be executed"),
    ],
)
def test_a_program_that_says_nothing_is_a_mistake(
    tmp_path: Path, command: tuple[str, ...], sentence: str
) -> None:
    result = powercut_in(tmp_path, "record", "--", *command)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"Error: {sentence}")
    assert len(result.stderr.splitlines()) == 1
    assert os.listdir(tmp_path) == []


def test_a_script_with_a_relative_path_is_explained(tmp_path: Path) -> None:
    (tmp_path / "save.sh").write_text("echo > f\n", "ascii")
    result = powercut_in(tmp_path, "record", "--", "sh", "save.sh")
    assert result.returncode == 2
    assert result.stderr.endswith(
        "; a script, or any other file outside of it, needs an absolute path\n"
    )


@pytest.mark.parametrize(
    ("mode", "end"),
    [
        (0o644, "is not executable; chmod +x it, or give its interpreter first, such as sh\n"),
        (0o755, "Exec format error; a script begins with a line such as #!/bin/sh\n"),
    ],
)
def test_a_script_that_cannot_be_executed_is_explained(tmp_path: Path, mode: int, end: str) -> None:
    (tmp_path / "save.sh").write_text("echo > f\n", "ascii")
    (tmp_path / "save.sh").chmod(mode)
    result = powercut_in(tmp_path, "record", "--", "./save.sh")
    assert result.returncode == 2
    assert result.stderr.endswith(end)


def test_control_characters_in_output_are_escaped(tmp_path: Path) -> None:
    script = r"echo > $(printf 'a\033[1mb'); printf 'c\033[0md\n'"
    result = powercut_in(tmp_path, "try", "--", "sh", "-c", script)
    assert result.returncode == 1
    assert r": c\x1b[0md" in result.stdout
    assert r"data of /a\x1b[1mb," in result.stdout
    assert "\033" not in result.stdout


def test_a_long_acknowledgement_is_cut(tmp_path: Path) -> None:
    result = powercut_in(tmp_path, "record", "--", "sh", "-c", "echo > f; printf '%0500d' 1")
    assert f"  after operation 2: {'0' * 99}…" in result.stdout.splitlines()


def test_a_verdict_needs_no_output(tmp_path: Path) -> None:
    command = f"{sys.executable} -m powercut try --json out -- sh -c 'echo > f'"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    shell = ["/bin/sh", "-c", f"{command} >&- 2>&- <&-"]
    assert subprocess.run(shell, cwd=tmp_path, env=environment, check=False).returncode == 1
    assert '"verdict": "violation"' in (tmp_path / "out").read_text("ascii")


def test_a_failing_setup_is_a_mistake(tmp_path: Path) -> None:
    result = powercut_in(tmp_path, "record", "--setup", "exit 4", "--", "true")
    assert result.returncode == 2
    assert result.stderr == "Error: the setup command ended with exit status 4: exit 4\n"


ON_A_TERMINAL = """
import signal
from powercut.cli.main import main
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_the_program_and_leaves_nothing(tmp_path: Path, number: int) -> None:
    script = f"echo > f; echo $$ > {tmp_path}/pid; exec sleep 1000"
    process = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL, "record", "--", "sh", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
    )
    with process:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert process.poll() is None
        process.send_signal(number)
        assert process.wait(30) == 130
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()
    assert os.listdir(tmp_path) == ["pid"]
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
