"""``powercut run`` of a target whose program is unmodified Python."""

from __future__ import annotations

from pathlib import Path

from tests.meta.source_tree import run_python

PROGRAM = """
import os, uuid
from pathlib import Path

def note(text):
    with open("notes.new", "w") as file:
        file.write(f"{uuid.uuid4()} {text}")
        file.flush()
        os.fsync(file.fileno())
    os.replace("notes.new", "notes")

def noted():
    return Path("notes").read_text().split()[-1] if Path("notes").exists() else None
"""
TARGET = """
from noting import note, noted
from powercut import ActionKind, DiskTarget, ShadowFile, interposed

class NoteTarget(DiskTarget):
    def __init__(self):
        self.expected, self.count = ShadowFile(), 0

    def actions(self):
        return [ActionKind("note", 1, self.note)]

    def recover(self, process):
        self.process = process
        with interposed(process):
            self.found = noted()

    def check_recovered(self):
        self.expected.settle(self.found, "notes")

    def note(self, arguments):
        self.count += 1
        self.expected.begin(str(self.count))
        try:
            with interposed(self.process):
                note(str(self.count))
        except OSError:
            return "refused"
        self.expected.acknowledge()
        return "noted"
"""


def test_unmodified_program_of_a_target_is_crashed_and_its_missing_barrier_named(
    tmp_path: Path,
) -> None:
    (tmp_path / "noting.py").write_text(PROGRAM)
    (tmp_path / "note_target.py").write_text(TARGET)
    arguments = ("--examples", "10", "--steps", "4", "-n", "1")
    ran = run_python("-m", "powercut", "run", "note_target:NoteTarget", *arguments, cwd=tmp_path)
    assert ran.returncode == 1, ran.stderr
    assert "  cause   no fsync of /disk between rename at noting.py:10 and ack at " in ran.stdout
    assert not (tmp_path / "notes").exists()
