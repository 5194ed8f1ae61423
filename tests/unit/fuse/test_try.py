"""``powercut try``: verdicts on shell programs, the contract of the check, bad input."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from powercut.fuse.checks_folder import memory_folder
from tests.meta.source_tree import ROOT
from tests.unit.fuse.recorded import needs_mounts, powercut_in

pytestmark = needs_mounts

CARELESS = "echo new > t; mv t f"
CAREFUL = "echo new > t; sync t; mv t f; sync ."
OLD = ("--setup", "echo old > f")


def verdict(folder: Path, script: str, *options: str) -> dict[str, Any]:
    """Try a shell script; return the object that ``--json`` writes."""
    result = powercut_in(folder, "try", "--json", "-", *options, "--", "sh", "-c", script)
    assert result.returncode in {0, 1}, result.stderr
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    assert found["verdict"] == ("violation" if result.returncode else "clean")
    return found


def unsafe(found: dict[str, Any]) -> list[str]:
    return [name for name, model in found["models"].items() if not model["safe"]]


def test_a_rename_without_a_barrier_loses_the_acknowledgement_and_the_file(tmp_path: Path) -> None:
    result = powercut_in(tmp_path, "try", *OLD, "--", "sh", "-c", CARELESS)
    assert result.returncode == 1
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert "checked 30 of 30 images" in lines
    assert "FAILED  LostAck  lost acknowledgement, on every file system" in lines
    cause = "cause     no fsync of / between rename of /t to /f (operation 3) and ack 1 (exit 0)"
    assert cause in lines
    assert "FAILED  TornRecord  corruption, on a real file system (ext4)" in lines
    assert (
        "cause     no fsync of /t between write of /t (operation 2) "
        "and rename of /t to /f (operation 3)" in lines
    )
    assert any(line.startswith("repair    with these 2 fsyncs, none of ") for line in lines)


@pytest.mark.parametrize("command", ["try", "record"])
def test_options_behind_the_program_belong_to_it(tmp_path: Path, command: str) -> None:
    result = powercut_in(tmp_path, command, *OLD, "sh", "-c", CAREFUL)
    assert result.returncode == 0, result.stderr
    assert "5 operations" in result.stdout


FAILING = """
import powercut.explorer.diagnosis as diagnosis
from powercut.cli.main import main
from powercut.fuse.program_judge import ProgramJudge
from sim.errors import HarnessError

def fail(*_):
    raise {error}

{function} = fail
main()
"""
"""A command whose function ``function`` raises ``error``."""


def tried_failing(folder: Path, function: str, error: str) -> subprocess.CompletedProcess[str]:
    program = FAILING.format(function=function, error=error)
    return subprocess.run(
        [sys.executable, "-c", program, "try", *OLD, "--", "sh", "-c", CARELESS],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


@pytest.mark.parametrize("function", ["ProgramJudge.judge", "diagnosis._Search"])
def test_a_recording_whose_judgement_fails_is_kept(tmp_path: Path, function: str) -> None:
    result = tried_failing(tmp_path, function, "ZeroDivisionError('a bug')")
    assert result.returncode == 70, result.stderr
    assert "ZeroDivisionError: a bug" in result.stderr
    (file,) = (tmp_path / ".powercut/failures").glob("sh-*.recording")
    kept = f"powercut try --recording {file.relative_to(tmp_path)} repeats the error"
    assert kept in result.stdout
    again = powercut_in(tmp_path, "try", "--recording", str(file))
    assert again.returncode == 1, again.stderr


@pytest.mark.parametrize(
    ("error", "code", "end"),
    [
        (
            "ZeroDivisionError('a bug')",
            70,
            (
                "ZeroDivisionError: a bug\n\n"
                "powercut itself failed while it explained a failure; the verdicts stand. "
                "Please report the lines above and the output of `powercut doctor`\n"
            ),
        ),
        ("HarnessError('the check has ended')", 2, "Error: the check has ended\n"),
    ],
)
def test_the_verdicts_stand_if_the_search_for_barriers_fails(
    tmp_path: Path, error: str, code: int, end: str
) -> None:
    result = tried_failing(tmp_path, "diagnosis._Search", error)
    assert result.returncode == code
    assert result.stderr.endswith(end)
    lines = [line.strip() for line in result.stdout.splitlines()]
    assert "checked 30 of 30 images" in lines
    assert [line for line in lines if line.startswith("FAILED")] == [
        "FAILED  LostAck  on every file system",
        "FAILED  TornRecord  on a real file system (ext4)",
        "FAILED  SilentEmpty  on a real file system (ext4-ordered)",
    ]
    cause = "cause     not known, because the search for a missing fsync failed"
    assert lines.count(cause) == 3
    assert any(line.startswith("unsafe on scc, ext4-journal, ext4,") for line in lines)


def test_a_verdict_stands_where_its_recording_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / ".powercut").touch()
    result = powercut_in(tmp_path, "try", *OLD, "--", "sh", "-c", CARELESS)
    assert result.returncode == 1, result.stderr
    *_, last, kept = result.stdout.splitlines()
    assert last.startswith("unsafe on scc")
    assert kept.startswith("not kept: cannot write .powercut/failures/sh-")
    found = verdict(tmp_path, CARELESS, *OLD)
    assert {finding["reproducer"] for finding in found["findings"]} == {""}


def test_its_repair_is_safe_under_every_model(tmp_path: Path) -> None:
    found = verdict(tmp_path, CAREFUL, *OLD)
    assert unsafe(found) == []
    assert all(model["exhaustive"] for model in found["models"].values())
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_written_in_place_fails_at_a_kill(tmp_path: Path) -> None:
    result = powercut_in(tmp_path, "try", *OLD, "--", "sh", "-c", "echo new > f; sync f; sync .")
    assert result.returncode == 1
    assert "SilentEmpty  corruption, at a kill" in result.stdout


def test_checks_that_do_not_end_are_few_and_named(tmp_path: Path) -> None:
    script = "for each in 1 2 3 4 5 6 7 8 9 10 11 12; do echo new > $each; done"
    check = 'test -z "$(find . -type f -empty)" || sleep 100'
    options = ("--model", "ext4", "--timeout", "0.3", "--check", check)
    result = powercut_in(tmp_path, "try", *OLD, *options, "--", "sh", "-c", script)
    assert result.returncode == 1, result.stderr
    assert "the check fails, it did not end within the time of --timeout" in result.stdout
    assert "note      the check did not end on 8 states, and was ended; the other" in result.stdout


@pytest.mark.parametrize("check", ["", "test ! -e f || test $(stat -c %s f) = 1099511627778"])
def test_a_sparse_file_may_be_larger_than_the_memory(tmp_path: Path, check: str) -> None:
    options = ("--check", check) if check else ()
    script = "truncate -s 1T t; echo x >> t; sync t; mv t f; sync ."
    found = verdict(tmp_path, script, *options)
    assert unsafe(found) == []
    assert found["checked"] == found["images"]


def test_a_long_content_is_compared_as_a_whole(tmp_path: Path) -> None:
    setup = ("--setup", "head -c 9000 /dev/zero > f")
    assert unsafe(verdict(tmp_path, "truncate -s 9000 t; sync t; mv t f", *setup)) == []
    change = "printf x | dd of=f seek=5000 bs=1 conv=notrunc status=none; echo saved"
    result = powercut_in(tmp_path, "try", *setup, "--", "sh", "-c", change)
    assert "/f shows an older one" in result.stdout
    shown = re.findall(r"'9000 bytes, hash ([0-9a-f]{16})'", result.stdout)
    assert len(shown) == len(set(shown)) == 2


def test_a_long_content_in_flight_is_shown_by_its_hash(tmp_path: Path) -> None:
    setup = ("--setup", "head -c 9000 /dev/zero > f")
    writes = [f"printf x | dd of=f seek={at} bs=1 conv=notrunc status=none; " for at in (0, 5000)]
    result = powercut_in(tmp_path, "try", *setup, "--", "sh", "-c", f"{''.join(writes)}echo saved")
    assert "/f holds neither an acknowledged content nor one in flight" in result.stdout
    assert re.search(r"in_flight +\[{'/f': '9000 bytes, hash [0-9a-f]{16}'}\]", result.stdout)


REDO = "echo new > t; sync t; mv t new; sync .; echo saved"
KEPT = 'v=$(cat f); test "$v" = new || { test "$v" = old && ! grep -q saved "$POWERCUT_ACKS"; }'


ALL_BUT_ORDERED = ["ext4", "ext4-ordered", "ext4-writeback", "xfs", "btrfs", "posix"]


@pytest.mark.parametrize(
    ("recovery", "unsafe_models", "cause"),
    [
        ("cat new > f; rm new", ALL_BUT_ORDERED, "no fsync of /f between write of /f"),
        ("cat new > t; mv t f; rm new", ALL_BUT_ORDERED, "no fsync of /f between write of /t"),
        ("cat new > t; sync t; mv t f; sync .; rm new", [], ""),
    ],
)
def test_a_recovery_is_crashed_as_well(
    tmp_path: Path, recovery: str, unsafe_models: list[str], cause: str
) -> None:
    check = f"if test -e new; then {recovery}; fi; {KEPT}"
    found = verdict(tmp_path, REDO, *OLD, "--nested", "--check", check)
    assert unsafe(found) == unsafe_models
    assert found["recoveries"] == 2
    assert all(len(each["crashes"]) == 2 for each in found["findings"])
    causes = [each["cause"].split(" (operation")[0] for each in found["findings"]]
    assert all(each.startswith(f"in the recovery, {cause}") for each in causes), causes


@pytest.mark.parametrize(
    ("most_checks", "note"),
    [("5", "no check that was recorded wrote anything"), ("100", "the check wrote nothing")],
)
def test_a_recovery_that_was_not_recorded_is_not_denied(
    tmp_path: Path, most_checks: str, note: str
) -> None:
    options = ("-n", most_checks, "--nested", *OLD, "--check", KEPT)
    result = powercut_in(tmp_path, "try", *options, "--", "sh", "-c", CAREFUL)
    assert result.returncode == 0
    assert f"note: {note}" in result.stdout


def test_a_check_that_is_crashed_must_be_a_command(tmp_path: Path) -> None:
    result = powercut_in(tmp_path, "try", "--nested", *OLD, "--", "sh", "-c", CAREFUL)
    assert result.returncode == 2
    assert "--nested crashes the check; give the command with --check" in result.stderr


def test_versions_that_were_renamed_to_their_name_are_no_failure(tmp_path: Path) -> None:
    once = "echo {0} > t; sync t; mv t f; sync .;"
    script = once.format(1) + once.format(2) + " echo saved"
    assert unsafe(verdict(tmp_path, script, *OLD)) == []


@pytest.mark.parametrize(
    ("barrier", "is_safe"), [("", False), ("; sync .", True)], ids=["careless", "careful"]
)
def test_a_symbolic_link_must_be_old_or_new(tmp_path: Path, barrier: str, is_safe: bool) -> None:
    script = f"ln -s v2 t && mv -T t now{barrier}"
    found = verdict(tmp_path, script, "--setup", "ln -s v1 now")
    assert (not unsafe(found), found["blind_check"]) == (is_safe, False)
    for finding in found["findings"]:
        assert "/now shows an older one" in finding["statement"]


@pytest.mark.parametrize(
    ("before", "models"),
    [("", ["posix"]), ("sync o;", ["btrfs", "posix"]), ("sync o; sync;", ["posix"])],
    ids=["no fsync", "an fsync", "an fsync and a sync"],
)
def test_names_are_in_order_on_btrfs_until_the_first_fsync(
    tmp_path: Path, before: str, models: list[str]
) -> None:
    options = ("--setup", "echo 1 > f; echo 2 > o", "--check", "test -f f || test -f g")
    assert unsafe(verdict(tmp_path, f"{before} ln f g; rm f", *options)) == models


def test_a_comparison_that_sees_nothing_is_noted(tmp_path: Path) -> None:
    result = powercut_in(tmp_path, "try", "--", "mkdir", "d")
    assert result.returncode == 0
    assert "note: the disk with which the program starts passes too, because no" in result.stdout


def test_the_note_on_equal_contents_contradicts_no_failure(tmp_path: Path) -> None:
    result = powercut_in(tmp_path, "try", *OLD, "--", "sh", "-c", "echo old > f")
    assert "/f is empty: its acknowledged content is lost" in result.stdout
    assert "note: the disk with which the program starts passes too, because no" in result.stdout
    assert "nothing that the program acknowledged is compared" not in result.stdout


def test_the_check_sees_the_acknowledged_lines_at_the_recorded_path(tmp_path: Path) -> None:
    found = verdict(
        tmp_path,
        "for i in 1 2; do pwd > t; sync t; mv t f$i; sync .; echo $i; done",
        "--check",
        'for i in $(grep -v exit "$POWERCUT_ACKS"); do test "$(cat f$i)" = "$PWD" || exit 1; done',
    )
    assert (unsafe(found), found["blind_check"]) == ([], False)


def test_the_check_sees_the_times_of_files(tmp_path: Path) -> None:
    setup = ("--setup", "touch -d @1000 f; mkdir d; touch -d @2000 d")
    check = 'test "$(stat -c %Y f d | xargs)" = "1000 2000"'
    assert unsafe(verdict(tmp_path, "echo > g", *setup, "--check", check)) == []


def test_a_check_that_fails_groups_by_its_last_line(tmp_path: Path) -> None:
    check = 'grep -q saved "$POWERCUT_ACKS" || exit 0; test -s f || { echo gone; exit 4; }'
    found = verdict(tmp_path, "echo new > f; echo saved", "--check", check)
    statements = {each["statement"] for each in found["findings"]}
    assert statements == {"the check fails, exit status 4: gone"}
    assert "scc" in unsafe(found)


def test_the_last_line_of_a_check_has_a_letter_or_a_digit(tmp_path: Path) -> None:
    check = (
        'grep -q saved "$POWERCUT_ACKS" || exit 0; test -s f || { echo no; echo "  ^"; exit 4; }'
    )
    found = verdict(tmp_path, "echo new > f; echo saved", "--check", check)
    assert {each["statement"] for each in found["findings"]} == {
        "the check fails, exit status 4: no"
    }


def test_a_check_that_sees_nothing_is_noted(tmp_path: Path) -> None:
    assert verdict(tmp_path, CARELESS, "--check", "true")["blind_check"]


def test_a_check_that_disagrees_with_itself_is_flaky(tmp_path: Path) -> None:
    # Without d it fails at the first call for a number of acknowledgements, and then passes.
    check = f'test -d d || ! mkdir {tmp_path}/$(wc -l < "$POWERCUT_ACKS") 2>/dev/null'
    found = verdict(tmp_path, "mkdir d", "--check", check, "--model", "scc")
    assert found["flaky"] > 0
    assert unsafe(found) == []


def test_a_recording_is_judged_again_under_one_model(tmp_path: Path) -> None:
    result = powercut_in(tmp_path, "try", *OLD, "--model", "scc", "--", "sh", "-c", CARELESS)
    last = result.stdout.splitlines()[-1]
    file = last.removeprefix("on real file systems: powercut confirm ")
    again = powercut_in(tmp_path, "try", "--recording", file, "--model", "xfs", "--json", "-")
    assert again.returncode == 1
    assert list(json.loads(again.stdout)["models"]) == ["xfs"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--check", "no-such-check"), "on the undamaged disk the check fails, exit status 127"),
        (("--check", "kill -9 $$"), "on the undamaged disk the check fails, exit status 137"),
        (("--check", "exit 7"), "on the undamaged disk the check fails, exit status 7"),
        (
            ("--check", "sleep 100", "--timeout", "0.3"),
            "on the undamaged disk the check fails, it did not end within the time of --timeout",
        ),
        (
            ("--check", "test -e f"),
            "on the disk with which the program starts the check fails, exit status 1; nothing ",
        ),
        (("--model", "ntfs"), "unknown persistence model 'ntfs'"),
    ],
)
def test_a_bad_check_is_one_sentence(
    tmp_path: Path, options: tuple[str, ...], sentence: str
) -> None:
    result = powercut_in(tmp_path, "try", *options, "--", "sh", "-c", CARELESS)
    assert result.returncode == 2
    assert result.stderr.startswith(f"Error: {sentence}")
    assert len(result.stderr.splitlines()) == 1


def test_an_interrupt_ends_the_checks_and_leaves_nothing(tmp_path: Path) -> None:
    before = set(os.listdir(memory_folder()))
    check = f"echo $$ > {tmp_path}/pid; exec sleep 1000"
    options = ("--timeout", "1000", "--check", check)
    process = subprocess.Popen(
        [sys.executable, "-m", "powercut", "try", *options, "--", "sh", "-c", CARELESS],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with process:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()
    assert os.listdir(tmp_path) == ["pid"]
    left = set(os.listdir(memory_folder())) - before
    assert [name for name in left if name.startswith(f"powercut-checks-{process.pid}-")] == []


def test_a_call_that_was_refused_is_the_reason_why_nothing_changed(tmp_path: Path) -> None:
    result = powercut_in(tmp_path, "try", "--", "mkfifo", "p")
    assert result.returncode == 2
    assert result.stderr.endswith(
        ", its working directory; special files are not modelled and were refused: /p\n"
    )


def test_a_program_or_a_recording_is_needed(tmp_path: Path) -> None:
    result = powercut_in(tmp_path, "try")
    assert result.returncode == 2
    assert "give either a program, after --, or --recording FILE" in result.stderr
