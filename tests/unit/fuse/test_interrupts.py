"""Signals that end ``powercut try``: it prints the results so far, and no process is left."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.meta.source_tree import ROOT, run_python
from tests.sample import in_the_gate
from tests.unit.fuse.recorded import needs_mounts

pytestmark = needs_mounts

CARELESS = "echo new > t; mv t f"
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
CORES = pytest.mark.parametrize(
    "cores", [1, pytest.param(2, marks=pytest.mark.skipif(os.cpu_count() == 1, reason="one core"))]
)
ON_CORES = """
import os, signal, sys
from powercut.cli.main import main
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(sys.argv.pop(1))])
main()
"""


def started(folder: Path, cores: int, *arguments: str) -> subprocess.Popen[str]:
    """Start a command of powercut on this number of cores."""
    return subprocess.Popen(
        [sys.executable, "-c", ON_CORES, str(cores), *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    """Wait until the process has written the file."""
    while not path.exists() or not path.read_text():
        assert process.poll() is None, process.communicate()


def has_ended(number: int) -> bool:
    """Whether a process has ended, or ends soon, whether or not its parent has waited for it."""
    try:
        process = os.pidfd_open(number)
    except ProcessLookupError:
        return True
    ready, _, _ = select.select([process], [], [], 10)
    os.close(process)
    return bool(ready)


def hanging_after(calls: int, folder: Path) -> str:
    """A check that fails without a new file, and does not end when it is called once more."""
    counted = f"echo >> {folder}/calls; [ $(wc -l < {folder}/calls) -le {calls} ]"
    hang = f"{{ sleep 1000 & echo $! > {folder}/pid; wait; }}"
    return f"{counted} || {hang}; ! grep -q exit $POWERCUT_ACKS || grep -q new f"


def trying(folder: Path, cores: int, check: str, *options: str) -> subprocess.Popen[str]:
    """Start to try a careless program whose check ends after its processes only."""
    options = ("--setup", "echo old > f", "--timeout", "1000", "--check", check, *options)
    process = started(folder, cores, "try", *options, "--", "sh", "-c", CARELESS)
    wait_for(folder / "pid", process)
    return process


@CORES
@pytest.mark.parametrize("number", in_the_gate(SIGNALS, lambda number: number == signal.SIGTERM))
def test_an_interrupt_reports_what_the_checks_have_found(
    tmp_path: Path, cores: int, number: int
) -> None:
    with trying(tmp_path, cores, hanging_after(14, tmp_path), "--json", "out") as process:
        process.send_signal(number)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert errors == "interrupted: these are the results so far\n"
    assert "FAILED  CheckFailed" in output
    assert "cause     the search for a missing fsync was interrupted, or its time was" in output
    assert re.search(r"^ posix .* stopped ", output, re.MULTILINE), output
    assert json.loads((tmp_path / "out").read_text())["verdict"] == "violation"
    assert len(list((tmp_path / ".powercut" / "failures").iterdir())) == 1
    assert has_ended(int((tmp_path / "pid").read_text()))


@CORES
def test_an_interrupt_ends_a_recovery_with_its_processes(tmp_path: Path, cores: int) -> None:
    on_mount = "case $(stat -f -c %T .) in fuse*)"
    hang = f"{on_mount} sleep 1000 & echo $! > {tmp_path}/pid; wait;; esac"
    check = f"cat f > seen; {hang}; ! grep -q exit $POWERCUT_ACKS || grep -q new f"
    with trying(tmp_path, cores, check, "--nested") as process:
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "checked 30 of 30 images" in output
    assert "FAILED  CheckFailed" in output
    assert "note: the check wrote nothing" not in output
    assert has_ended(int((tmp_path / "pid").read_text()))


def test_checks_end_with_a_powercut_that_is_killed(tmp_path: Path) -> None:
    with trying(tmp_path, 1, hanging_after(4, tmp_path)) as process:
        process.kill()
    assert has_ended(int((tmp_path / "pid").read_text()))


DAEMON = "setsid sh -c 'echo $$ > {}; exec sleep 1000' & while ! test -s {}; do :; done"


def test_a_daemon_ends_with_its_program(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    script = f"echo > f; {DAEMON.format(pid, pid)}"
    with started(tmp_path, 1, "record", "--", "sh", "-c", script) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "2 operations" in output
    assert has_ended(int(pid.read_text()))


@pytest.mark.parametrize(
    "nested", [(), pytest.param(("--nested",), marks=pytest.mark.stress)], ids=["", "nested"]
)
def test_a_daemon_ends_with_its_check(tmp_path: Path, nested: tuple[str, ...]) -> None:
    # The next check would meet the daemon of the one before.
    pid = tmp_path / "pid"
    pid.write_text("none")
    check = f"kill -0 $(cat {pid}) && exit 1; rm {pid}; echo > x; {DAEMON.format(pid, pid)}"
    options = (*nested, "--check", check, "--json", "out")
    with started(tmp_path, 1, "try", *options, "--", "sh", "-c", CARELESS) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert json.loads((tmp_path / "out").read_text())["flaky"] == 0
    assert has_ended(int(pid.read_text()))


def test_an_interrupt_before_a_failure_proves_nothing(tmp_path: Path) -> None:
    with trying(tmp_path, 1, hanging_after(4, tmp_path), "--json", "out") as process:
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert re.search(r"^ posix +unknown .* stopped ", output, re.MULTILINE), output
    assert json.loads((tmp_path / "out").read_text())["verdict"] == "stopped"
    assert not (tmp_path / ".powercut").exists()


def test_a_second_interrupt_ends_the_report(tmp_path: Path) -> None:
    with trying(tmp_path, 1, hanging_after(14, tmp_path)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        fill(process)
        process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == "interrupted: these are the results so far\n"
        while not select.select([process.stderr], [], [], 0.1)[0]:
            # A signal within a second of the first one belongs to it.
            process.send_signal(signal.SIGINT)
        assert process.stderr.readline() == "interrupted\n"
        assert "FAILED" not in process.stdout.read()
        assert process.wait(60) == 130


def fill(process: subprocess.Popen[str]) -> None:
    """Fill the pipe to which a process prints, so that it waits in its next line."""
    pipe = os.open(f"/proc/{process.pid}/fd/1", os.O_WRONLY | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while True:
            os.write(pipe, b"\n")
    os.close(pipe)


@pytest.mark.parametrize("number", in_the_gate(SIGNALS, lambda number: number == signal.SIGHUP))
def test_an_interrupt_ends_a_program_that_has_a_file_open(tmp_path: Path, number: int) -> None:
    # The kernel asks the mount for a flush when the program ends, and waits for the answer.
    program = (
        "import os, time\n"
        "os.open('f', os.O_CREAT | os.O_WRONLY)\n"
        f"with open({str(tmp_path / 'pid')!r}, 'w') as file:\n"
        "    file.write(str(os.getpid()))\n"
        "time.sleep(1000)"
    )
    with started(tmp_path, 1, "record", "--", sys.executable, "-c", program) as process:
        wait_for(tmp_path / "pid", process)
        process.send_signal(number)
        try:
            assert process.wait(30) == 130
        finally:
            process.kill()
    assert has_ended(int((tmp_path / "pid").read_text()))


AT_A_WAIT = """
import os, signal, sys
from powercut.fuse.command_check import CheckRunner

runner = CheckRunner(sys.argv[1])
signal.signal(signal.SIGTERM, lambda _number, _frame: runner.end_process())
waitpid = os.waitpid

def interrupted(process, options):
    os.waitpid = waitpid
    os.kill(os.getpid(), signal.SIGTERM)
    return waitpid(process, options)

os.waitpid = interrupted
runner.run("sleep 1000", sys.argv[1], (), 1000)
"""


def test_a_check_ends_also_if_the_signal_comes_while_it_is_waited_for(tmp_path: Path) -> None:
    result = run_python("-c", AT_A_WAIT, str(tmp_path), timeout_s=30)
    assert result.returncode == 128 + signal.SIGTERM, result.stderr


BEFORE_A_CHECK = """
import sys
from powercut.fuse.command_check import CheckRunner

CheckRunner(sys.argv[1]).end_process()
"""


def test_a_process_that_has_begun_no_check_ends_at_once(tmp_path: Path) -> None:
    result = run_python("-c", BEFORE_A_CHECK, str(tmp_path), timeout_s=30)
    assert result.returncode == 128 + signal.SIGTERM, result.stderr
