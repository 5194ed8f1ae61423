"""Lengths of the paths through the code: each can be read from end to end."""

from __future__ import annotations

from pathlib import Path

from tests.meta.page_tables import quoted, table_rows
from tests.meta.source_tree import ROOT, run_python

MOST_FILES_TO_THE_REPRODUCER = 14

# Prints the files of powercut/ that execute from the first failing action to the
# reproducer of its reduction.
FAILING_STEP = """
import sys
from powercut.cli.main import cli
from powercut.fuzz import reproducer
from powercut.fuzz.target_run import TargetRun

root, folder = sys.argv[1:]
files, failed = set(), []

def profile(frame, event, _argument):
    path = frame.f_code.co_filename
    if event == "call" and path.startswith(root):
        files.add(path.removeprefix(root))

def perform(run, *arguments):
    if not failed:
        files.clear()
        sys.setprofile(profile)
    perform_action(run, *arguments)

def fail(run, failure):
    failed.append(failure)
    record_failure(run, failure)

def write(*arguments):
    path = write_reproducer(*arguments)
    if "/fuzz/reduction.py" in files:
        sys.setprofile(None)
    return path

perform_action, TargetRun.perform = TargetRun.perform, perform
record_failure, TargetRun.fail = TargetRun.fail, fail
write_reproducer, reproducer.write_reproducer = reproducer.write_reproducer, write
target, few = "tests.unit.fuzz.broken:UnsyncedCounter", ["--examples", "3", "--steps", "30"]
cli(["run", target, *few, "-n", "1", "--root", folder, "--json", folder + "/report.json"],
    standalone_mode=False)
print("files", *sorted(files))
"""


def test_a_failing_step_reaches_its_reproducer_through_few_files(tmp_path: Path) -> None:
    ran = run_python("-c", FAILING_STEP, str(ROOT / "powercut"), str(tmp_path))
    assert ran.stderr == ""
    name, *files = ran.stdout.splitlines()[-1].split()
    assert name == "files"
    assert {"/fuzz/target_run.py", "/fuzz/reduction.py", "/fuzz/reproducer.py"} < set(files)
    assert len(files) <= MOST_FILES_TO_THE_REPRODUCER, files
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    shown = {f"/{file}" for row, _ in table_rows(page, "file") for file in quoted(row)}
    assert set(files) == shown
