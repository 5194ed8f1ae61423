"""The runtime for real: a child process on a real file system, killed with SIGKILL.

The gate kills it 15 times, and a stress test 50 times, in two roots, so that two cores can share
the work. A seed determines the moments of the kills: a number of new output lines and a small
delay; some moments are inside a recovery. After each kill the oracle of the runtime checks the
files against the output; after some of them this process recovers the root as well, and the
records are compared with the logs.
"""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

from oracles.recording.turn_records import check_turn_records
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.shadow_runtime import check_idempotent
from system.agents.view import RuntimeView
from system.host import real_host, run
from system.providers.scripted import ScriptedProvider
from system.runtime import Runtime
from tests.crash_tests.demo_ledger import DemoLedger, files_of
from tests.crash_tests.demo_process import DemoProcess

JOBS = 20
KILLS_PER_RECOVERY = 5


async def _recover(root: Path) -> None:
    """Recover a root without running a turn."""
    runtime = await Runtime.recover(real_host(str(root)), {"scripted": ScriptedProvider()})
    await runtime.close()


async def _idle(root: Path, ledger: DemoLedger) -> tuple[RuntimeView, RootSnapshot]:
    """Run the runtime until it is idle; return its view and the snapshot of the files."""
    runtime = await Runtime.open(real_host(str(root)), {"scripted": ScriptedProvider()})
    await runtime.idle()
    shown = runtime.view(), ledger.read()
    await runtime.close()
    assert runtime.failures == []
    return shown


def _run_and_kill(root: Path, ledger: DemoLedger, moments: Random, jobs: int) -> bool:
    """Run one process until its moment; return whether it was killed before it ended."""
    ledger.begin_process()
    child = DemoProcess(root, jobs, moments.choice(("framed", "pending")), ledger.add)
    most_lines = len(ledger.lines) + moments.randrange(6)
    delay_seconds = moments.choice((0.0, 0.001, 0.005, 0.02)) * moments.random()
    for _line in child.lines():
        if len(ledger.lines) >= most_lines:
            break
    return child.kill(delay_seconds)


@pytest.mark.parametrize(
    ("seed", "most_kills"),
    [
        (3, 6),
        pytest.param(1, 25, marks=pytest.mark.stress),
        pytest.param(2, 25, marks=pytest.mark.stress),
    ],
)
def test_a_demo_that_is_killed_again_and_again_does_every_job_exactly_once(
    tmp_path: Path, seed: int, most_kills: int
) -> None:
    root, moments, jobs = tmp_path / "root", Random(seed), JOBS
    ledger, kills = DemoLedger(root), 0
    while kills < most_kills:
        if not _run_and_kill(root, ledger, moments, jobs):
            # It ended before its moment: more jobs keep the next one busy.
            jobs += JOBS
            continue
        kills += 1
        ledger.read()
        if kills % KILLS_PER_RECOVERY == 0:
            run(_recover(root))
            ledger.settle()
            first = files_of(root)
            records = check_turn_records(first)
            assert records >= len(ledger.lines) // 4
            run(_recover(root))
            check_idempotent(first, files_of(root))

    ledger.begin_process()
    ended = DemoProcess(root, jobs, "framed", ledger.add).finish()
    view, snapshot = run(_idle(root, ledger))

    assert ended == (0, "")
    ledger.shadow.check_quiesced(view, snapshot, time.time_ns())
    ledger.check_done(snapshot, jobs)
