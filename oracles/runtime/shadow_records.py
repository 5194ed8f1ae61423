"""The session records that acknowledged calls of the operator have written.

A record that ``create_agent`` or ``suspend`` has written keeps its state, also across a crash,
until a message reaches the agent, because only a turn opens a conversation again.
"""

from __future__ import annotations

from typing import Final

from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_laws import SUSPENDED, TERMINATED
from oracles.violation import InvalidState

ACTIVE: Final = "ACTIVE"


class ShadowRecords:
    """The suspended sessions by agent id, each with the numbers of its messages and turns."""

    __slots__ = ("_has_triggers", "_suspended")

    def __init__(self) -> None:
        self._suspended: dict[str, tuple[int, int]] = {}
        self._has_triggers = False

    def created(self, snapshot: RootSnapshot, agent_id: str) -> None:
        """Check the record of an agent that ``create_agent`` has just returned."""
        _check(snapshot, agent_id, (ACTIVE, SUSPENDED, TERMINATED))

    def suspended(self, snapshot: RootSnapshot, agent_id: str, turns: int) -> None:
        """Check the record of an agent that ``suspend`` has just suspended.

        ``turns`` is the number of its turns when the call began. A later turn may have followed
        the suspension before the caller had the answer.
        """
        state = snapshot.agents.get(agent_id)
        if self._has_triggers:
            return
        if state is not None and len(state.turns) == turns:
            self._suspended[agent_id] = len(state.enqueued), turns
            self.check(snapshot)

    def expect_triggers(self) -> None:
        """Allow triggers to wake suspended agents at any time from now on."""
        self._has_triggers = True
        self.forget()

    def forget(self) -> None:
        """Forget all suspensions: after damage a recovery may quarantine any record."""
        self._suspended.clear()

    def check(self, snapshot: RootSnapshot) -> None:
        """Check, at any time, the records of agents that got no message since ``suspend``.

        The snapshot may also be that of a disk which a crash left and no recovery has seen.
        """
        for agent_id, seen in list(self._suspended.items()):
            state = snapshot.agents.get(agent_id)
            # A message is pending again if the line of its turn was lost. A reminder waits.
            if state is None or (
                state.pending or state.active_reminders
                or (len(state.enqueued), len(state.turns)) != seen
            ):  # fmt: skip
                del self._suspended[agent_id]
            else:
                _check(snapshot, agent_id, (SUSPENDED, TERMINATED))


def _check(snapshot: RootSnapshot, agent_id: str, expected: tuple[str, ...]) -> None:
    state = snapshot.agents.get(agent_id)
    if state is None or state.session_id in snapshot.excused:
        return
    session = snapshot.sessions[state.session_id]
    recorded = session.record.get("state")
    if session.record_reason or recorded not in expected:
        raise InvalidState(
            "a session record does not have the state that an acknowledged call left",
            session_id=state.session_id, expected=expected, actual=recorded,
            unusable=session.record_reason,
        )  # fmt: skip
