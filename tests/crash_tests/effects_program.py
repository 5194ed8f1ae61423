"""``python -m tests.crash_tests.effects_program ROOT EFFECTS JOBS``: actions of a real process.

For each job, an agent and the program itself ask for an action at each of two providers, which
append their effects to the file EFFECTS: ``mail`` each request, ``pay`` each key once. A line
is printed when its change is durable: ``ack send JOB`` or ``ack perform KEY STATUS``.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from system.host import real_host, run
from system.ports import Action, Effects, Json, JsonObject, Performed, SideEffectClass
from system.providers.scripted import ScriptedProvider
from system.runtime import Runtime

SECOND_NS: Final = 10**9
MAIL: Final = Action(
    "mail", SideEffectClass.IRREVERSIBLE, provider_dedup=False, timeout_ns=SECOND_NS
)
PAY: Final = Action("pay", SideEffectClass.IRREVERSIBLE, provider_dedup=True, timeout_ns=SECOND_NS)
_JOBS_AT_ONCE: Final = 4


class FileEffects:
    """The effects are lines ``ACTION KEY JOB BY`` of a file; implements ``Effects``."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._keys = {line.split()[1] for line in path.read_text("ascii").splitlines()}

    def actions(self) -> Sequence[Action]:
        """Return both actions."""
        return [MAIL, PAY]

    async def perform(self, action: str, key: str, arguments: JsonObject) -> Performed:
        """Append a line, unless ``pay`` knows the key."""
        await asyncio.sleep(0.001)
        if action == MAIL.name or key not in self._keys:
            line = f"{action} {key} {arguments['job']} {arguments['by']}\n"
            os.write(self._file, line.encode("ascii"))
            self._keys.add(key)
        await asyncio.sleep(0.001)
        return Performed(None, None)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def _do(runtime: Runtime, agent_id: str, job: int) -> None:
    calls: list[Json] = [
        ["perform", {"action": action, "arguments": {"job": job, "by": "agent"}}]
        for action in (MAIL.name, PAY.name)
    ]
    await runtime.send(agent_id, {"do": calls}, f"job.{job}")
    _say(f"ack send {job}")
    for action in (MAIL.name, PAY.name):
        key = f"activity:program:{action}.{job}"
        arguments: JsonObject = {"job": job, "by": "program"}
        row = await runtime.activities.perform(key, action, arguments)
        _say(f"ack perform {key} {row.status}")


async def main(root: str, effects: Effects, jobs: int) -> None:
    """Do all jobs, those that were done again: they change nothing."""
    runtime = await Runtime.open(real_host(root, effects), {"scripted": ScriptedProvider()})
    agent_id = await runtime.create_agent("Ada", request_id="ada")
    for first in range(1, jobs + 1, _JOBS_AT_ONCE):
        together = range(first, min(first + _JOBS_AT_ONCE, jobs + 1))
        await asyncio.gather(*(_do(runtime, agent_id, job) for job in together))
    await runtime.idle()
    await runtime.close()
    assert runtime.failures == []


if __name__ == "__main__":
    run(main(sys.argv[1], FileEffects(Path(sys.argv[2])), int(sys.argv[3])))
