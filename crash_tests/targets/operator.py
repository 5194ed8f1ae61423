"""The operator of the runtime target: its calls, each with the shadow's record of it."""

from __future__ import annotations

import json
from asyncio import create_task, sleep, wait
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple

from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.shadow_runtime import ShadowRuntime
from powercut.fuzz.action import Arguments, Json
from system.errors import RuntimeRefused
from system.ports import ProviderError
from system.runtime import Runtime

_REFUSALS: Final = (RuntimeRefused,)
_Read = Callable[[], RootSnapshot]


class AbandonedCall(Exception):
    """The operator stopped waiting for a call, which may continue; its result is unknown."""


class OperatorCall(NamedTuple):
    """A call that has begun for the shadow.

    ``acknowledge`` or ``refuse`` report its end to the shadow. After an exception that is not
    one of ``refusals`` the call stays in flight. ``check_record`` gets a function that reads a
    snapshot, and the result of the call: it checks the session record that the call has written.
    ``names`` are the names of agents that the call takes, also if it fails in the end.
    """

    work: Callable[[], Coroutine[Any, Any, Any]]
    acknowledge: Callable[[Any], None]
    refuse: Callable[[], None]
    refusals: tuple[type[Exception], ...] = _REFUSALS
    check_record: Callable[[_Read, Any], None] = lambda _read, _result: None
    names: frozenset[str] = frozenset()

    async def result(self, patience: Json) -> Any:
        """Return or raise the result of the call.

        Raises ``AbandonedCall`` after ``patience`` steps of the event loop; 0 waits without
        a limit.
        """
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
            raise AbandonedCall
        return call.result()


class Operator:
    """Makes the operator's calls, and repeats some of them with the same id."""

    def __init__(self, shadow: ShadowRuntime) -> None:
        self._shadow = shadow.operator
        self._records = shadow.records
        self._requests: list[tuple[str, tuple[str, str, str]]] = []
        self._messages: list[tuple[str, tuple[str, Json]]] = []

    def create(self, runtime: Runtime, arguments: Arguments) -> OperatorCall:
        """Create a root agent, or repeat the last request."""
        asked = (str(arguments["name"]), str(arguments["instructions"]), str(arguments["provider"]))
        if arguments["again"] and self._requests:
            request_id, asked = self._requests[-1]
        else:
            request_id = f"request-{len(self._requests) + 1}"
            self._requests.append((request_id, asked))
        name, instructions, provider = asked
        self._shadow.creates.begin(request_id, name, instructions, provider, "")
        return OperatorCall(
            lambda: runtime.create_agent(name, instructions, provider, request_id=request_id),
            lambda agent_id: self._shadow.acknowledge_create(request_id, agent_id),
            lambda: self._shadow.creates.refuse(request_id),
            (RuntimeRefused, ProviderError),
            lambda read, agent_id: self._records.created(read(), agent_id),
            frozenset({name}),
        )

    def send(self, runtime: Runtime, agent_id: str, arguments: Arguments) -> OperatorCall:
        """Send a message to an agent, or repeat the last message to its own recipient."""
        asked = (agent_id, arguments["payload"])
        if arguments["again"] and self._messages:
            message_id, asked = self._messages[-1]
        else:
            message_id = f"{len(self._messages) + 1:032x}"
            self._messages.append((message_id, asked))
        agent_id, payload = asked
        self._shadow.sends.begin(message_id, agent_id, payload)
        return OperatorCall(
            lambda: runtime.send(agent_id, plain(payload), message_id),
            lambda _: self._shadow.sends.acknowledge(message_id),
            lambda: self._shadow.sends.refuse(message_id),
        )

    async def repeat_sends(self, runtime: Runtime) -> None:
        """Repeat each acknowledged call of ``send`` to an agent that lives."""
        living = {agent.agent_id for agent in runtime.view().agents if agent.alive}
        for message_id, (agent_id, payload) in self._messages:
            if agent_id in living and self._shadow.sends.is_acknowledged(message_id):
                await runtime.send(agent_id, plain(payload), message_id)

    def terminate(self, runtime: Runtime, agent_id: str) -> OperatorCall:
        """Terminate an agent."""
        self._shadow.terminations.begin(agent_id)
        return OperatorCall(
            lambda: runtime.terminate(agent_id),
            lambda _: self._shadow.terminations.acknowledge(agent_id),
            lambda: self._shadow.terminations.refuse(agent_id),
        )

    def suspend(self, runtime: Runtime, agent_id: str) -> OperatorCall:
        """Suspend an agent's conversation, which changes only its record."""
        agents = runtime.view().agents
        turns = next(agent.turns for agent in agents if agent.agent_id == agent_id)
        return OperatorCall(
            lambda: runtime.suspend(agent_id), lambda _: None, lambda: None,
            check_record=lambda read, _: self._records.suspended(read(), agent_id, turns),
        )  # fmt: skip

    def acknowledge(self, runtime: Runtime, message_id: str) -> OperatorCall:
        """Acknowledge a message to USER."""
        self._shadow.deliveries.begin(message_id)
        return OperatorCall(
            lambda: runtime.acknowledge(message_id),
            lambda _: self._shadow.deliveries.acknowledge(message_id),
            lambda: self._shadow.deliveries.refuse(message_id),
        )


def plain(payload: object) -> Any:
    """Return a copy of a payload."""
    return json.loads(json.dumps(payload))
