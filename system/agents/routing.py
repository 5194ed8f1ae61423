"""Routing: triggers without a session are given to a living root agent that can be read.

The row is claimed before the router is called, so that an attempt in which the process is killed
counts. It is given to its session in one transaction.
"""

from __future__ import annotations

from asyncio import Task

from system.agents.agent import Agent
from system.agents.agent_work import under_way
from system.agents.message import detached
from system.agents.orchestrator import Orchestrator
from system.durable.errors import RowDamaged
from system.durable.state import Transaction
from system.durable.stores import Stores
from system.durable.trigger import Claim, SessionStatus
from system.errors import StorageError
from system.foreign import passes, shown
from system.ports import JsonObject
from system.router import Candidate, Router


class Routing:
    """Routes one trigger after the other; a call of ``router`` may take ``patience_ns``.

    If there is one candidate, it gets all triggers without a call of the router. If there are
    several and no router, the triggers wait.
    """

    def __init__(self, orchestrator: Orchestrator, router: Router | None, patience_ns: int) -> None:
        self._orchestrator = orchestrator
        self._durable = orchestrator.durable
        self._router = router
        self._patience_ns = patience_ns
        self._is_refused = False
        self._task: Task[None] | None = None
        # The candidates of the last call; triggers that fitted none of them are withheld.
        self._unfit: list[Agent] = []

    def begin(self) -> None:
        """Route the due triggers, unless routing is under way."""
        if under_way(self._task) is None and not self._orchestrator.closing:
            self._is_refused = False
            self._task = self._orchestrator.task(self._run(), "routing")

    @property
    def is_behind(self) -> bool:
        """Whether the disk has refused to claim a trigger that still waits to be routed."""
        return self._is_refused and self._durable.due_trigger(None) is not None

    def tasks(self) -> list[Task[None]]:
        """Return the task that routes at this moment."""
        task = under_way(self._task)
        return [] if task is None else [task]

    def refresh(self) -> None:
        """Route triggers that fitted no candidate again if there are other candidates now."""
        stores = self._durable.stores
        if stores is not None and stores.queue.has_withheld and self._unfit != self._served_roots():
            stores.queue.restore()

    async def _run(self) -> None:
        await self._route_all()
        self._task = None
        self._durable.changed()

    async def _route_all(self) -> None:
        try:
            while not self._orchestrator.closing:
                self.refresh()
                candidates = self._served_roots()
                if not candidates or (len(candidates) > 1 and self._router is None):
                    return
                await self._durable.write_waiting()
                trigger_id = self._durable.due_trigger(None)
                if trigger_id is None:
                    return
                await self._route(trigger_id, candidates)
        except StorageError:
            # If the disk is full, this is tried again; if the database has stopped, it is not.
            self._is_refused = True

    async def _route(self, trigger_id: str, candidates: list[Agent]) -> None:
        stores = self._durable.stores
        assert stores is not None
        if len(candidates) == 1:
            session_id = candidates[0].session_id
            await self._durable.run(
                lambda each: _give(each, stores, _claimed(each, stores, trigger_id), session_id)
            )
            return
        claim = await self._durable.run(lambda each: _claimed(each, stores, trigger_id))
        if claim is not None:
            await self._ask(stores, claim, candidates)

    async def _ask(self, stores: Stores, claim: Claim, candidates: list[Agent]) -> None:
        """Call the router, and write its answer."""
        assert self._router is not None
        offered = [
            Candidate(agent.agent_id, agent.name(), detached(agent.history.metadata))
            for agent in candidates
        ]
        try:
            async with self._orchestrator.host.clock.timeout(self._patience_ns):
                answer: object = await self._router.route(_request_of(claim), offered)
            known = {agent.agent_id: agent for agent in candidates}
            if answer is not None and answer not in known:
                raise LookupError(f"the router has named no candidate: {shown(answer)}")
        except BaseException as failure:
            if passes(failure):
                raise
            reason = shown(failure)
            await self._durable.settle(lambda each: stores.triggers.fail(each, claim, reason))
            return
        if isinstance(answer, str):
            session_id = known[answer].session_id
            await self._durable.settle(lambda each: _give(each, stores, claim, session_id))
        else:
            self._unfit = candidates
            await self._durable.settle(lambda each: _withhold(each, stores, claim))

    def _served_roots(self) -> list[Agent]:
        orchestrator = self._orchestrator
        return [
            orchestrator.agents[node.agent_id]
            for node in orchestrator.tree
            if node.parent_id is None
            and orchestrator.durable.sessions.is_served(node.session_id)
            and orchestrator.agents[node.agent_id].history.agent is not None
        ]


def _request_of(claim: Claim) -> JsonObject:
    trigger = claim.trigger
    return {
        "trigger_id": trigger.id,
        "source": str(trigger.source),
        "description": trigger.description,
        "payload": trigger.payload,
        "key": trigger.dedup_key,
    }


def _claimed(transaction: Transaction, stores: Stores, trigger_id: str) -> Claim | None:
    """Claim a trigger if it still waits to be routed."""
    try:
        return stores.triggers.claim(transaction, trigger_id)
    except RowDamaged:
        stores.queue.remove(trigger_id)
        return None


def _give(transaction: Transaction, stores: Stores, claim: Claim | None, session_id: str) -> None:
    """Give a claimed trigger to a session; give it back if that session has ended."""
    if claim is None:
        return
    if stores.sessions.status(session_id) is SessionStatus.LIVING:
        stores.triggers.route(transaction, claim, session_id)
    else:
        stores.triggers.give_back(transaction, claim)


def _withhold(transaction: Transaction, stores: Stores, claim: Claim) -> None:
    """Make a claimed trigger wait for other candidates, without counting the attempt."""
    stores.triggers.give_back(transaction, claim)
    transaction.after_commit(lambda: stores.queue.withhold(claim.trigger.id))
