"""The operator's calls about durable work: emit, perform, and the decisions of a person."""

from __future__ import annotations

import asyncio
from typing import Final

from crash_tests.rig.effect_ledger import ACTIONS, Answer
from crash_tests.rig.router import Choice
from crash_tests.targets.operator import AbandonedCall, OperatorCall, plain
from crash_tests.targets.proposals import propose_call
from crash_tests.targets.script import DURABLE_TOOLS, propose_script
from oracles.durable.rows import Row, Rows
from oracles.runtime.shadow_work import ShadowWork
from powercut.fuzz.action import Arguments
from sim.choices import Choices
from system.durable.activity import Activity, Decision
from system.durable.trigger import TriggerSpec
from system.runtime import Runtime

_PLACES: Final = 7
_DELAYS: Final = (0, 0, 0, 1, 90, 3000)
_THEN: Final = (0, 8, 60, 60)
_MOST_KEYS: Final = 4
PATIENCE_S: Final = 7_200
"""More than all attempts of an activity and their pauses take."""
_KNOWN_S: Final = 80_000
"""The seconds for which the row of a settled trigger exists at least; the clock may be set back."""
_STOPPED: Final = ("FAILED", "DEAD")
_ARGUMENTS: Final = {"to": "Anna"}


class DurableCalls:
    """Makes these calls, and repeats some of them with the same id; ``shadow`` is their record."""

    def __init__(self, shadow: ShadowWork) -> None:
        self._shadow = shadow
        self._specs: list[TriggerSpec] = []
        self._keys: list[tuple[str, str]] = []

    def emit(
        self, runtime: Runtime, arguments: Arguments, session_id: str, now: int
    ) -> OperatorCall:
        """Emit a trigger, or repeat the last one; ``now`` is in seconds since 1970."""
        is_known = bool(self._specs) and now - (self._specs[-1].fire_at or 0) < _KNOWN_S
        if not (arguments["again"] and is_known):
            delay = arguments["delay"]
            assert isinstance(delay, int)
            self._specs.append(
                TriggerSpec(
                    "IMMEDIATE", plain(arguments["payload"]),
                    session_id=None if arguments["routed"] else session_id, fire_at=now + delay,
                )
            )  # fmt: skip
        trigger_id, spec = f"trigger-{len(self._specs)}", self._specs[-1]
        assert spec.fire_at is not None
        triggers = self._shadow.triggers
        triggers.begin(trigger_id, spec.session_id, spec.payload, spec.fire_at)
        return OperatorCall(
            lambda: runtime.emit(spec, trigger_id),
            lambda _: triggers.acknowledge(trigger_id),
            lambda: triggers.refuse(trigger_id),
        )

    def perform(self, runtime: Runtime, arguments: Arguments) -> OperatorCall:
        """Perform an activity, or repeat a call of an earlier one."""
        which = arguments["which"]
        assert isinstance(which, int)
        if which >= len(self._keys):
            key = f"activity:operator:{len(self._keys) + 1}"
            self._keys.append((key, str(arguments["provider"])))
        key, action = self._keys[-1 - which % len(self._keys)]
        self._shadow.ask(key, action, _ARGUMENTS)
        return OperatorCall(
            lambda: _performed(runtime, key, action),
            lambda activity: self._shadow.acknowledge_activity(key, activity.status),
            lambda: None,
        )

    def decide(
        self, runtime: Runtime, arguments: Arguments, row: Row, effects: int, requests: int
    ) -> OperatorCall:
        """Decide about an UNCERTAIN or FAILED activity."""
        key, decision = str(row["idem_key"]), Decision(str(arguments["decision"]))
        status = "INTENT" if decision is Decision.AGAIN else decision.value
        self._shadow.effects.decide(key, status, effects, requests)
        return OperatorCall(
            lambda: runtime.activities.resolve(key, decision, "Bob"), lambda _: None, lambda: None
        )

    def resolve(self, runtime: Runtime, arguments: Arguments, row: Row) -> OperatorCall:
        """Retry or discard a FAILED or DEAD trigger."""
        trigger_id, triggers = str(row["id"]), self._shadow.triggers
        triggers.decide(trigger_id)
        if arguments["retry"]:
            return OperatorCall(
                lambda: runtime.triggers.retry(trigger_id), lambda _: None, lambda: None
            )
        return OperatorCall(
            lambda: runtime.triggers.discard(trigger_id),
            lambda _: triggers.discard(trigger_id),
            lambda: None,
        )


async def _performed(runtime: Runtime, key: str, action: str) -> Activity:
    """Perform an activity; raise ``AbandonedCall`` if the disk refuses its outcome too long."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await runtime.activities.perform(key, action, dict(_ARGUMENTS))
    except TimeoutError:
        raise AbandonedCall from None


def stopped_triggers(rows: Rows) -> list[Row]:
    """Return the stopped triggers whose key no other trigger has: a person may decide on them."""
    stopped = [row for row in rows.triggers if row["status"] in _STOPPED]
    return [row for row in stopped if rows.keys.get(row["dedup_key"], row["id"]) == row["id"]]


def undecided_activities(rows: Rows) -> list[Row]:
    """Return the activities about which a person is asked, those of agents first."""
    undecided = [
        row
        for row in rows.activities.values()
        if row["status"] in ("UNCERTAIN", "FAILED") and row["decided_by"] is None
    ]
    return sorted(undecided, key=lambda row: row["session_id"] is None)


# -- proposals ---------------------------------------------------------------------------


def propose_emit(choices: Choices) -> Arguments:
    """Choose a trigger, its time, and the agent that gets it; or a repetition of the last one."""
    return {
        "agent": choices.integer("agent", 0, _PLACES),
        "routed": choices.integer("routed", 0, 5) == 5,
        "again": choices.integer("again", 0, 7) == 7,
        "delay": choices.pick("delay", _DELAYS),
        "payload": propose_script(choices, tools=DURABLE_TOOLS),
        "then": choices.pick("then", _THEN),
        **propose_call(choices),
    }


def propose_perform(choices: Choices) -> Arguments:
    """Choose an activity; below ``_MOST_KEYS`` it may be one of an earlier call."""
    return {
        "which": choices.integer("which", 0, _MOST_KEYS),
        "provider": choices.pick("provider", sorted(ACTIONS)),
        **propose_call(choices),
    }


def propose_answers(choices: Choices) -> Arguments:
    """Choose the next answers of the providers of actions, and of the router."""
    count = choices.integer("answers", 1, 3)
    return {
        "effects": [choices.pick("answer", tuple(Answer)).value for _ in range(count)],
        "router": [choices.pick("choice", tuple(Choice)).value for _ in range(count)],
    }


def propose_decide(choices: Choices) -> Arguments:
    """Choose the decision about an activity."""
    return {
        "which": choices.integer("which", 0, _MOST_KEYS),
        "decision": choices.pick("decision", tuple(Decision)).value,
        "patience": 0,
    }


def propose_resolve(choices: Choices) -> Arguments:
    """Choose the decision about a trigger."""
    return {
        "which": choices.integer("which", 0, 2),
        "retry": choices.integer("retry", 0, 2) > 0,
        "patience": 0,
    }
