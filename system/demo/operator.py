"""The demo's operator: asks for everything by fixed ids, so that asking again changes nothing.

It keeps nothing of its own. Started again after a crash it says all of it once more, and
what was done is done once. A line is told when the fact in it is durable, so whoever reads
the lines knows what must survive:

    ack create <request id> <agent id>
    ack send <message id>
    told <message id> <payload>
    ack acknowledge <message id>

One line tells no fact: who cannot take its turn now, and why. It is tried again, for ever;
whoever reads it can make room, or press Ctrl-C.

    waiting <agent name>: <why>
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
from system.demo.results import heard_jobs, spans
from system.errors import AgentStopped, LogStopped, MayBeThere, StorageError
from system.ports import Clock, Host, JsonObject
from system.providers.scripted import ScriptedProvider
from system.recovery.recovery_text import losses_text, recovery_text
from system.runtime import Options, Runtime
from system.storage.framing import Framing

JOBS_AT_ONCE: Final = 4
LOOK_NS: Final = SECOND_NS
"""How often the operator looks for whoever cannot get on."""


class Operator:
    """Runs the demo on a runtime that was opened; ``say`` takes one line for the reader.

    ``heard`` are the jobs whose results were acknowledged in earlier lifetimes.
    """

    def __init__(
        self, runtime: Runtime, clock: Clock, heard: set[int], say: Callable[[str], None]
    ) -> None:
        self._runtime = runtime
        self._clock = clock
        self._heard = heard
        self._say = say
        self._troubles: dict[str, str] = {}

    async def run(self, jobs: int) -> list[str]:
        """Have ``jobs`` jobs done, and return what was left undone, in sentences.

        Raises what the calls of ``Runtime`` raise, but for those whose agent is stopped or
        cannot be read: then its jobs are left undone.
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
        """Wait until nobody has anything to do, and hear what USER was told."""
        await self._idle()
        for message in self._runtime.view().user:
            self._say(f"told {message.message_id} {json.dumps(message.payload)}")
            await self._runtime.acknowledge(message.message_id)
            self._say(f"ack acknowledge {message.message_id}")
            if (number := job_of(message.payload)) is not None:
                self._heard.add(number)

    async def _idle(self) -> None:
        while True:
            try:
                async with self._clock.timeout(LOOK_NS):
                    await self._runtime.idle()
                    return
            except TimeoutError:
                self._tell_troubles()

    def _tell_troubles(self) -> None:
        """Say who cannot get on, and why, unless that was the last that was said of it."""
        troubles = {agent.name: agent.trouble for agent in self._runtime.view().agents}
        for name, trouble in troubles.items():
            if trouble and trouble != self._troubles.get(name):
                self._say(f"waiting {name}: {trouble}")
        self._troubles = troubles

    def _undone(self, jobs: int) -> Iterator[str]:
        reasons = list(self._reasons())
        missing = [number for number in range(1, jobs + 1) if number not in self._heard]
        if not missing:
            yield from reasons
            return
        losses = list(losses_text(self._runtime.report))
        why = "; ".join(reasons + losses) or "nobody is at work on them any more"
        else_what = ", or take another root" if losses else ""
        yield (
            f"jobs of which USER has no result: {spans(missing)}, because {why}; "
            f"see to that and start again{else_what}"
        )

    def _reasons(self) -> Iterator[str]:
        view = self._runtime.view()
        if view.user_stopped:
            yield f"nothing more reaches USER until the next start: {view.user_stopped}"
        for name in view.in_doubt:
            yield f"whether agent {name!r} exists, the next start will know"
        for agent in view.agents:
            if agent.stopped:
                yield f"agent {agent.name!r} is stopped until the next start: {agent.stopped}"
            elif agent.pending:
                yield f"agent {agent.name!r} has not seen {len(agent.pending)} messages"
            elif agent.alive and agent.name not in TEAM:
                yield f"agent {agent.name!r} has not come to the end of its job"


async def run_demo(
    host: Host, jobs: int, framing: Framing, say: Callable[[str], None]
) -> list[str]:
    """Recover the root of ``host``, run the demo on it and close it; returns what was left undone.

    Raises what ``Runtime.open`` and the calls of ``Runtime`` raise, and whatever an agent's
    task has raised where nothing should be.
    """
    runtime = await Runtime.recover(
        host, {"scripted": ScriptedProvider()}, Options(framing=framing)
    )
    try:
        heard = heard_jobs(host.files)
        for line in recovery_text(runtime.report):
            say(line)
        runtime.start()
        undone = await Operator(runtime, host.clock, heard, say).run(jobs)
    except BaseException:
        # What is under way has more to say than what the end adds to it.
        for sentence in await _closed(runtime):
            say(sentence)
        raise
    undone += await _closed(runtime)
    for failure in runtime.failures:
        raise failure
    return undone


async def _closed(runtime: Runtime) -> list[str]:
    """Close the runtime, and return what the disk has refused of that, in a sentence."""
    try:
        await runtime.close()
    except (OSError, StorageError) as refused:
        return [f"not everything could be written at the end, the next start does it: {refused}"]
    return []
