"""Processes that a program leaves are ended with it; if it has written nothing, it must wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.fuse.recorded import needs_mounts, powercut_in, recorded

pytestmark = needs_mounts

NOTE = (
    "processes that the program had started still ran when it ended, and were ended: what they "
    "write later is not seen; let the program wait for them"
)


@pytest.mark.parametrize("way", ["{} &", "setsid {} &", "(setsid {} &)"])
def test_a_program_that_leaves_its_work_to_another_process_must_wait_for_it(
    tmp_path: Path, way: str
) -> None:
    later = way.format("sh -c 'sleep 60; echo late > f'")
    result = powercut_in(tmp_path, "record", "--", "sh", "-c", later)
    assert result.returncode == 2
    assert result.stderr.startswith("Error: the program changed nothing in ")
    assert result.stderr.endswith(f"; {NOTE}\n")


def test_a_process_that_has_ended_is_not_meant(tmp_path: Path) -> None:
    # Its parent has ended before it, and no process has waited for it.
    pid = tmp_path / "pid"
    orphan = f"sh -c \"sh -c 'echo \\$\\$ > {pid}' &\""
    # The first attempts may come before there is a number.
    ended = f"until grep -q State:.Z /proc/$(cat {pid})/status; do sleep 0; done 2> /dev/null"
    result = powercut_in(tmp_path, "record", "--", "sh", "-c", f"{orphan}; {ended}")
    assert result.returncode == 2
    assert result.stderr.startswith("Error: the program changed nothing in ")
    assert "still ran" not in result.stderr


def test_a_program_that_has_written_may_leave_a_server(tmp_path: Path) -> None:
    assert recorded(tmp_path, "echo new > f; sleep 60 &").notes == ()
