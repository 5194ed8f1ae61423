"""The session store under crashes and faults: create, move to another state, load, scan."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from crash_tests.targets.system_target import COMMON_MARKS, SystemTarget
from oracles.marks import (
    ACTIVE_SUSPENDED,
    IN_FLIGHT_KEPT,
    IN_FLIGHT_LOST,
    QUARANTINED,
    STALE_TEMPORARY_SWEPT,
)
from oracles.runtime.shadow_sessions import ShadowSessions, StoredContent, StoredSession
from oracles.violation import FalseAlarm, Garbage, NotContained
from powercut.fuzz.action import ActionKind, Arguments
from powercut.fuzz.sample_texts import text
from sim.choices import Choices
from system.errors import StorageError
from system.ports import Host
from system.sessions.session import SessionRecord, SessionState
from system.sessions.session_store import SessionStore
from system.sessions.store_report import Problem, StoreReport

AGENTS: Final = "agents"
MOST_SESSIONS: Final = 4
ROT: Final = "read */session.json rot:0"

_KNOWN: Final = re.compile(r"session\.json(\.quarantine\.\d+)?")
_NEXT: Final = {SessionState.ACTIVE: SessionState.SUSPENDED}


class Store(Protocol):
    """What the machine needs of a store; ``SessionStore`` and its planted holes have it."""

    def create(
        self, provider_name: str, model: str, provider_state_blob: bytes = b""
    ) -> SessionRecord: ...
    def save(self, record: SessionRecord) -> None: ...
    def load(self, session_id: str) -> SessionRecord: ...
    def scan(self) -> StoreReport: ...
    def recover(self) -> StoreReport: ...


MakeStore = Callable[[Host], Store]


class SessionStoreTarget(SystemTarget):
    """One store and its shadow. The field ``model`` of a record names its creation."""

    fault_rules = (ROT,)
    expected_marks: Sequence[str] = (*COMMON_MARKS, ACTIVE_SUSPENDED, QUARANTINED)

    def __init__(self, tag: str, make_store: MakeStore) -> None:
        self.tag = tag
        self._make_store = make_store
        self._shadow = ShadowSessions()
        self._ids: list[str] = []
        self._created = 0
        self._debris = False
        self._host: Host
        self._store: Store
        self._report: StoreReport

    def actions(self) -> Sequence[ActionKind]:
        """Return create, move, load and scan."""
        return (
            ActionKind(
                "create", 3, self._create, self._propose_create,
                lambda: len(self._ids) < MOST_SESSIONS,
            ),
            ActionKind("move", 5, self._move, self._propose_move, self._has_sessions),
            ActionKind("load", 1, self._load, self._propose_load, self._has_sessions),
            ActionKind("scan", 1, self._scan),
        )  # fmt: skip

    def recover(self, host: Host) -> None:
        """Recover the store."""
        self._host = host
        self._store = self._make_store(host)
        self._report = self._contained(self._store.recover)

    def check_recovered(self) -> None:
        """Look at everything that recovery has reported, and at the files."""
        report = self._report
        self._debris = bool(self.fault_plan)
        doubtful = self._shadow.in_flight
        happened = self._shadow.settle(_all_stored(report), self._unreadable(report))
        self._ids = [record.session_id for record in report.records]
        if doubtful:
            self.marks.reach(IN_FLIGHT_KEPT if happened else IN_FLIGHT_LOST)
        if report.suspended:
            self.marks.reach(ACTIVE_SUSPENDED)
        if report.swept:
            self.marks.reach(STALE_TEMPORARY_SWEPT)
        if not self.fault_plan:
            self._judge_files()

    # -- actions -----------------------------------------------------------------------

    def _propose_create(self, choices: Choices) -> Arguments:
        return {"provider": text(choices)}

    def _create(self, arguments: Arguments) -> str:
        self._created += 1
        key, provider = f"model-{self._created}", str(arguments["provider"])
        blob = str(self._created).encode()
        self._shadow.begin(key, StoredContent(provider, SessionState.ACTIVE, blob))
        try:
            record = self._store.create(provider, key, blob)
        except (OSError, StorageError) as refused:
            return self._refused(refused)
        self._shadow.acknowledge(key, record.session_id)
        self._ids.append(record.session_id)
        return "ack"

    def _propose_move(self, choices: Choices) -> Arguments:
        return {
            "session": choices.integer("session", 0, MOST_SESSIONS - 1),
            "to": choices.pick("to", ("next", "next", "next", "terminated")),
            "blob": text(choices),
        }

    def _move(self, arguments: Arguments) -> str:
        try:
            before = self._store.load(self._id_of(arguments))
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
            self._store.save(after)
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

    def _scan(self, _arguments: Arguments) -> str:
        try:
            report = self._contained(self._store.scan)
        except (OSError, StorageError) as refused:
            return self._refused(refused)
        self._shadow.check(_all_stored(report), self._unreadable(report))
        return f"{len(report.records)} sessions"

    # -- looking -----------------------------------------------------------------------

    def _refused(self, refused: OSError | StorageError) -> str:
        if not self.fault_plan:
            raise FalseAlarm("the store refused, and no fault is on", raised=repr(refused))
        self._debris = True
        return f"refused: {refused}"

    def _contained(self, run: Callable[[], StoreReport]) -> StoreReport:
        """Let the store look at all its records; a damaged one must not stop it (R8)."""
        failure: StorageError
        try:
            return run()
        except StorageError as raised:
            failure = raised
        if self.fault_plan != ROT:
            raise failure
        raise NotContained("one damaged record stops the whole store", raised=repr(failure))

    def _unreadable(self, report: StoreReport) -> set[str]:
        """Judge what the store could not show; return the ids of which it knows no more."""
        unreadable = set()
        for problem in report.problems:
            identity = problem.session_id
            no_record = problem.problem is Problem.NO_RECORD
            if self._shadow.is_excused(identity):
                continue
            if problem.problem is not Problem.FAILED and self.fault_plan == ROT:
                self._shadow.excuse(identity)
                self._ids = [known for known in self._ids if known != identity]
                self.marks.reach(QUARANTINED)
            elif problem.problem is Problem.FAILED and self.fault_plan:
                unreadable.add(identity)
            elif no_record and self._debris and not self._shadow.knows(identity):
                continue
            else:
                raise FalseAlarm("a record has a problem, and nothing was damaged", told=problem)
        return unreadable

    def _judge_files(self) -> None:
        """Nothing is left beside the records but what was put aside."""
        files = self._host.files
        if files.kind(AGENTS) is None:
            return
        for identity in files.listdir(AGENTS):
            names = files.listdir(f"{AGENTS}/{identity}")
            strange = [name for name in names if not _KNOWN.fullmatch(name)]
            if strange or not names:
                raise Garbage(
                    "something is left that nothing will ever read",
                    directory=identity, names=names,
                )  # fmt: skip

    def _has_sessions(self) -> bool:
        return bool(self._ids)

    def _id_of(self, arguments: Arguments) -> str:
        place = arguments["session"]
        assert isinstance(place, int)
        return self._ids[place % len(self._ids)]


def _stored(record: SessionRecord) -> StoredSession:
    content = StoredContent(record.provider_name, record.state.value, record.provider_state_blob)
    return StoredSession(record.session_id, record.model, content)


def _all_stored(report: StoreReport) -> list[StoredSession]:
    return [_stored(record) for record in report.records]


def session_store() -> SessionStoreTarget:
    """Return the system's own session store."""
    return SessionStoreTarget("session-store", SessionStore)
