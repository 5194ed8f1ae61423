"""The demo's operator: it requests everything by fixed ids, so that requests can be repeated.

It has no state of its own. After a crash it repeats all requests, and every job is still done
exactly once. A line is printed when the change that it names is durable, so all these changes must
survive:

    ack create <request id> <agent id>
    ack send <message id>
    received <message id> <payload>
    ack acknowledge <message id>

One kind of line reports no change: it names an agent whose turn the disk refuses, with the
reason. The turn is tried again until it succeeds; free some space, or press Ctrl-C.

    waiting <agent name>: <reason>
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from system.agents.orchestrator import SECOND_NS
from system.demo.jobs import (
    INSTRUCTIONS,
    LEAD,
    REQUEST_ID,
    TEAM,
    TEAM_ID,
    job,
    job_id,
    job_of,
    team,
)
from system.demo.results import acknowledged_jobs, spans
from system.errors import AgentStopped, LogStopped, MayBeThere, StorageError
from system.ports import Clock, Host, JsonObject
from system.providers.scripted import ScriptedProvider
from system.recovery.recovery_text import losses_text, recovery_text
from system.runtime import Options, Runtime
from system.storage.framing import Framing

JOBS_AT_ONCE: Final = 4
CHECK_NS: Final = SECOND_NS
"""The interval at which the operator checks for agents that cannot proceed."""


class Operator:
    """Runs the demo on an open runtime; ``say`` prints one line.

    ``acknowledged`` are the jobs whose results were acknowledged in earlier runs.
    """

    def __init__(
        self, runtime: Runtime, clock: Clock, acknowledged: set[int], say: Callable[[str], None]
    ) -> None:
        self._runtime = runtime
        self._clock = clock
        self._acknowledged = acknowledged
        self._say = say
        self._troubles: dict[str, str] = {}

    async def run(self, jobs: int) -> list[str]:
        """Request ``jobs`` jobs and wait for them; return a sentence for each unfinished part.

        Raises the errors of ``Runtime``, except those of an agent that is stopped or cannot
        be read: then its jobs stay unfinished.
        """
        with suppress(AgentStopped, LogStopped, MayBeThere):
            await self._ask(jobs)
        with suppress(AgentStopped, LogStopped):
            await self._listen()
        return list(self._undone(jobs))

    async def _ask(self, jobs: int) -> None:
        lead = await self._runtime.create_agent(LEAD, INSTRUCTIONS, request_id=REQUEST_ID)
        self._say(f"ack create {REQUEST_ID} {lead}")
        await self._send(lead, TEAM_ID, team())
        for first in range(1, jobs + 1, JOBS_AT_ONCE):
            for number in range(first, min(first + JOBS_AT_ONCE, jobs + 1)):
                await self._send(lead, job_id(number), job(number))
            await self._listen()

    async def _send(self, agent_id: str, message_id: str, payload: JsonObject) -> None:
        await self._runtime.send(agent_id, payload, message_id)
        self._say(f"ack send {message_id}")

    async def _listen(self) -> None:
        """Wait until the runtime is idle, and acknowledge the messages to USER."""
        await self._idle()
        for message in self._runtime.view().user:
            self._say(f"received {message.message_id} {json.dumps(message.payload)}")
            await self._runtime.acknowledge(message.message_id)
            self._say(f"ack acknowledge {message.message_id}")
            if (number := job_of(message.payload)) is not None:
                self._acknowledged.add(number)

    async def _idle(self) -> None:
        while True:
            try:
                async with self._clock.timeout(CHECK_NS):
                    await self._runtime.idle()
                    return
            except TimeoutError:
                self._report_troubles()

    def _report_troubles(self) -> None:
        """Print each agent that cannot proceed, unless its reason was printed last time."""
        troubles = {agent.name: agent.trouble for agent in self._runtime.view().agents}
        for name, trouble in troubles.items():
            if trouble and trouble != self._troubles.get(name):
                self._say(f"waiting {name}: {trouble}")
        self._troubles = troubles

    def _undone(self, jobs: int) -> Iterator[str]:
        reasons = list(self._reasons())
        missing = [number for number in range(1, jobs + 1) if number not in self._acknowledged]
        if not missing:
            yield from reasons
            return
        losses = list(losses_text(self._runtime.report))
        why = "; ".join(reasons + losses) or "no agent works on them any more"
        alternative = ", or use another root" if losses else ""
        yield (
            f"jobs without a result: {spans(missing)}, because {why}; "
            f"correct that and start again{alternative}"
        )

    def _reasons(self) -> Iterator[str]:
        view = self._runtime.view()
        if view.user_stopped:
            yield f"nothing more reaches USER until the next start: {view.user_stopped}"
        for name in view.in_doubt:
            yield f"the next start decides whether agent {name!r} exists"
        for agent in view.agents:
            if agent.stopped:
                yield f"agent {agent.name!r} is stopped until the next start: {agent.stopped}"
            elif agent.pending:
                yield f"agent {agent.name!r} has not seen {len(agent.pending)} messages"
            elif agent.alive and agent.name not in TEAM:
                yield f"agent {agent.name!r} has not finished its job"


async def run_demo(
    host: Host, jobs: int, framing: Framing, say: Callable[[str], None]
) -> list[str]:
    """Recover the root of ``host``, run the demo on it and close it.

    Returns a sentence for each unfinished part. Raises the errors of ``Runtime``, and any
    unexpected exception of an agent's task.
    """
    runtime = await Runtime.recover(
        host, {"scripted": ScriptedProvider()}, Options(framing=framing)
    )
    try:
        acknowledged = acknowledged_jobs(host.files)
        for line in recovery_text(runtime.report):
            say(line)
        runtime.start()
        undone = await Operator(runtime, host.clock, acknowledged, say).run(jobs)
    except BaseException:
        # The exception that is being raised explains more than an error of closing.
        for sentence in await _closed(runtime):
            say(sentence)
        raise
    undone += await _closed(runtime)
    for failure in runtime.failures:
        raise failure
    return undone


async def _closed(runtime: Runtime) -> list[str]:
    """Close the runtime; return a sentence if the disk refused a part of that."""
    try:
        await runtime.close()
    except (OSError, StorageError) as refused:
        return [
            f"some files could not be written at the end; the next start writes them: {refused}"
        ]
    return []
