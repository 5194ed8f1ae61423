"""The demo's operator: asks for everything by fixed ids, so that asking again changes nothing.

It keeps nothing of its own. Started again after a crash it says all of it once more, and
what was done is done once. A line is told when the fact in it is durable, so whoever reads
the lines knows what must survive:

    ack create <request id> <agent id>
    ack send <message id>
    told <message id> <payload>
    ack acknowledge <message id>
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

from system.demo.jobs import INSTRUCTIONS, LEAD, REQUEST_ID, TEAM, TEAM_ID, job, job_id, team
from system.ports import Host, JsonObject
from system.providers.scripted import ScriptedProvider
from system.recovery_words import recovery_in_words
from system.runtime import Options, Runtime
from system.storage.framing import Framing

JOBS_AT_ONCE: Final = 4


class Operator:
    """Runs the demo on a runtime that was opened; ``say`` takes one line for the reader."""

    def __init__(self, runtime: Runtime, say: Callable[[str], None]) -> None:
        self._runtime = runtime
        self._say = say

    async def run(self, jobs: int) -> list[str]:
        """Have ``jobs`` jobs done, and return what was left undone, in sentences.

        Raises what the calls of ``Runtime`` raise.
        """
        lead = await self._runtime.create_agent(LEAD, INSTRUCTIONS, request_id=REQUEST_ID)
        self._say(f"ack create {REQUEST_ID} {lead}")
        await self._send(lead, TEAM_ID, team())
        for first in range(1, jobs + 1, JOBS_AT_ONCE):
            for number in range(first, min(first + JOBS_AT_ONCE, jobs + 1)):
                await self._send(lead, job_id(number), job(number))
            await self._runtime.idle()
            await self._hear()
        return list(self._undone())

    def _undone(self) -> Iterator[str]:
        view = self._runtime.view()
        if view.user_stopped:
            yield f"nothing more reaches USER until the next start: {view.user_stopped}"
        for agent in view.agents:
            if agent.stopped:
                yield f"agent {agent.name!r} is stopped until the next start: {agent.stopped}"
            elif agent.pending:
                yield f"agent {agent.name!r} has not seen {len(agent.pending)} messages"
            elif agent.alive and agent.name not in TEAM:
                yield f"agent {agent.name!r} has not come to the end of its job"

    async def _send(self, agent_id: str, message_id: str, payload: JsonObject) -> None:
        await self._runtime.send(agent_id, payload, message_id)
        self._say(f"ack send {message_id}")

    async def _hear(self) -> None:
        for message in self._runtime.view().user:
            self._say(f"told {message.message_id} {json.dumps(message.payload)}")
            await self._runtime.acknowledge(message.message_id)
            self._say(f"ack acknowledge {message.message_id}")


async def run_demo(
    host: Host, jobs: int, framing: Framing, say: Callable[[str], None]
) -> list[str]:
    """Recover the root of ``host``, run the demo on it and close it; returns as ``run``.

    Raises what ``Runtime.open`` and the calls of ``Runtime`` raise, and whatever an agent's
    task has raised where nothing should be.
    """
    runtime = await Runtime.recover(
        host, {"scripted": ScriptedProvider()}, Options(framing=framing)
    )
    try:
        for line in recovery_in_words(runtime.report):
            say(line)
        runtime.start()
        undone = await Operator(runtime, say).run(jobs)
    finally:
        await runtime.close()
    for failure in runtime.failures:
        raise failure
    return undone
