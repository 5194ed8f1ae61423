"""``python -m system demo``: its output, its files, and every way in which it can end."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from system import cli as command
from system.demo.jobs import job_id
from system.host import real_host
from system.recovery.recovery_report import RecoveryReport
from system.recovery.recovery_text import recovery_text
from system.root import Root
from system.sessions.session_problem import Problem, SessionProblem
from system.storage.codec import seal
from system.storage.log_report import Damage
from tests.meta.source_tree import ROOT, run_python
from tests.unit.system.demos import acknowledgements, contents, demo, log_of, received_jobs
from tests.unit.system.faulty_files import FaultyFiles


def refused(root: Path, *arguments: str) -> str:
    """The one sentence of a demo that must end with exit code 2."""
    result = demo(root, *arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    return result.stderr


def test_every_result_is_received_once_and_each_call_is_acknowledged(tmp_path: Path) -> None:
    result = demo(tmp_path / "root", "--jobs", "6")

    lines = result.stdout.splitlines()
    assert (result.exit_code, result.stderr) == (0, "")
    assert lines[:2] == [
        f'root "{tmp_path}/root"', "recovered epoch=1 sessions=0 living=0 lines=0",
    ]  # fmt: skip
    assert lines[2].startswith("ack create demo.lead ")
    assert lines[3:8] == ["ack send demo.team", *(f"ack send {job_id(n)}" for n in range(1, 5))]
    assert received_jobs(result) == [1, 2, 3, 4, 5, 6]
    received = [
        line.split(" ")[1] for line in acknowledgements(result) if line.startswith("received")
    ]
    assert [line for line in acknowledgements(result) if "acknowledge" in line] == [
        f"ack acknowledge {message_id}" for message_id in received
    ]
    assert lines[-1] == "done jobs=6"


def test_a_demo_that_was_done_is_repeated_without_an_effect(tmp_path: Path) -> None:
    first = demo(tmp_path, "--jobs", "3")
    left = contents(tmp_path)

    second = demo(tmp_path, "--jobs", "3")

    assert "recovered epoch=2 sessions=6 living=3" in second.stdout
    assert [
        line for line in acknowledgements(first) if "send" in line or "create" in line
    ] == acknowledgements(second)
    assert contents(tmp_path) == left


def test_more_jobs_on_the_same_root_are_added_in_either_framing(tmp_path: Path) -> None:
    demo(tmp_path, "--jobs", "2")

    result = demo(tmp_path, "--jobs", "5", "--framing", "pending")

    assert (result.exit_code, received_jobs(result)) == (0, [3, 4, 5])


def test_a_directory_with_other_things_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_bytes(b"x")

    assert "holds 'thesis.tex'" in refused(tmp_path)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_root_in_use_is_refused(tmp_path: Path) -> None:
    host = real_host(str(tmp_path))
    root = Root.open(host.files, host.ids)

    assert "another runtime holds it" in refused(tmp_path)

    root.close()
    assert demo(tmp_path, "--jobs", "1").exit_code == 0


def test_a_root_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "root.json").write_bytes(seal({"format": 9}) + b"\n")

    assert "format=9" in refused(tmp_path)


def test_a_root_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    assert refused(tmp_path / "file") == (
        f"Error: --root {tmp_path}/file: File exists ({tmp_path}/file); name another directory\n"
    )
    assert "name another directory" in refused(tmp_path / "file" / "below")
    assert refused(tmp_path / "odd\udcff").endswith(
        "the path is not UTF-8, as SQLite requires it; name another directory\n"
    )


def test_a_name_that_another_agent_has_is_reported(tmp_path: Path) -> None:
    demo(tmp_path, "--jobs", "1")
    log = tmp_path / log_of(tmp_path, "lead")
    lines = log.read_bytes().splitlines()
    agent = json.loads(lines[1])
    del agent["crc"]
    agent["data"]["request_id"] = "somebody else"
    log.write_bytes(b"\n".join([lines[0], seal(agent), *lines[2:], b""]))

    assert "the name 'lead' is taken" in refused(tmp_path)


@pytest.mark.parametrize(
    "arguments", [("--jobs", "0"), ("--jobs", "many"), ("--framing", "none"), ("--jobz", "1")]
)
def test_a_wrong_argument_is_a_usage_mistake(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert demo(tmp_path / "root", *arguments).exit_code == 2
    assert not (tmp_path / "root").exists()


def test_an_empty_root_is_a_usage_mistake_and_not_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    result = CliRunner().invoke(command.cli, ["demo", "--root", ""])

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "Error: --root is empty; name a directory, '.' is the one you are in\n"
    )
    assert os.listdir(tmp_path) == []


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FaultyFiles:
    """The files of every demo on ``tmp_path``, whose calls can be made to fail."""
    host = real_host(str(tmp_path))
    faulty = FaultyFiles(host.files)
    monkeypatch.setattr(command, "real_host", lambda _root: replace(host, files=faulty))
    return faulty


@pytest.mark.parametrize(
    ("number", "reported"),
    [
        (errno.EROFS, "Read-only file system (runtime.lock); mount its file system writable, or"),
        (errno.EACCES, "Permission denied (runtime.lock); give this user access to it, or"),
    ],
)
def test_a_root_that_may_not_be_changed_is_refused_with_the_remedy(
    tmp_path: Path, faulty: FaultyFiles, number: int, reported: str
) -> None:
    demo(tmp_path, "--jobs", "1")
    faulty.fail("open-write", "runtime.lock", number)
    assert f"--root {tmp_path}: {reported} use a" in refused(tmp_path)


def test_a_disk_that_refuses_is_one_sentence_and_the_root_can_go_on(
    tmp_path: Path, faulty: FaultyFiles
) -> None:
    faulty.fail("fsync", "runtime.lock", errno.EIO)

    assert refused(tmp_path, "--jobs", "1") == (
        f"Error: --root {tmp_path}: Input/output error (runtime.lock); "
        "repair the disk and start again\n"
    )
    assert received_jobs(demo(tmp_path, "--jobs", "1")) == [1]


def test_unfinished_jobs_of_a_stopped_agent_are_reported_and_done_next_time(
    tmp_path: Path, faulty: FaultyFiles
) -> None:
    demo(tmp_path, "--jobs", "1")
    faulty.fail("fdatasync", log_of(tmp_path, "writer").as_posix(), errno.EIO)

    result = demo(tmp_path, "--jobs", "2")
    again = demo(tmp_path, "--jobs", "2")

    assert (result.exit_code, received_jobs(result)) == (1, [])
    assert result.stderr == (
        "jobs without a result: 2, because agent 'writer' is stopped until the next "
        "start: its barrier failed ([Errno 5] Input/output error: "
        f"'{log_of(tmp_path, 'writer')}'); correct that and start again\n"
    )
    assert (again.exit_code, received_jobs(again)) == (0, [2])


def test_a_lead_that_is_stopped_at_its_creation_leaves_every_job_and_is_reported(
    tmp_path: Path, faulty: FaultyFiles
) -> None:
    faulty.fail("fdatasync", "events.jsonl", errno.EIO)

    result = demo(tmp_path, "--jobs", "6")
    again = demo(tmp_path, "--jobs", "6")

    assert (result.exit_code, acknowledgements(result)) == (1, [])
    assert result.stderr == (
        "jobs without a result: 1 to 6, because the next start decides "
        "whether agent 'lead' exists; correct that and start again\n"
    )
    assert (again.exit_code, received_jobs(again)) == (0, [1, 2, 3, 4, 5, 6])


def test_an_error_of_closing_is_reported_beside_the_finished_jobs(
    tmp_path: Path, faulty: FaultyFiles
) -> None:
    demo(tmp_path, "--jobs", "1")
    # Taking up the conversation of each of the three replaces its record, closing it again.
    faulty.fail("replace", "session.json", errno.ENOSPC, nth=7, sticky=True)

    result = demo(tmp_path, "--jobs", "2")

    assert (result.exit_code, received_jobs(result)) == (1, [2])
    assert result.stderr.startswith(
        "some files could not be written at the end; the next start writes them: agents/"
    )
    assert result.stderr.endswith("make room and repeat the call\n")
    faulty.faults.clear()
    assert demo(tmp_path, "--jobs", "2").exit_code == 0


def test_an_unreachable_user_is_reported(tmp_path: Path, faulty: FaultyFiles) -> None:
    faulty.fail("fdatasync", "user/events.jsonl", errno.EIO)

    result = demo(tmp_path, "--jobs", "1")
    again = demo(tmp_path, "--jobs", "1")

    assert (result.exit_code, received_jobs(result)) == (1, [])
    assert result.stderr.startswith(
        "jobs without a result: 1, because nothing more reaches USER until the next "
        "start: its barrier failed"
    )
    assert (again.exit_code, received_jobs(again)) == (0, [1])


# A shell lets background jobs ignore the signal, and children inherit that.
INTERRUPTIBLE = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "runpy.run_module('system', run_name='__main__')"
)


def test_ctrl_c_closes_the_root_and_the_next_start_carries_on(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, "demo", "--root", str(tmp_path), "--jobs", "2000"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    while not process.stdout.readline().startswith("received"):
        pass
    process.send_signal(signal.SIGINT)
    _stdout, stderr = process.communicate(timeout=60)

    assert process.returncode == 130
    assert stderr == "interrupted and closed; start it again to continue\n"
    again = demo(tmp_path, "--jobs", "1")
    assert again.exit_code == 0
    assert "had been open" not in again.stdout
    assert "under way" not in again.stdout


def test_a_reader_that_goes_away_ends_the_demo_without_a_traceback(tmp_path: Path) -> None:
    script = f"{sys.executable} -m system demo --root {tmp_path} | head -n 1"
    ran = subprocess.run(
        ["/bin/sh", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )

    assert (ran.stdout, ran.stderr) == (f'root "{tmp_path}"\n', "")


def test_an_output_that_becomes_full_ends_the_demo_and_the_root_can_go_on(tmp_path: Path) -> None:
    output = os.memfd_create("output", os.MFD_ALLOW_SEALING)
    os.ftruncate(output, 1_000)
    fcntl.fcntl(output, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW)
    command = (sys.executable, "-m", "system", "demo", "--root", str(tmp_path), "--jobs", "20")
    ran = subprocess.run(
        command, cwd=ROOT, stdout=output, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    os.close(output)

    assert ran.returncode == 2
    assert ran.stderr == "the output: Operation not permitted; write it to another place\n"
    assert received_jobs(demo(tmp_path, "--jobs", "20"))[-1] == 20


def test_help_says_what_the_demo_is_for() -> None:
    ran = run_python("-m", "system", "demo", "--help")

    assert ran.returncode == 0
    assert "Kill it at any moment" in ran.stdout


def test_a_recovery_that_put_nothing_right_is_one_line() -> None:
    report = RecoveryReport(epoch=3, sessions=4, living=2, lines=70)

    assert list(recovery_text(report)) == ["recovered epoch=3 sessions=4 living=2 lines=70"]


def test_everything_that_a_recovery_put_right_is_in_its_words() -> None:
    report = RecoveryReport(
        epoch=2, sessions=1, living=1, lines=5, unknown_lines=4, torn_bytes=17, redone=3,
        undispatched=2,
        damaged=[Damage("agents/a/events.jsonl", 40, 9, "no seal", tail=False, quarantine="q")],
        missing={"a": ((3, 3), (5, 8)), "0" * 32: ((2, 2),)},
        problems=[
            SessionProblem("b", Problem.FAILED, "EIO"),
            SessionProblem("l", Problem.NO_RECORD, "there is no record of this session"),
            SessionProblem("m", Problem.DAMAGED, "no seal", "agents/m/session.json.quarantine.1"),
            SessionProblem("n", Problem.NEWER, "v=9"),
            SessionProblem("o", Problem.LOG_DAMAGED, "it does not say which agent it is"),
            SessionProblem("p", Problem.LOG_NEWER, "v=9"),
        ],
        detached=["c"], vanished=["q"],
        orphans=["d", "e"], swept=["f"], suspended=["g"], ended=["h"],
        lost_turns={"i": ("t1", "t2"), "j": ("t3",)}, leaks=["agentic: k"],
    )  # fmt: skip

    assert list(recovery_text(report)) == [
        "recovered epoch=2 sessions=1 living=1 lines=5",
        "  outbox entries that were missing in other logs: 3",
        "  of them refused by the disk so far: 2",
        "  conversations that had been open, suspended: 1",
        "  turns that were under way, to be run again: 3",
        "  agents whose end was finished: 1",
        "  lines of events that this version does not know: 4",
        "  bytes of unfinished lines, cut off: 17",
        "  sessions that never became agents, removed: 2",
        "  temporary files, removed: 1",
        "  agents/a/events.jsonl: 9 damaged bytes at offset 40 were put aside in q: no seal",
        "  the log of USER: lines are missing: 2",
        "  session a: lines are missing: 3, 5 to 8",
        "  session b: the disk refused to read or write it; recover again (EIO)",
        "  session l: it had no record; it was written again (there is no record of this session)",
        (
            "  session m: its record was damaged, and was put aside in "
            "agents/m/session.json.quarantine.1; it was written again (no seal)"
        ),
        "  session n: its record is of a newer format, and was left as it is (v=9)",
        (
            "  session o: too little of its log is left; what there is was kept, and is not served "
            "(it does not say which agent it is)"
        ),
        (
            "  session p: its log is of a newer format, and was left as it is; "
            "start the newer version that has written it (v=9)"
        ),
        "  session c: its parent cannot be found; it counts as a root",
        "  agent q: it has sent messages, and nothing of its session is left",
        "  a provider keeps a conversation that no session has: agentic: k",
    ]
