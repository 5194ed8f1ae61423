"""``powercut try --dump``: the disk of each finding, and the command that repeats its check."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.unit.fuse.recorded import needs_mounts, powercut_in, recorded

pytestmark = needs_mounts

SETUP = """
echo old > f; chown 5:6 f; mkdir empty; ln -s f soft; truncate -s 1G holes
echo row > log; chmod 640 log; ln log hard
"""
SAVE = "echo new > t; mv t f; echo saved"
CHECK = """# f is new, or old and not saved
test "$(cat f)" = new || { test "$(cat f)" = old && ! grep -q saved "$POWERCUT_ACKS"; } ||
{ echo "f has '$(cat f)'"; exit 1; }
"""
MODEL = ("--model", "ext4")
OLD = ("--setup", SETUP)
DIRECTORY = re.compile(r"^  dump      (.+)$", re.MULTILINE)
COMMAND = re.compile(r"^  check     (cd .*?\n')$", re.MULTILINE | re.DOTALL)
STATEMENT = re.compile(r"^  the check fails, exit status 1: (.+)$", re.MULTILINE)


def test_the_check_fails_in_the_same_way_on_every_disk(tmp_path: Path) -> None:
    options = (*OLD, "--check", CHECK, *MODEL, "--dump", "out")
    result = powercut_in(tmp_path, "try", *options, "--json", "it", "--", "sh", "-c", SAVE)
    assert result.returncode == 1, result.stderr
    directories, commands = DIRECTORY.findall(result.stdout), COMMAND.findall(result.stdout)
    findings = json.loads((tmp_path / "it").read_text(encoding="ascii"))["findings"]
    assert [each["dump"] for each in findings] == directories
    statements = STATEMENT.findall(result.stdout)
    assert statements == ["f has ''", "f has 'old'"]
    for directory, command, statement in zip(directories, commands, statements, strict=True):
        assert re.fullmatch("out/[0-9a-f]{8}", directory)
        assert command.startswith(f"cd {directory} && POWERCUT_ACKS={tmp_path}/{directory}.acks ")
        again = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (again.returncode, again.stdout) == (1, f"{statement}\n")


def test_a_disk_is_written_as_the_crash_left_it(tmp_path: Path) -> None:
    recorded(tmp_path, SAVE, *OLD)
    options = ("--recording", "it.recording", "--model", "scc", "--dump", "out")
    first = powercut_in(tmp_path, "try", *options)
    assert "  check  " not in first.stdout
    (directory,) = DIRECTORY.findall(first.stdout)
    lost = tmp_path / directory
    assert lost.with_suffix(".acks").read_text(encoding="ascii") == "saved\nexit 0\n"
    names = {each.name for each in lost.iterdir()}
    assert names == {"empty", "soft", "log", "hard", "holes", "f", "t"}
    assert [*(lost / "empty").iterdir()] == []
    assert (lost / "soft").readlink() == Path("f")
    assert (lost / "log").samefile(lost / "hard")
    assert (lost / "log").stat().st_mode & 0o7777 == 0o640
    assert (lost / "holes").stat().st_size == 1 << 30
    assert (lost / "holes").stat().st_blocks == 0
    if os.geteuid() == 0:
        assert ((lost / "f").stat().st_uid, (lost / "f").stat().st_gid) == (5, 6)
    again = powercut_in(tmp_path, "try", *options, "--json", "-")
    assert f"  dump      cannot dump to {directory}: File exists\n" in again.stderr
    assert [each["dump"] for each in json.loads(again.stdout)["findings"]] == [""]


@pytest.mark.parametrize("size", [9, 200_000])
def test_the_disk_of_a_crashed_recovery_is_that_of_its_crash(tmp_path: Path, size: int) -> None:
    """The recovery replaces /f, of a few sectors or of very many, without an fsync."""
    content = f"yes | head -c {size}"
    program = f"{content} > t; sync t; mv t new; sync .; echo saved"
    check = (
        f"if test -e new; then cat new > t; mv t f; rm new; fi; {content} | cmp -s f || "
        '{ test "$(cat f)" = old && ! grep -q saved "$POWERCUT_ACKS"; }'
    )
    options = (*OLD, "--nested", "--check", check, *MODEL, "--dump", "out")
    result = powercut_in(tmp_path, "try", *options, "--", "sh", "-c", program)
    assert result.returncode == 1, result.stdout + result.stderr
    (directory,) = DIRECTORY.findall(result.stdout)
    assert not (tmp_path / directory / "new").exists()
    assert (tmp_path / directory / "f").read_bytes() not in {b"old\n", (b"y\n" * size)[:size]}


def test_the_lost_bytes_of_a_large_recovery_are_those_of_its_disk(tmp_path: Path) -> None:
    """The program writes so little that its own sectors are lost one by one."""
    content = "yes | head -c 200000"
    check = (
        f"if test -e new; then {content} > t; mv t f; rm new; fi; {content} | cmp -s - f || "
        '{ test "$(cat f)" = old && ! grep -q saved "$POWERCUT_ACKS"; }'
    )
    program = "echo x > t; sync t; mv t new; sync .; echo saved"
    options = (*OLD, "--nested", "-n", "100", "--check", check, *MODEL, "--dump", "out")
    result = powercut_in(tmp_path, "try", *options, "--", "sh", "-c", program)
    assert "  cause     in the recovery, no fsync of /f between write of /t" in result.stdout
    lost = re.search(r"  lost      data of /f, bytes (\d+) to (\d+)$", result.stdout, re.MULTILINE)
    directory, *_ = DIRECTORY.findall(result.stdout)
    found = (tmp_path / directory / "f").read_bytes()
    assert lost is not None
    assert found.index(b"\0") == int(lost[1])
    assert len(found.rstrip(b"\0")) in {int(lost[1]), len(found)}
