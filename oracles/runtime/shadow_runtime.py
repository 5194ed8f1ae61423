"""What a root of agents must hold, from the contract alone: the runtime's shadow.

A machine tells it what it asks for (``begin_…``), what was answered (``acknowledge_…``,
``refuse_…``), what the running system showed (``observe``), and what the disk holds (``check``,
``settle``). The shadow is never re-synchronised: what is in flight at a crash is resolved,
once, by the first snapshot after the recovery, to "happened" or "did not".

Three kinds of knowledge, each kept by itself: the operator's calls (``shadow_operator``),
what the outside world did in each turn (``shadow_turns``), and what is durable of each
log, byte for byte, here. A log may only grow from what was once durable.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from oracles.runtime.log_reader import read_log
from oracles.runtime.message_laws import check_children, check_messages, check_reach
from oracles.runtime.promise_laws import (
    check_controls_demanded,
    check_lost_turns,
    check_promises,
)
from oracles.runtime.root_snapshot import RootSnapshot, SnapshotReader, garbage
from oracles.runtime.session_state import SessionState
from oracles.runtime.shadow_operator import ShadowOperator
from oracles.runtime.shadow_turns import ShadowTurns
from oracles.runtime.tree_laws import (
    check_logs,
    check_orphans,
    check_records,
    check_tree,
    check_whole,
)
from oracles.runtime.view_laws import RuntimeViewLike, check_quiet, check_view, check_view_at_rest
from oracles.runtime.violations import EarlyReminder, GateIgnored
from oracles.violation import Garbage, LostAck, NotIdempotent, Reordered, SilentEmpty, Violation


class ShadowRuntime:
    """The specification of one root, run beside it.

    ``turns`` is None when nobody watches the providers, as in a test on a real process.
    ``reader`` is for who judges many disks that are nearly the same, each by a new shadow.
    """

    def __init__(
        self, turns: ShadowTurns | None = None, reader: SnapshotReader | None = None
    ) -> None:
        self.operator = ShadowOperator()
        self.turns = turns
        self._reader = reader or SnapshotReader()
        self._durable: dict[str, bytes] = {}
        self._settled_seq: dict[str, int] = {}
        self._shown_turns: dict[str, tuple[str, ...]] = {}
        self._shown_messages: dict[str, str] = {}
        self._shown_ends: set[str] = set()
        self._excused: set[str] = set()

    @property
    def excused(self) -> frozenset[str]:
        """The sessions that are not judged any more."""
        return frozenset(self._excused)

    def excuse(self, session_id: str) -> None:
        """The report has told that this session is damaged, and a fault did damage the disk."""
        self._excused.add(session_id)

    def read(self, files: Mapping[str, bytes]) -> RootSnapshot:
        """Read the files of the root (paths relative to it); judge nothing."""
        return self._reader.read(files)

    def observe(self, view: RuntimeViewLike) -> None:
        """A running system has shown these facts: they are durable from now on."""
        for agent_view in view.agents:
            turns = tuple(agent_view.turns)
            known = self._shown_turns.get(agent_view.agent_id, ())
            if turns[: len(known)] != known:
                raise LostAck("a turn that was shown is gone", before=known, after=turns)
            self._shown_turns[agent_view.agent_id] = turns
            self._shown_messages.update(dict.fromkeys(agent_view.pending, agent_view.agent_id))
            if not agent_view.alive:
                self._shown_ends.add(agent_view.agent_id)
            elif agent_view.agent_id in self._shown_ends:
                raise LostAck("an end that was shown is gone", agent=agent_view)
        self._shown_messages.update((message.message_id, "USER") for message in view.user)

    def check(self, snapshot: RootSnapshot, now_ns: int | None = None) -> None:
        """Judge a agent_view at any time, also while the system runs and promises are under way.

        ``now_ns`` is the latest wall clock of the run, since 1970: no reminder is earlier.
        """
        self._check_logs(snapshot, now_ns)
        self._check_turns(snapshot)

    def _check_logs(self, snapshot: RootSnapshot, now_ns: int | None) -> None:
        excused = self._excused
        self._check_durable(snapshot)
        check_logs(snapshot, excused)
        check_tree(snapshot, excused)
        self._check_shown(snapshot)
        check_reach(snapshot, excused)
        check_messages(snapshot, excused)
        check_children(snapshot, excused)
        check_controls_demanded(snapshot, excused)
        self.operator.check(snapshot, excused)
        for state in snapshot.agents.values():
            self._check_gate(state)
            if now_ns is not None:
                _check_not_early(state, now_ns)

    def _check_turns(self, snapshot: RootSnapshot) -> None:
        if self.turns is None:
            return
        for state in snapshot.agents.values():
            if state.session_id not in self._excused:
                self.turns.check(snapshot, state)

    def settle(
        self, snapshot: RootSnapshot, now_ns: int | None = None, unrecovered: Collection[str] = ()
    ) -> bool:
        """Judge the first snapshot after a recovery, before any turn runs.

        From here on everything in the logs is durable, and what is not there never will be.
        ``unrecovered`` are sessions that this recovery could not open or has stopped because of a
        fault, as its report says: their part stays open until the next one.
        Returns whether an operation of the operator that was in flight has happened.
        """
        excused = self._excused | set(unrecovered)
        if not snapshot.agents and self._has_agents():
            raise SilentEmpty(
                "all agents are gone, and nothing says so", files=sorted(snapshot.files)
            )
        check_whole(snapshot, excused)
        self._check_logs(snapshot, now_ns)
        check_orphans(snapshot, excused)
        check_records(snapshot, excused)
        check_promises(snapshot, excused)
        check_lost_turns(snapshot, excused)
        self._check_turns(snapshot)
        left = garbage(snapshot.files)
        if left:
            raise Garbage("files are left that nothing will ever read", paths=left)
        happened = self.operator.settle(snapshot, excused)
        if self.turns is not None and not unrecovered:
            self.turns.settle(snapshot)
        for state in (snapshot.user, *snapshot.agents.values()):
            if state.session_id in excused:
                continue
            self._durable[state.path] = state.log.raw
            self._settled_seq[state.path] = len(state.log.lines)
        if not unrecovered:
            # The logs hold them now, and are held to the byte.
            self._shown_turns.clear()
            self._shown_messages.clear()
            self._shown_ends.clear()
        return happened

    def check_view(self, view: RuntimeViewLike, snapshot: RootSnapshot, *, at_rest: bool) -> None:
        """Compare a view with a snapshot of the same moment; ``at_rest``: nothing is under way."""
        judge = check_view_at_rest if at_rest else check_view
        judge(view, snapshot, self._excused)

    def check_quiet(
        self, view: RuntimeViewLike, snapshot: RootSnapshot, now_ns: int, held: Collection[str] = ()
    ) -> None:
        """After all faults were lifted and nothing moves: all accepted work is done (V-9).

        ``now_ns`` is the wall clock at this moment, since 1970; unlike the latest one, it may
        have been stepped back, and then a reminder may wait for it to come again. ``held`` are
        sessions that may wait, because the resume policy did not wake them.
        """
        self.check(snapshot)
        check_quiet(view, snapshot, now_ns, self._excused, held)

    def _has_agents(self) -> bool:
        """Whether there must be agents on the disk."""
        sessions = {path.split("/")[-2] for path in self._durable} - {"user"}
        acknowledged = self.operator.has_agents and not self._excused
        return acknowledged or bool(sessions - self._excused)

    def _check_durable(self, snapshot: RootSnapshot) -> None:
        """What was durable of a log is there, byte for byte, and all that is new comes after."""
        for path, durable in self._durable.items():
            if not snapshot.files.get(path, b"").startswith(durable):
                if path.split("/")[-2] in self._excused:
                    continue
                raise _difference(path, durable, snapshot.files.get(path))

    def _check_shown(self, snapshot: RootSnapshot) -> None:
        for agent_id, turns in self._shown_turns.items():
            state = snapshot.agents.get(agent_id)
            if self._is_excused(state, agent_id):
                continue
            if state is None:
                raise LostAck("an agent that was shown is gone", agent_id=agent_id)
            if tuple(state.turns)[: len(turns)] != turns:
                raise LostAck("turns that were shown are gone", shown=turns, log=list(state.turns))
            if agent_id in self._shown_ends and not state.ended:
                raise LostAck("an end that was shown is gone", agent=state.agent)
        for key, owner in self._shown_messages.items():
            state = snapshot.state_of(owner)
            if not self._is_excused(state, owner) and (state is None or key not in state.enqueued):
                raise LostAck("a message that was shown is gone", message_id=key, recipient=owner)

    def _is_excused(self, state: SessionState | None, agent_id: str) -> bool:
        if not self._excused or agent_id == "USER":
            return False
        # Who is not there any more may be of a session that is excused: its id went with it.
        return state is None or state.session_id in self._excused

    def _check_gate(self, state: SessionState) -> None:
        """A gate that an earlier boot knew holds from the first turn on; else from the second."""
        settled = self._settled_seq.get(state.path, 0)
        for gate_seq, start_seq in state.forbidden_starts:
            if gate_seq <= settled < start_seq:
                raise GateIgnored(
                    "a gated agent ran a turn after a recovery", path=state.path, gate_seq=gate_seq,
                    start_seq=start_seq,
                )  # fmt: skip


def check_idempotent(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> None:
    """Raise when a second recovery changed anything but the epoch in the lock."""
    changed = sorted(
        path
        for path in before.keys() | after.keys()
        if path != "runtime.lock" and before.get(path) != after.get(path)
    )
    if changed:
        raise NotIdempotent(
            "a second recovery changed what the first one left", paths=changed,
            before=before.get(changed[0]), after=after.get(changed[0]),
        )  # fmt: skip


def _check_not_early(state: SessionState, now_ns: int) -> None:
    for key, reminder in state.reminders.items():
        if key in state.enqueued and reminder.due_ns > now_ns:
            raise EarlyReminder("a reminder came before it was due", reminder=reminder)


def _difference(path: str, durable: bytes, actual: bytes | None) -> Violation:
    """Name what has become of a log that does not begin with its durable lines."""
    evidence = {"path": path, "durable": durable, "actual": actual}
    if actual is None:
        return LostAck("a durable session is gone", **evidence)
    lost = [line.raw for line in read_log(durable).lines if line.raw not in actual]
    if durable and not actual:
        return SilentEmpty("a log is empty, and nothing says so", **evidence)
    if lost:
        return LostAck("a durable line is gone", line=lost[0], **evidence)
    return Reordered("durable lines are not where they were", **evidence)
