"""The specification of one root, run beside the runtime: the entry point of this package.

The caller records the operator's calls in ``operator`` and the providers' side of each turn in
``turns``, passes views to ``observe``, and compares snapshots of the disk with ``check`` and,
after a recovery, ``settle``. The shadow is never corrected from the system: the first snapshot
after a recovery decides once whether an operation in flight took effect.

This module itself keeps the durable bytes of each log: a log may only grow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from oracles.runtime.delivery_laws import (
    check_delivered,
    check_lost_turns,
    check_watermarks,
)
from oracles.runtime.log_reader import read_log
from oracles.runtime.log_records import USER
from oracles.runtime.message_laws import check_messages, check_recipients
from oracles.runtime.report_laws import ReportLike, ShadowEpoch, check_report
from oracles.runtime.root_snapshot import RootSnapshot, SnapshotReader, garbage
from oracles.runtime.session_laws import check_intact, check_logs, check_records
from oracles.runtime.session_state import SessionState
from oracles.runtime.shadow_operator import ShadowOperator
from oracles.runtime.shadow_records import ShadowRecords
from oracles.runtime.shadow_turns import ShadowTurns
from oracles.runtime.tree_laws import check_children, check_controls, check_orphans, check_tree
from oracles.runtime.view_laws import (
    RuntimeViewLike,
    check_idle_view,
    check_quiesced_view,
    check_view,
)
from oracles.runtime.violations import EarlyReminder, GateIgnored
from oracles.violation import (
    Garbage,
    LostAck,
    NotIdempotent,
    Reordered,
    SilentEmpty,
    Violation,
)


class ShadowRuntime:
    """The specification of one root.

    ``turns`` is None if the providers are not observed, as in a test on a real process. Share
    one ``reader`` when checking many similar disks, each with a shadow of its own; it caches
    parsed logs.
    """

    def __init__(
        self, turns: ShadowTurns | None = None, reader: SnapshotReader | None = None
    ) -> None:
        self.operator = ShadowOperator()
        self.records = ShadowRecords()
        self.epoch = ShadowEpoch()
        self.turns = turns
        self._reader = reader or SnapshotReader()
        self._durable: dict[str, bytes] = {}
        self._settled_seq: dict[str, int] = {}
        self._watermarks: dict[str, int] = {}
        self._shown_turns: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._shown_messages: dict[str, str] = {}
        self._shown_ends: set[str] = set()
        self._excused: set[str] = set()

    @property
    def excused(self) -> frozenset[str]:
        """The sessions that are excused from all laws."""
        return frozenset(self._excused)

    def excuse(self, session_id: str) -> None:
        """Excuse a session that a fault damaged and that recovery reported as damaged."""
        self._excused.add(session_id)

    def read(self, files: Mapping[str, bytes], now_ns: int = 0) -> RootSnapshot:
        """Read the files of the root, by path relative to it, without checking them.

        ``now_ns`` is the time in nanoseconds since 1970; without it nothing is old.
        """
        return self._reader.read(files, now_ns)

    def observe(self, view: RuntimeViewLike) -> None:
        """Record that the running system showed this view: its contents must be durable."""
        for agent in view.agents:
            known, _ = self._shown_turns.get(agent.agent_id, (0, ()))
            if agent.turns < known:
                raise LostAck(
                    "the view no longer shows a turn that it showed before",
                    agent_id=agent.agent_id, before=known, after=agent.turns,
                )  # fmt: skip
            self._shown_turns[agent.agent_id] = agent.turns, tuple(agent.last_turns)
            self._shown_messages.update(dict.fromkeys(agent.pending, agent.agent_id))
            if not agent.alive:
                self._shown_ends.add(agent.agent_id)
            elif agent.agent_id in self._shown_ends:
                raise LostAck(
                    "the view shows an agent as alive that it showed as ended before", agent=agent
                )
        self._shown_messages.update((message.message_id, USER) for message in view.user)

    def check(self, snapshot: RootSnapshot, now_ns: int | None = None) -> None:
        """Check a snapshot taken at any time, also while effects are on their way.

        ``now_ns`` is the latest wall clock of the run, since 1970; no reminder may have
        arrived that is due later.
        """
        judged = snapshot.excusing(self._excused)
        self._check_logs(judged, now_ns)
        self._check_turns(judged)

    def _check_logs(self, snapshot: RootSnapshot, now_ns: int | None) -> None:
        self._check_durable(snapshot)
        check_logs(snapshot)
        check_tree(snapshot)
        self._check_shown(snapshot)
        check_recipients(snapshot)
        check_messages(snapshot)
        check_watermarks(snapshot, self._watermarks)
        check_children(snapshot)
        check_controls(snapshot)
        self.operator.check(snapshot)
        self.records.check(snapshot)
        for state in snapshot.agents.values():
            self._check_gate(state)
            if now_ns is not None:
                _check_not_early(state, now_ns)

    def _check_turns(self, snapshot: RootSnapshot) -> None:
        if self.turns is None:
            return
        for state in snapshot.judged:
            self.turns.check(snapshot, state)

    def check_found(self, snapshot: RootSnapshot) -> None:
        """Check the disk that a crash has left, before its recovery.

        Each statement about another log was durable in that log before it was written.
        """
        self.records.check(snapshot)
        check_watermarks(snapshot.excusing(self._excused), {})

    def settle(
        self,
        snapshot: RootSnapshot,
        now_ns: int | None = None,
        unrecovered: Collection[str] = (),
        *,
        faulty: bool = False,
    ) -> bool:
        """Check the first snapshot after a recovery, taken before any turn runs.

        Every line in it is durable from here on, and an operation in flight that left none
        must not appear later. ``unrecovered`` are sessions that this recovery reported as not
        opened, or stopped, because of a fault; their operations stay in flight until the next
        recovery. After a recovery that was ``faulty``, the disk may have refused to remove a
        temporary file, which the next one removes. Returns whether an operation of the operator
        that was in flight took effect.
        """
        if not snapshot.agents and self._must_have_agents():
            files = sorted(snapshot.files)
            raise SilentEmpty("all agents are lost, and no damage is reported", files=files)
        judged = snapshot.excusing(self._excused)
        recovered = snapshot.excusing(self._excused | set(unrecovered))
        check_intact(recovered)
        self._check_logs(judged, now_ns)
        check_orphans(recovered)
        check_records(recovered)
        check_delivered(recovered)
        check_lost_turns(recovered)
        self._check_turns(judged)
        unread = garbage(snapshot.files, temporaries=not faulty)
        if unread:
            raise Garbage("recovery left files that no boot will ever read", paths=unread)
        happened = self.operator.settle(recovered)
        if self.turns is not None and not unrecovered:
            self.turns.settle(snapshot)
        for state in recovered.judged_logs:
            self._durable[state.path] = state.log.raw
            self._settled_seq[state.path] = len(state.log.lines)
        if not unrecovered:
            # The durable bytes of the logs contain everything that was shown.
            self._shown_turns.clear()
            self._shown_messages.clear()
            self._shown_ends.clear()
        return happened

    def check_report(
        self, report: ReportLike, found: RootSnapshot, recovered: RootSnapshot
    ) -> None:
        """Compare the report of a recovery without faults with the snapshots around it."""
        self.epoch.check(report.epoch)
        if not self._excused:
            check_report(report, found, recovered)

    def check_view(self, view: RuntimeViewLike, snapshot: RootSnapshot, *, idle: bool) -> None:
        """Compare a view with a snapshot of the same moment; ``idle``: nothing is in progress."""
        check = check_idle_view if idle else check_view
        check(view, snapshot.excusing(self._excused))

    def check_quiesced(
        self,
        view: RuntimeViewLike,
        snapshot: RootSnapshot,
        now_ns: int,
        waiting: Collection[str] = (),
    ) -> None:
        """Require that all accepted work is done, after all faults were lifted.

        ``now_ns`` is the time that the runtime has at this moment, since 1970. Unlike the
        latest one it may have been set back before the boot, in which case a reminder waits for
        it again. Sessions in ``waiting`` may have work left because the resume policy did not
        wake them.
        """
        self.check(snapshot)
        check_quiesced_view(view, snapshot.excusing(self._excused), now_ns, waiting)

    def _must_have_agents(self) -> bool:
        sessions = {path.split("/")[-2] for path in self._durable} - {"user"}
        acknowledged = self.operator.has_agents and not self._excused
        return acknowledged or bool(sessions - self._excused)

    def _check_durable(self, snapshot: RootSnapshot) -> None:
        """Require that each log begins with its durable bytes."""
        for path, durable in self._durable.items():
            raw = snapshot.raw_log(path)
            if not (raw or b"").startswith(durable):
                if path.split("/")[-2] in self._excused:
                    continue
                raise _lost_bytes(path, durable, raw)

    def _check_shown(self, snapshot: RootSnapshot) -> None:
        for agent_id, (count, last) in self._shown_turns.items():
            state = snapshot.agents.get(agent_id)
            if self._is_excused(state, agent_id):
                continue
            if state is None:
                raise LostAck("an agent that a view showed is lost", agent_id=agent_id)
            if tuple(state.turns)[:count][-len(last) or count :] != last:
                raise LostAck(
                    "turns that a view showed are lost",
                    path=state.path, shown=last, count=count, log=list(state.turns),
                )  # fmt: skip
            if agent_id in self._shown_ends and not state.ended:
                raise LostAck("an end that a view showed is lost", path=state.path)
        for key, owner in self._shown_messages.items():
            state = snapshot.state_of(owner)
            if not self._is_excused(state, owner) and (state is None or key not in state.enqueued):
                raise LostAck(
                    "a message that a view showed is lost", message_id=key, recipient=owner
                )

    def _is_excused(self, state: SessionState | None, agent_id: str) -> bool:
        if not self._excused or agent_id == USER:
            return False
        # The session of an agent that is not found may be an excused one that lost its id.
        return state is None or state.session_id in self._excused

    def _check_gate(self, state: SessionState) -> None:
        """Require that a gate found by a recovery allows no further turn at all."""
        settled = self._settled_seq.get(state.path, 0)
        for gate_seq, start_seq in state.gate.forbidden_starts:
            if gate_seq <= settled < start_seq:
                raise GateIgnored(
                    "an agent that was gated before a recovery ran a turn after it",
                    path=state.path, gate_seq=gate_seq, start_seq=start_seq,
                )  # fmt: skip


def check_idempotent(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> None:
    """Require that a second recovery changed nothing but the epoch in the lock."""
    changed = sorted(
        path
        for path in before.keys() | after.keys()
        if path != "runtime.lock" and before.get(path) != after.get(path)
    )
    if changed:
        raise NotIdempotent(
            "a second recovery changed files that the first one left", paths=changed,
            before=before.get(changed[0]), after=after.get(changed[0]),
        )  # fmt: skip


def _check_not_early(state: SessionState, now_ns: int) -> None:
    for key, reminder in state.reminders.items():
        if (key in state.enqueued or key in state.handled) and reminder.due_ns > now_ns:
            raise EarlyReminder(
                "a reminder was shown before it was due",
                path=state.path, reminder=reminder, now_ns=now_ns,
            )  # fmt: skip


def _lost_bytes(path: str, durable: bytes, actual: bytes | None) -> Violation:
    """Return the violation of a log that does not begin with its durable bytes."""
    evidence = {"path": path, "durable": durable, "actual": actual}
    if actual is None:
        return LostAck("a durable log is lost", **evidence)
    if durable and not actual:
        return SilentEmpty("a durable log is empty, and no damage is reported", **evidence)
    lost = [line.raw for line in read_log(durable).lines if line.raw not in actual]
    if lost:
        return LostAck("a durable line is lost", line=lost[0], **evidence)
    return Reordered("the durable lines of a log were moved", **evidence)
