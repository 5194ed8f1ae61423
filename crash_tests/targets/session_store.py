"""The session records of a root under crashes and faults."""

from __future__ import annotations

import re
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, TypeVar

from crash_tests.targets.system_target import COMMON_MARKS, SystemTarget
from oracles.marks import (
    ACTIVE_SUSPENDED,
    IN_FLIGHT_KEPT,
    IN_FLIGHT_LOST,
    QUARANTINED,
    STALE_TEMPORARY_SWEPT,
)
from oracles.runtime.shadow_sessions import ShadowSessions, StoredContent, StoredSession
from oracles.shadow_quarantine import ShadowQuarantine
from oracles.violation import FalseAlarm, Garbage, NotContained
from powercut.fuzz.action import ActionKind, Arguments
from powercut.fuzz.fault_families import FaultFamily
from powercut.fuzz.sample_texts import text
from sim.choices import Choices
from sim.world import World
from system.agents.agent import Agent
from system.agents.creation import new_creation
from system.agents.dispatcher import Dispatcher
from system.agents.multiplexer import Multiplexer
from system.agents.orchestrator import Orchestrator
from system.agents.tree import Node
from system.errors import StorageError
from system.ports import Host, JsonObject
from system.recovery.recovery import recover
from system.recovery.root_recovery import RootRecovery
from system.sessions.session import SessionRecord, SessionState
from system.sessions.session_problem import Problem
from system.sessions.session_store import SessionStore
from system.storage.framing import Framing

T = TypeVar("T")

AGENTS: Final = "agents"
MOST_SESSIONS: Final = 4
ROT: Final = "read */session.json rot:0"

_KNOWN: Final = re.compile(r"events\.jsonl|session\.json(\.quarantine\.\d+)?")
_NEXT: Final = {SessionState.ACTIVE: SessionState.SUSPENDED}


class SessionStoreTarget(SystemTarget):
    """The records of one root and their shadow; the field ``model`` identifies a creation.

    Sessions are created, saved and recovered by the code of the runtime, without providers and
    turns.
    """

    fault_rules = (ROT,)
    families_left_out = MappingProxyType(
        {
            FaultFamily.CLOCK: "no record has a time",
            FaultFamily.DELAYED_BARRIER_ERROR: "a record has one barrier, so no later one fails",
            FaultFamily.BIT_ROT: "its own rule damages records; logs have their own targets",
            FaultFamily.MISDIRECTED_WRITE: "a checksum finds it as it finds rot",
        }
    )
    changed_by_boot = frozenset(("/runtime.lock",))
    expected_marks: Sequence[str] = (*COMMON_MARKS, ACTIVE_SUSPENDED, QUARANTINED)

    def __init__(self) -> None:
        self.tag = "session-store"
        self._shadow = ShadowSessions()
        self._quarantine = ShadowQuarantine()
        self._ids: list[str] = []
        self._created = 0
        self._debris = False
        self._rotted = False
        self._world: World[Host]
        self._recovery: RootRecovery

    def attach(self, world: World[Host]) -> None:
        """Keep the world."""
        self._world = world

    def actions(self) -> Sequence[ActionKind]:
        """Return create, move and load."""
        return (
            ActionKind(
                "create", 3, self._create, self._propose_create,
                lambda: len(self._ids) < MOST_SESSIONS,
            ),
            ActionKind("move", 5, self._move, self._propose_move, self._has_sessions),
            ActionKind("load", 1, self._load, self._propose_load, self._has_sessions),
        )  # fmt: skip

    def recover(self, host: Host) -> None:
        """Run the runtime's recovery; a damaged record must not stop it."""
        store = SessionStore(host)
        self._rotted |= ROT in self.fault_plan
        if not self.fault_plan:
            self._quarantine.check(lambda path: host.files.read(path)[0])
        orchestrator = Orchestrator(host, store, Multiplexer({}, 1), Framing.FRAMED)
        try:
            self._recovery = self._run(recover(Dispatcher(orchestrator), is_recording=False))
        except StorageError as raised:
            if self.fault_plan != ROT:
                raise
            raise NotContained("one damaged record stops all", raised=repr(raised)) from None

    def check_recovered(self) -> None:
        """Compare the recovered records with the shadow, and check the files."""
        report = self._recovery.report
        moved = [problem.quarantine for problem in report.problems if problem.quarantine]
        if self.fault_plan in ("", ROT):
            self._quarantine.keep(moved, lambda path: self._recovery.host.files.read(path)[0])
        self._debris = bool(self.fault_plan)
        doubtful = self._shadow.in_flight
        unreported = self._unreported()
        records = [
            record
            for agent in self._recovery.agents()
            if (record := agent.log.record) is not None
            and record.session_id not in unreported
            and not self._shadow.is_excused(record.session_id)
        ]
        happened = self._shadow.settle([_stored(record) for record in records], unreported)
        self._ids = [record.session_id for record in records]
        if doubtful:
            self.marks.reach(IN_FLIGHT_KEPT if happened else IN_FLIGHT_LOST)
        if report.suspended:
            self.marks.reach(ACTIVE_SUSPENDED)
        if any(path.startswith(AGENTS) for path in report.swept):
            self.marks.reach(STALE_TEMPORARY_SWEPT)
        if not self.fault_plan:
            self._rotted = False
            self._check_files()

    # -- actions -----------------------------------------------------------------------

    def _propose_create(self, choices: Choices) -> Arguments:
        return {"provider": text(choices)}

    def _create(self, arguments: Arguments) -> str:
        self._created += 1
        key, provider = f"model-{self._created}", str(arguments["provider"])
        blob = str(self._created).encode()
        self._shadow.begin(key, StoredContent(provider, SessionState.ACTIVE, blob))
        try:
            agent = self._run(self._new_session(provider, key, blob))
        except (OSError, StorageError) as refused:
            return self._refused(refused)
        self._shadow.acknowledge(key, agent.session_id)
        self._ids.append(agent.session_id)
        return "ack"

    async def _new_session(self, provider: str, model: str, blob: bytes) -> Agent:
        orchestrator = self._recovery.orchestrator
        ids = orchestrator.host.ids
        agent = orchestrator.new_agent(ids.uuid_hex(), ids.uuid_hex())
        data: JsonObject = {
            "agent_id": agent.agent_id, "name": model, "parent_session_id": None,
            "instructions": "", "request_id": None,
        }  # fmt: skip
        state = SessionState.ACTIVE
        creation = new_creation(agent.session_id, provider, model, "", state, data)
        record = SessionRecord(agent.session_id, provider, model, state, blob)
        agent.log.creation = replace(creation, record=record)
        await agent.log.write_queue()
        node = Node(agent.agent_id, agent.session_id, model, None)
        orchestrator.tree.add(node)
        return agent

    def _propose_move(self, choices: Choices) -> Arguments:
        return {
            "session": choices.integer("session", 0, MOST_SESSIONS - 1),
            "to": choices.pick("to", ("next", "next", "next", "terminated")),
            "blob": text(choices),
        }

    def _move(self, arguments: Arguments) -> str:
        session_id = self._id_of(arguments)
        try:
            before = self._store.load(session_id)
        except (OSError, StorageError) as refused:
            return self._refused(refused)
        self._shadow.check_one(_stored(before))
        if before.state is SessionState.TERMINATED:
            return "terminated before"
        after = before.moved_to(
            SessionState.TERMINATED
            if arguments["to"] == "terminated"
            else _NEXT.get(before.state, SessionState.ACTIVE),
            str(arguments["blob"]).encode(),
        )
        self._shadow.begin(after.model, _stored(after).content)
        try:
            self._run(self._agent(session_id).log.save(after.state, after.provider_state_blob))
        except (OSError, StorageError) as refused:
            return self._refused(refused)
        self._shadow.acknowledge(after.model, after.session_id)
        return f"ack {after.state}"

    def _propose_load(self, choices: Choices) -> Arguments:
        return {"session": choices.integer("session", 0, MOST_SESSIONS - 1)}

    def _load(self, arguments: Arguments) -> str:
        try:
            record = self._store.load(self._id_of(arguments))
        except (OSError, StorageError) as refused:
            return self._refused(refused)
        self._shadow.check_one(_stored(record))
        return str(record.state)

    # -- checks ------------------------------------------------------------------------

    def _refused(self, refused: OSError | StorageError) -> str:
        if not self.fault_plan:
            raise FalseAlarm("the store refused, and no fault is on", raised=repr(refused))
        self._debris = True
        return f"refused: {refused}"

    def _unreported(self) -> set[str]:
        """Check the problems in the report; return the sessions whose record is unknown now.

        A record that could not be read is written again from the log, without its blob. Such a
        session is excused from then on.
        """
        unreported = set()
        agents = {agent.session_id: agent for agent in self._recovery.agents()}
        for problem in self._recovery.report.problems:
            identity = problem.session_id
            if self._shadow.is_excused(identity):
                continue
            if self.fault_plan:
                record = agents[identity].log.record if identity in agents else None
                if record is None or record.state is SessionState.ACTIVE:
                    unreported.add(identity)
                    continue
                self._shadow.excuse(identity)
                if problem.problem is Problem.DAMAGED:
                    self.marks.reach(QUARANTINED)
            elif self._rotted and problem.problem is Problem.NO_RECORD:
                # An earlier recovery quarantined the record, and crashed before it wrote another.
                self._shadow.excuse(identity)
            elif not (self._debris and not self._shadow.knows(identity)):
                raise FalseAlarm("a record has a problem, and nothing was damaged", found=problem)
        return unreported

    def _check_files(self) -> None:
        """Check that each directory contains only a record, a log and quarantine files."""
        files = self._recovery.host.files
        if files.kind(AGENTS) is None:
            return
        for identity in files.listdir(AGENTS):
            names = files.listdir(f"{AGENTS}/{identity}")
            strange = [name for name in names if not _KNOWN.fullmatch(name)]
            if strange or not names:
                raise Garbage(
                    "a file or directory is left that is never read",
                    directory=identity, names=names,
                )  # fmt: skip

    @property
    def _store(self) -> SessionStore:
        return self._recovery.store

    def _agent(self, session_id: str) -> Agent:
        agents = self._recovery.agents()
        return next(agent for agent in agents if agent.session_id == session_id)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._world.loop.run_until_complete(work)

    def _has_sessions(self) -> bool:
        return bool(self._ids)

    def _id_of(self, arguments: Arguments) -> str:
        place = arguments["session"]
        assert isinstance(place, int)
        return self._ids[place % len(self._ids)]


def _stored(record: SessionRecord) -> StoredSession:
    content = StoredContent(record.provider_name, record.state.value, record.provider_state_blob)
    return StoredSession(record.session_id, record.model, content)


def session_store() -> SessionStoreTarget:
    """Return a new target."""
    return SessionStoreTarget()
