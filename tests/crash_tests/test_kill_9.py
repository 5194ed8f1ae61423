"""The runtime for real: a child process on a real file system, killed with SIGKILL 50 times.

Twice 25 times, on a root each, so that two cores can share it. The moments come from a seed:
so many lines that were not told before, and a small delay, some of them inside recovery.
After each kill the runtime's oracle looks at the files, with what the child had told it;
after some of them this process recovers the root as well.
"""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.shadow_runtime import check_idempotent
from system.agents.view import RuntimeView
from system.host import real_host, run
from system.providers.scripted import ScriptedProvider
from system.runtime import Runtime
from tests.crash_tests.demo_ledger import DemoLedger, files_of
from tests.crash_tests.demo_process import DemoProcess

KILLS = 25
JOBS = 20
KILLS_A_LOOK_AFTER_RECOVERY = 5


async def _recovered(root: Path) -> None:
    """Recover a root, and let no turn run."""
    runtime = await Runtime.recover(real_host(str(root)), {"scripted": ScriptedProvider()})
    await runtime.close()


async def _at_rest(root: Path, ledger: DemoLedger) -> tuple[RuntimeView, RootSnapshot]:
    """Let everything run that can, and look at it when nothing moves."""
    runtime = await Runtime.open(real_host(str(root)), {"scripted": ScriptedProvider()})
    await runtime.idle()
    look = runtime.view(), ledger.read()
    await runtime.close()
    assert runtime.failures == []
    return look


def _live_and_die(root: Path, ledger: DemoLedger, moments: Random, jobs: int) -> bool:
    """Run one child until its moment has come; whether it was killed before its end."""
    ledger.begin_life()
    child = DemoProcess(root, jobs, moments.choice(("framed", "pending")), ledger.hear)
    most_facts = len(ledger.facts) + moments.randrange(6)
    delay_seconds = moments.choice((0.0, 0.001, 0.005, 0.02)) * moments.random()
    for _line in child.heard():
        if len(ledger.facts) >= most_facts:
            break
    return child.kill(delay_seconds)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_demo_that_is_killed_again_and_again_does_every_job_exactly_once(
    tmp_path: Path, seed: int
) -> None:
    root, moments, jobs = tmp_path / "root", Random(seed), JOBS
    ledger, kills = DemoLedger(root), 0
    while kills < KILLS:
        if not _live_and_die(root, ledger, moments, jobs):
            # It was done before its moment came: there must be something left to be killed at.
            jobs += JOBS
            continue
        kills += 1
        ledger.read()
        if kills % KILLS_A_LOOK_AFTER_RECOVERY == 0:
            run(_recovered(root))
            ledger.settle()
            first = files_of(root)
            run(_recovered(root))
            check_idempotent(first, files_of(root))

    ledger.begin_life()
    ended = DemoProcess(root, jobs, "framed", ledger.hear).finish()
    view, snapshot = run(_at_rest(root, ledger))

    assert ended == (0, "")
    ledger.shadow.check_quiesced(view, snapshot, time.time_ns())
    ledger.check_done(snapshot, jobs)
