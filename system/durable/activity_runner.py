"""Performs activities: one attempt at a time for each key, between two transactions.

The attempt is durable before the provider is called, and the outcome before the activity is
continued. So a crash leaves either no attempt or one with unknown outcome, and every later attempt
is made with the knowledge of the earlier ones.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from system.durable.activity import Activity, ActivityStatus, Outcome, Refused, Unknown
from system.durable.back_off import FIRST_PAUSE_NS, pause_ns
from system.durable.errors import BadActivity, RowDamaged, StateDamaged
from system.errors import StorageError, StorageFull
from system.foreign import passes, reason_of, shown
from system.ports import Action, EffectRefused, Performed
from system.storage.codec import is_plain_text

if TYPE_CHECKING:
    from system.durable.activity_store import ActivityStore
    from system.durable.state import StateDatabase, Transaction
    from system.ports import Clock, Effects, Ids

T = TypeVar("T")
Pause: TypeAlias = Callable[[int], Awaitable[None]]


class ActivityRunner:
    """Performs the activities of ``store`` with ``effects``.

    Raises as ``actions_by_name``.
    """

    def __init__(
        self, state: StateDatabase, store: ActivityStore, effects: Effects, clock: Clock, ids: Ids
    ) -> None:
        self._state = state
        self._store = store
        self._effects = effects
        self._clock = clock
        self._ids = ids
        self._actions = actions_by_name(effects)

    async def perform(self, key: str, pause: Pause | None = None) -> Activity:
        """Attempt an activity until it has an outcome; return its row.

        If it has an outcome, or is under way, its row is returned unchanged. ``pause`` waits the
        given nanoseconds between two attempts, or while the disk is full or refuses a read; by
        default it sleeps.
        Raises ``UnknownActivity``, ``RowDamaged``, or the errors of the database; after these
        the next boot decides.
        """
        pause = self._clock.sleep if pause is None else pause
        while True:
            activity = await self._patiently(
                lambda transaction: self._store.attempt(transaction, key, self._actions), pause
            )
            if activity is None:
                return await self._state.run(lambda transaction: self._store.read(transaction, key))
            outcome = await self._outcome(activity)
            recorded = await self._patiently(_recording(self._store, key, outcome), pause)
            if recorded.status is not ActivityStatus.INTENT:
                return recorded
            await pause(pause_ns(self._ids, recorded.attempts))

    async def _outcome(self, activity: Activity) -> Outcome:
        action = self._actions.get(activity.action)
        if action is None:
            reason = f"action={activity.action!r} is not registered"
            # The decision ``again`` counts attempts from 0: it may have been performed before.
            is_first = activity.attempts == 1 and activity.decided_by is None
            return Refused(reason) if is_first else Unknown(reason)
        try:
            async with self._clock.timeout(action.timeout_ns):
                answer: object = await self._effects.perform(
                    activity.action, activity.idem_key, activity.arguments
                )
        except EffectRefused as refused:
            return Refused(reason_of(refused))
        except BaseException as failure:
            if not passes(failure):
                return Unknown(shown(failure))
            if isinstance(failure, CancelledError):
                # If the disk refuses it, the next boot finds an attempt without an outcome.
                cancelled = Unknown("it was cancelled")
                with suppress(StorageError):
                    await self._state.run(_recording(self._store, activity.idem_key, cancelled))
            raise
        # Providers of actions are adapters to foreign services: their types are checked.
        if not isinstance(answer, Performed):
            return Unknown(f"the answer is not a result: {shown(answer)}")
        return answer

    async def _patiently(self, work: Callable[[Transaction], T], pause: Pause) -> T:
        """Return the result of a transaction, which is repeated whenever it was rolled back."""
        while True:
            try:
                return await self._state.run(work)
            except RowDamaged:
                raise
            except (StorageFull, StateDamaged):
                await pause(FIRST_PAUSE_NS)


def actions_by_name(effects: Effects) -> dict[str, Action]:
    """Return the actions of ``effects``.

    Raises ``BadActivity`` if one is no ``Action``, or two have one name.
    """
    actions: dict[str, Action] = {}
    for action in effects.actions():
        if not isinstance(action, Action):
            raise BadActivity(f"{shown(action, 100)} is not an Action")
        if action.name in actions:
            raise BadActivity(f"action={action.name!r} is registered twice")
        actions[action.name] = action
    return actions


def action_named(actions: Mapping[str, Action], name: str) -> Action:
    """Return a registered action, or raise ``BadActivity``."""
    if not is_plain_text(name) or name not in actions:
        known = ", ".join(sorted(actions)) or "none"
        raise BadActivity(f"action={shown(name, 100)} is not registered, known are: {known}")
    return actions[name]


def _recording(
    store: ActivityStore, key: str, outcome: Outcome
) -> Callable[[Transaction], Activity]:
    return lambda transaction: store.record(transaction, key, outcome)
