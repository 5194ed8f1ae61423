"""The demo on a root that was damaged between two starts: it never says done when it is not."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from system.demo.results import acknowledged_jobs, spans
from system.host import real_host
from system.storage.codec import seal
from tests.unit.system.demos import demo, log_of, received_jobs

BEFORE = "2"
AFTER = "4"


def change_line(log: Path, number: int, change: Callable[[bytes], bytes]) -> None:
    lines = log.read_bytes().split(b"\n")
    lines[number - 1] = change(lines[number - 1])
    log.write_bytes(b"\n".join(lines))


def flipped(line: bytes) -> bytes:
    return line[:40] + b"??" + line[42:]


def newer(line: bytes) -> bytes:
    members = json.loads(line)
    del members["crc"]
    return seal({**members, "v": 9})


def damage_the_line_that_says_who_it_is(log: Path) -> None:
    change_line(log, 2, flipped)


def empty(log: Path) -> None:
    log.write_bytes(b"")


def remove(log: Path) -> None:
    shutil.rmtree(log.parent)


def put_a_newer_line_in(log: Path) -> None:
    change_line(log, 3, newer)


def put_a_directory_in_its_place(log: Path) -> None:
    log.unlink()
    log.mkdir()


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (damage_the_line_that_says_who_it_is, "too little of its log is left"),
        (empty, "too little of its log is left"),
        (remove, "it has sent messages, and nothing of its session is left"),
        (put_a_newer_line_in, "start the newer version that has written it"),
        (put_a_directory_in_its_place, "it is not a regular file"),
    ],
)
def test_unfinished_jobs_of_a_damaged_lead_are_reported_at_every_start(
    tmp_path: Path, damage: Callable[[Path], None], why: str
) -> None:
    demo(tmp_path, "--jobs", BEFORE)
    damage(tmp_path / log_of(tmp_path, "lead"))

    for _start in range(2):
        result = demo(tmp_path, "--jobs", AFTER)

        assert (result.exit_code, result.stderr.count("\n"), received_jobs(result)) == (1, 1, [])
        assert result.stderr.startswith("jobs without a result: 3 to 4, because ")
        assert why in result.stderr
        assert result.stderr.endswith("; correct that and start again, or use another root\n")
        assert "done" not in result.stdout


def test_jobs_that_were_done_before_the_damage_are_done(tmp_path: Path) -> None:
    demo(tmp_path, "--jobs", BEFORE)
    remove(tmp_path / log_of(tmp_path, "lead"))

    result = demo(tmp_path, "--jobs", BEFORE)

    assert (result.exit_code, result.stderr) == (0, "")
    assert "nothing of its session is left" in result.stdout
    assert result.stdout.endswith("done jobs=2\n")


def test_damage_that_costs_no_result_leaves_nothing_undone(tmp_path: Path) -> None:
    demo(tmp_path, "--jobs", BEFORE)
    change_line(tmp_path / log_of(tmp_path, "lead"), 1, flipped)

    result = demo(tmp_path, "--jobs", AFTER)

    assert (result.exit_code, received_jobs(result)) == (0, [3, 4])


def test_a_result_that_is_missing_in_the_log_of_user_is_reported(tmp_path: Path) -> None:
    demo(tmp_path, "--jobs", "1")
    log = tmp_path / "user/events.jsonl"
    assert b'"job":1' in log.read_bytes().splitlines()[0]
    change_line(log, 1, flipped)

    result = demo(tmp_path, "--jobs", "1")

    assert (result.exit_code, received_jobs(result)) == (1, [])
    assert result.stderr == (
        "jobs without a result: 1, because the log of USER: lines are missing: 1; "
        "correct that and start again, or use another root\n"
    )


def test_a_log_of_user_that_was_emptied_is_filled_again(tmp_path: Path) -> None:
    demo(tmp_path, "--jobs", BEFORE)
    (tmp_path / "user/events.jsonl").write_bytes(b"")

    result = demo(tmp_path, "--jobs", BEFORE)

    assert (result.exit_code, received_jobs(result)) == (0, [1, 2])


def test_a_result_counts_when_it_was_acknowledged(tmp_path: Path) -> None:
    demo(tmp_path, "--jobs", "3")
    log = tmp_path / "user/events.jsonl"
    assert acknowledged_jobs(real_host(str(tmp_path)).files) == {1, 2, 3}
    last = log.read_bytes().splitlines(keepends=True)[-1]
    assert b"message.delivered" in last

    os.truncate(log, log.stat().st_size - len(last))

    assert len(acknowledged_jobs(real_host(str(tmp_path)).files)) == 2


@pytest.mark.parametrize(
    ("numbers", "words"), [([], ""), ([1], "1"), ([1, 2, 3, 5, 7, 8], "1 to 3, 5, 7 to 8")]
)
def test_numbers_are_formatted_as_spans(numbers: list[int], words: str) -> None:
    assert spans(numbers) == words
