"""Irreversible actions for real: kills with SIGKILL, and a file of effects outside of the root.

Whatever the moment of a kill: the provider that deduplicates has performed each action once, the
other one at most once, and an action is DONE or a person is asked. The records of the turns say
which of them had effects.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random

import apsw
import pytest

from oracles.durable.rows import Rows, read_rows
from oracles.recording.turn_records import check_turn_records
from tests.crash_tests.demo_ledger import files_of
from tests.crash_tests.demo_process import RealProcess

JOBS = 8


class Effects:
    """A root, the file of effects, and the lines that all processes have printed."""

    def __init__(self, folder: Path) -> None:
        self.root, self.file = folder / "root", folder / "effects"
        self.lines: set[str] = set()

    def process(self, jobs: int) -> RealProcess:
        arguments = [str(self.root), str(self.file), str(jobs)]
        return RealProcess(
            ["tests.crash_tests.effects_program", *arguments], self.root.with_suffix(".stderr"),
            self.lines.add,
        )  # fmt: skip

    def check(self) -> Counter[str]:
        """Check the effects of this moment; return how often each action of a job was performed."""
        text = self.file.read_text("ascii") if self.file.exists() else ""
        performed = [line.split() for line in text.splitlines()]
        counts = Counter(f"{action} {job} {by}" for action, _, job, by in performed)
        assert [each for each, number in counts.items() if number > 1] == []
        return counts

    def rows(self) -> Rows:
        with closing(apsw.Connection(str(self.root / "state.db"))) as connection:
            return read_rows(lambda statement: connection.execute(statement).fetchall())


def run_and_kill(effects: Effects, moments: Random, jobs: int) -> bool:
    """Run one process until its moment; return whether it was killed before it ended."""
    child = effects.process(jobs)
    most_lines = len(effects.lines) + moments.randrange(8)
    for _line in child.lines():
        if len(effects.lines) >= most_lines:
            break
    return child.kill(moments.choice((0.0, 0.001, 0.005, 0.02)) * moments.random())


@pytest.mark.parametrize(
    ("seed", "most_kills"), [(3, 4), pytest.param(1, 50, marks=pytest.mark.stress)]
)
def test_each_action_is_performed_once_or_a_person_is_asked(
    tmp_path: Path, seed: int, most_kills: int
) -> None:
    effects, moments, jobs, kills = Effects(tmp_path), Random(seed), JOBS, 0
    while kills < most_kills:
        if run_and_kill(effects, moments, jobs):
            kills += 1
            effects.check()
        else:
            # It ended before its moment: more jobs keep the next one busy.
            jobs += JOBS

    assert effects.process(jobs).finish() == (0, "")

    # A turn may take several jobs at once.
    assert check_turn_records(files_of(effects.root)) > 0
    counts, rows = effects.check(), effects.rows()
    assert len(rows.activities) == 4 * jobs
    statuses = Counter((row["action"], row["status"]) for row in rows.activities.values())
    assert set(statuses) <= {("pay", "DONE"), ("mail", "DONE"), ("mail", "UNCERTAIN")}
    paid = sum(number for each, number in counts.items() if each.startswith("pay"))
    assert paid == statuses["pay", "DONE"] == 2 * jobs
    mailed = sum(number for each, number in counts.items() if each.startswith("mail"))
    assert statuses["mail", "DONE"] <= mailed <= 2 * jobs
    for line in effects.lines:
        if line.startswith("ack perform"):
            _, _, key, status = line.split()
            assert rows.activities[key]["status"] == status
