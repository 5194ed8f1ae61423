"""Turns of many agents at once: the operator sends each next message while a turn runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from benchmarks.instant_provider import InstantProvider
from system.runtime import Runtime

PAYLOAD: Final = {"text": "x" * 200}


async def take_turns(
    runtime: Runtime, provider: InstantProvider, agents: Sequence[str], turns: int
) -> None:
    """Let every agent take ``turns`` turns.

    A turn is a message that the operator sent, durably, and an answer that was committed.
    """
    sessions = {agent.agent_id: agent.session_id for agent in runtime.view().agents}
    called = {sessions[agent_id]: asyncio.Event() for agent_id in agents}
    before = _turns_of(runtime)
    provider.called = lambda session_id: called[session_id].set()

    async def talk(agent_id: str) -> None:
        heard = called[sessions[agent_id]]
        for _ in range(turns):
            await runtime.send(agent_id, {**PAYLOAD})
            await heard.wait()
            heard.clear()

    await asyncio.gather(*[talk(agent_id) for agent_id in agents])
    await runtime.idle()
    provider.called = None
    taken = _turns_of(runtime) - before
    assert taken == len(agents) * turns, taken


def _turns_of(runtime: Runtime) -> int:
    return sum(agent.turns for agent in runtime.view().agents)
