"""The operator in the machine of the runtime: its calls, and what the shadow hears of each."""

from __future__ import annotations

import json
from asyncio import create_task, sleep, wait
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple

from oracles.runtime.shadow_operator import ShadowOperator
from powercut.fuzz.action import Arguments, Json
from system.errors import RuntimeRefused
from system.ports import ProviderError
from system.runtime import Runtime

_NOT_HAPPENED: Final = (RuntimeRefused,)


class GivenUp(Exception):
    """The operator did not wait for the end of a call, which goes on; nobody will tell it more."""


class Asked(NamedTuple):
    """A call that the shadow knows to have begun, and how it is told of the end.

    ``refusals`` are the exceptions that say that the call has not happened; after any other it
    stays in flight.
    """

    work: Callable[[], Coroutine[Any, Any, Any]]
    acknowledge: Callable[[Any], None]
    refuse: Callable[[], None]
    refusals: tuple[type[Exception], ...] = _NOT_HAPPENED

    async def answer(self, patience: Json) -> Any:
        """Return or raise what the call does, ``GivenUp`` after ``patience`` steps; 0 waits."""
        assert isinstance(patience, int)
        if not patience:
            return await self.work()
        call = create_task(self.work())
        for _ in range(patience):
            await sleep(0)
            if call.done():
                break
        else:
            call.cancel()
            await wait([call])
        if call.cancelled():
            raise GivenUp
        return call.result()


class Operator:
    """Asks a runtime for things, and now and then for the same thing again."""

    def __init__(self, shadow: ShadowOperator) -> None:
        self._shadow = shadow
        self._requests: list[tuple[str, tuple[str, str, str]]] = []
        self._messages: list[tuple[str, tuple[str, Json]]] = []

    def create(self, runtime: Runtime, arguments: Arguments) -> Asked:
        """Ask for a root, or for the last one again."""
        asked = (str(arguments["name"]), str(arguments["instructions"]), str(arguments["provider"]))
        if arguments["again"] and self._requests:
            request_id, asked = self._requests[-1]
        else:
            request_id = f"request-{len(self._requests) + 1}"
            self._requests.append((request_id, asked))
        name, instructions, provider = asked
        self._shadow.creates.begin(request_id, name, instructions, provider, "")
        return Asked(
            lambda: runtime.create_agent(name, instructions, provider, request_id=request_id),
            lambda agent_id: self._shadow.acknowledge_create(request_id, agent_id),
            lambda: self._shadow.creates.refuse(request_id),
            (RuntimeRefused, ProviderError),
        )

    def send(self, runtime: Runtime, agent_id: str, arguments: Arguments) -> Asked:
        """Send a message to an agent, or the last one again to whom it was sent."""
        asked = (agent_id, arguments["payload"])
        if arguments["again"] and self._messages:
            message_id, asked = self._messages[-1]
        else:
            message_id = f"{len(self._messages) + 1:032x}"
            self._messages.append((message_id, asked))
        agent_id, payload = asked
        self._shadow.sends.begin(message_id, agent_id, payload)
        return Asked(
            lambda: runtime.send(agent_id, _plain(payload), message_id),
            lambda _: self._shadow.sends.acknowledge(message_id),
            lambda: self._shadow.sends.refuse(message_id),
        )

    def terminate(self, runtime: Runtime, agent_id: str) -> Asked:
        """End an agent."""
        self._shadow.terminations.begin(agent_id)
        return Asked(
            lambda: runtime.terminate(agent_id),
            lambda _: self._shadow.terminations.acknowledge(agent_id),
            lambda: self._shadow.terminations.refuse(agent_id),
        )

    def suspend(self, runtime: Runtime, agent_id: str) -> Asked:
        """Let an agent's conversation be closed; the shadow has nothing to remember of it."""
        return Asked(lambda: runtime.suspend(agent_id), lambda _: None, lambda: None)

    def acknowledge(self, runtime: Runtime, message_id: str) -> Asked:
        """Say that a message to USER was read."""
        self._shadow.deliveries.begin(message_id)
        return Asked(
            lambda: runtime.acknowledge(message_id),
            lambda _: self._shadow.deliveries.acknowledge(message_id),
            lambda: self._shadow.deliveries.refuse(message_id),
        )


def _plain(payload: object) -> Any:
    """Return a payload as the plain JSON that it is."""
    return json.loads(json.dumps(payload))
