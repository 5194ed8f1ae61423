"""The gate of an agent: whether it is closed, its permits, and the turns that it forbids."""

from __future__ import annotations

from oracles.runtime.log_records import TurnRecord
from oracles.runtime.violations import GateIgnored


class GateState:
    """The gate, computed from the controls and turns in the log of its agent.

    ``closed_seq`` is the ``seq`` of the line that closed the gate, or 0 while it is open.
    ``unused_permits`` is a lower bound of ``permits``. ``forbidden_starts`` are pairs of the
    ``seq`` of a gate and of a turn that started in spite of it.
    """

    __slots__ = ("_permitted", "closed_seq", "forbidden_starts", "permits", "unused_permits")

    def __init__(self) -> None:
        self.closed_seq = 0
        self.permits = 0
        self.unused_permits = 0
        self.forbidden_starts: list[tuple[int, int]] = []
        self._permitted: set[str] = set()

    def copy(self) -> GateState:
        """Return an independent copy."""
        gate = GateState()
        gate.closed_seq = self.closed_seq
        gate.permits, gate.unused_permits = self.permits, self.unused_permits
        gate.forbidden_starts = self.forbidden_starts.copy()
        gate._permitted = self._permitted.copy()
        return gate

    @property
    def closed(self) -> bool:
        """Whether the agent is gated."""
        return self.closed_seq > 0

    def control(self, op: str, seq: int) -> None:
        """Apply the control ``op``, which is in line ``seq``."""
        if op == "gate":
            self.closed_seq = self.closed_seq or seq
        elif op == "ungate":
            # All permits end, including the one of a turn in progress.
            self.closed_seq = self.permits = self.unused_permits = 0
            self._permitted.clear()
        else:
            self.permits += 1
            # The contract does not say how long a permit given to an open gate remains valid.
            self.unused_permits += self.closed

    def start(self, turn_id: str, seq: int) -> None:
        """Start a turn in line ``seq``.

        One start without a permit is allowed for each gate: that turn may have begun before
        the gate arrived.
        """
        if not self.closed_seq:
            return
        if self.permits:
            self._permitted.add(turn_id)
            return
        if self.forbidden_starts and self.forbidden_starts[-1][0] == self.closed_seq:
            raise GateIgnored(
                "a gated agent ran a second turn without a permit", gate_seq=self.closed_seq,
                first_start_seq=self.forbidden_starts[-1][1], start_seq=seq,
            )  # fmt: skip
        self.forbidden_starts.append((self.closed_seq, seq))

    def commit(self, turn: TurnRecord) -> None:
        """Use up a permit if ``turn`` says so, and require that it says so if it used one."""
        started_with_permit = turn.turn_id in self._permitted
        if turn.permitted:
            if not (started_with_permit if turn.start is not None else self.permits > 0):
                raise GateIgnored("a turn used a permit that did not exist", turn_id=turn.turn_id)
            self.permits -= 1
            self.unused_permits = max(0, self.unused_permits - 1)
        elif started_with_permit:
            raise GateIgnored("a turn of a gated agent used up no permit", turn_id=turn.turn_id)
