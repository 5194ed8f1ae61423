"""What a root of agents must hold, from the contract alone: the runtime's shadow.

A machine tells it what it asks for (``begin_…``), what was answered (``acknowledge_…``,
``refuse_…``), what the running system showed (``saw``), and what the disk holds (``check``,
``settle``). The shadow is never re-synchronised: what is in flight at a crash is resolved,
once, by the first look after the recovery, to "happened" or "did not".

Three kinds of knowledge, each kept by itself: the operator's calls (``shadow_operator``),
what the outside world did in each turn (``shadow_turns``), and what is durable of each
log, byte for byte, here. A log may only grow from what was once durable.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from oracles.runtime.fold import Fold
from oracles.runtime.line import read_log
from oracles.runtime.message_laws import check_children, check_messages, check_reach
from oracles.runtime.promise_laws import (
    check_controls_demanded,
    check_lost_turns,
    check_promises,
)
from oracles.runtime.seen import Reader, Seen, garbage
from oracles.runtime.shadow_operator import ShadowOperator
from oracles.runtime.shadow_turns import ShadowTurns
from oracles.runtime.tree_laws import (
    check_logs,
    check_orphans,
    check_records,
    check_tree,
    check_whole,
)
from oracles.runtime.view_laws import ViewLook, check_quiet, check_view, check_view_at_rest
from oracles.violation import (
    EarlyReminder,
    Garbage,
    GateIgnored,
    LostAck,
    NotIdempotent,
    Reordered,
    SilentEmpty,
    Violation,
)


class ShadowRuntime:
    """The specification of one root, run beside it.

    ``turns`` is None when nobody watches the providers, as in a test on a real process.
    ``reader`` is for who judges many disks that are nearly the same, each by a new shadow.
    """

    def __init__(self, turns: ShadowTurns | None = None, reader: Reader | None = None) -> None:
        self.operator = ShadowOperator()
        self.turns = turns
        self._reader = reader or Reader()
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

    def look(self, files: Mapping[str, bytes]) -> Seen:
        """Read the files of the root (paths relative to it); judge nothing."""
        return self._reader.look(files)

    def saw(self, view: ViewLook) -> None:
        """A running system has shown these facts: they are durable from now on."""
        for look in view.agents:
            turns = tuple(look.turns)
            known = self._shown_turns.get(look.agent_id, ())
            if turns[: len(known)] != known:
                raise LostAck("a turn that was shown is gone", before=known, after=turns)
            self._shown_turns[look.agent_id] = turns
            self._shown_messages.update(dict.fromkeys(look.pending, look.agent_id))
            if not look.alive:
                self._shown_ends.add(look.agent_id)
            elif look.agent_id in self._shown_ends:
                raise LostAck("an end that was shown is gone", agent=look)
        self._shown_messages.update((message.message_id, "USER") for message in view.user)

    def check(self, seen: Seen, now_ns: int | None = None) -> None:
        """Judge a look at any time, also while the system runs and promises are under way.

        ``now_ns`` is the latest wall clock of the run, since 1970: no reminder is earlier.
        """
        self._check_logs(seen, now_ns)
        self._check_turns(seen)

    def _check_logs(self, seen: Seen, now_ns: int | None) -> None:
        excused = self._excused
        self._check_durable(seen)
        check_logs(seen, excused)
        check_tree(seen, excused)
        self._check_shown(seen)
        check_reach(seen, excused)
        check_messages(seen, excused)
        check_children(seen, excused)
        check_controls_demanded(seen, excused)
        self.operator.check(seen, excused)
        for fold in seen.agents.values():
            self._check_gate(fold)
            if now_ns is not None:
                _check_not_early(fold, now_ns)

    def _check_turns(self, seen: Seen) -> None:
        if self.turns is None:
            return
        for fold in seen.agents.values():
            if fold.session_id not in self._excused:
                self.turns.check(seen, fold)

    def settle(self, seen: Seen, now_ns: int | None = None, untold: Collection[str] = ()) -> bool:
        """Judge the first look after a recovery, before any turn runs; resolve what is in flight.

        From here on everything in the logs is durable, and what is not there never will be.
        ``untold`` are sessions that this recovery could not open or has stopped because of a
        fault, as its report says: their part stays open until the next one.
        Returns whether an operation of the operator that was in flight has happened.
        """
        excused = self._excused | set(untold)
        if not seen.agents and self._has_agents():
            raise SilentEmpty("all agents are gone, and nothing says so", files=sorted(seen.files))
        check_whole(seen, excused)
        self._check_logs(seen, now_ns)
        check_orphans(seen, excused)
        check_records(seen, excused)
        check_promises(seen, excused)
        check_lost_turns(seen, excused)
        self._check_turns(seen)
        left = garbage(seen.files)
        if left:
            raise Garbage("files are left that nothing will ever read", paths=left)
        happened = self.operator.settle(seen, excused)
        if self.turns is not None and not untold:
            self.turns.settle(seen)
        for fold in (seen.user, *seen.agents.values()):
            if fold.session_id in excused:
                continue
            self._durable[fold.path] = fold.log.raw
            self._settled_seq[fold.path] = len(fold.log.lines)
        if not untold:
            # The logs hold them now, and are held to the byte.
            self._shown_turns.clear()
            self._shown_messages.clear()
            self._shown_ends.clear()
        return happened

    def check_view(self, view: ViewLook, seen: Seen, *, at_rest: bool) -> None:
        """Compare a view with a look of the same moment; ``at_rest``: nothing is under way."""
        judge = check_view_at_rest if at_rest else check_view
        judge(view, seen, self._excused)

    def check_quiet(
        self, view: ViewLook, seen: Seen, now_ns: int, held: Collection[str] = ()
    ) -> None:
        """After all faults were lifted and nothing moves: all accepted work is done (V-9).

        ``now_ns`` is the wall clock at this moment, since 1970; unlike the latest one, it may
        have been stepped back, and then a reminder may wait for it to come again. ``held`` are
        sessions that may wait, because the resume policy did not wake them.
        """
        self.check(seen)
        check_quiet(view, seen, now_ns, self._excused, held)

    def _has_agents(self) -> bool:
        """Whether there must be agents on the disk."""
        sessions = {path.split("/")[-2] for path in self._durable} - {"user"}
        acknowledged = self.operator.has_agents and not self._excused
        return acknowledged or bool(sessions - self._excused)

    def _check_durable(self, seen: Seen) -> None:
        """What was durable of a log is there, byte for byte, and all that is new comes after."""
        for path, durable in self._durable.items():
            if not seen.files.get(path, b"").startswith(durable):
                if path.split("/")[-2] in self._excused:
                    continue
                raise _difference(path, durable, seen.files.get(path))

    def _check_shown(self, seen: Seen) -> None:
        for agent_id, turns in self._shown_turns.items():
            fold = seen.agents.get(agent_id)
            if self._is_excused(fold, agent_id):
                continue
            if fold is None:
                raise LostAck("an agent that was shown is gone", agent_id=agent_id)
            if tuple(fold.turns)[: len(turns)] != turns:
                raise LostAck("turns that were shown are gone", shown=turns, log=list(fold.turns))
            if agent_id in self._shown_ends and not fold.ended:
                raise LostAck("an end that was shown is gone", agent=fold.agent)
        for key, owner in self._shown_messages.items():
            fold = seen.fold_of(owner)
            if not self._is_excused(fold, owner) and (fold is None or key not in fold.enqueued):
                raise LostAck("a message that was shown is gone", message_id=key, recipient=owner)

    def _is_excused(self, fold: Fold | None, agent_id: str) -> bool:
        if not self._excused or agent_id == "USER":
            return False
        # Who is not there any more may be of a session that is excused: its id went with it.
        return fold is None or fold.session_id in self._excused

    def _check_gate(self, fold: Fold) -> None:
        """A gate that an earlier boot knew holds from the first turn on; else from the second."""
        settled = self._settled_seq.get(fold.path, 0)
        for gate_seq, start_seq in fold.forbidden_starts:
            if gate_seq <= settled < start_seq:
                raise GateIgnored(
                    "a gated agent ran a turn after a recovery", path=fold.path, gate_seq=gate_seq,
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


def _check_not_early(fold: Fold, now_ns: int) -> None:
    for key, reminder in fold.reminders.items():
        if key in fold.enqueued and reminder.due_ns > now_ns:
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
