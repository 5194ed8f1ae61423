"""Many activities at once: each is performed once, whatever crashes come between.

The ledger of ``state.db`` and its runner, beside an outside world that survives every crash. Two
of five activities are at the provider that does not deduplicate.
"""

from __future__ import annotations

from asyncio import sleep
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from crash_tests.rig.effect_ledger import MAIL, PAY, Answer
from crash_tests.targets.durable_store import SECOND_NS, DurableStore
from crash_tests.targets.system_target import COMMON_MARKS
from oracles.durable.marks import CRASHED_EFFECT, DECIDED, REPEATED_KEY, UNCERTAIN
from oracles.durable.rows import Rows
from oracles.marks import STALE_TEMPORARY_SWEPT
from oracles.violation import Starved
from powercut.fuzz.action import ActionKind, Arguments
from sim.choices import Choices
from system.durable.activity import Decision, Intent
from system.durable.state import Transaction
from system.errors import StorageError

_ACTIONS: Final = (MAIL, PAY, PAY, MAIL, PAY)
_COUNTS: Final = (12, 48, 96)
_STEPS: Final = (0, 4, 12, 30)
_ADVANCES: Final = (1, 40, 4_000, 100_000)
_MOST_HOURS: Final = 24
_HOURS_UNTIL_DECIDED: Final = 2
"""No activity takes longer, unless a fault keeps it from being recorded."""


class ActivitiesTarget(DurableStore):
    """One database, whose activities are performed concurrently in each lifetime.

    ``interrupted`` are the keys whose attempt was durable, and had no outcome, when a crash
    came; ``by_end`` counts the activities by action, status, whether a person has decided, and
    the number of effects at the end.
    """

    tag = "activities"
    actions_per_crash = 1
    # Its first turn in a campaign reaches the marks, as slow as the machine may be.
    turn_steps = 600
    expected_marks: Sequence[str] = (
        *(mark for mark in COMMON_MARKS if mark != STALE_TEMPORARY_SWEPT),
        UNCERTAIN, CRASHED_EFFECT, REPEATED_KEY, DECIDED,
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.interrupted: set[str] = set()
        self.by_end: Counter[tuple[str, str, bool, int]] = Counter()
        self._uncertain: set[str] = set()
        self._decided: set[str] = set()

    @property
    def effects(self) -> Mapping[str, int]:
        """The number of effects in the outside world, by key."""
        return self._ledger.effects

    def actions(self) -> Sequence[ActionKind]:
        """Return batches of activities, the passing of time, and decisions."""
        return (
            ActionKind("batch", 6, self._batch, self._propose_batch, self._is_open),
            ActionKind("run", 3, self._run_on, self._propose_run, self._is_open),
            ActionKind("advance", 2, self._advance, self._propose_advance, self._is_open),
            ActionKind("decide", 2, self._decide, self._propose_decide, self._is_open),
            ActionKind("reopen", 1, self._reopen),
        )

    # -- boots ---------------------------------------------------------------------------

    def check_recovered(self) -> None:
        """Check all rows and effects; then perform what is to be performed."""
        super().check_recovered()
        rows = self._rows()
        if rows is None:
            return
        uncertain = {key for key, row in rows.activities.items() if row["status"] == "UNCERTAIN"}
        self.interrupted |= uncertain - self._uncertain
        self.interrupted |= {
            key
            for key, row in rows.activities.items()
            if row["status"] == "INTENT" and row["attempts"]
        }
        self._uncertain = uncertain
        self._perform(self._recovered.to_perform)

    def _reopen(self, arguments: Arguments) -> str:
        """Let all that is under way end; close the database and open it again."""
        self._until_done(_HOURS_UNTIL_DECIDED)
        return super()._reopen(arguments)

    # -- activities ----------------------------------------------------------------------

    def _propose_batch(self, choices: Choices) -> Arguments:
        planned = choices.integer("planned", 0, 6)
        return {
            "count": choices.pick("count", _COUNTS),
            "answers": [choices.pick("answer", tuple(Answer)).value for _ in range(planned)],
            "steps": choices.pick("steps", _STEPS),
        }

    def _batch(self, arguments: Arguments) -> str:
        """Intend activities in one transaction, and perform them concurrently."""
        count, answers = arguments["count"], arguments["answers"]
        assert isinstance(count, int)
        assert isinstance(answers, Sequence)
        self._number += 1
        intents = [
            Intent(f"activity:{self._number}:{place}", _ACTIONS[place % 5], {"to": "Anna"})
            for place in range(count)
        ]
        state = self._shadow.state
        for intent in intents:
            state = state.intended(intent.key, '{"to":"Anna"}')

        def intend(transaction: Transaction) -> bool:
            for intent in intents:
                self._stores.activities.intend(transaction, intent)
            return True

        if self._do(intend, state) is None:
            return "refused"
        self._plan_answers([str(each) for each in answers])
        self._perform(intent.key for intent in intents)
        return self._run_on(arguments)

    def _perform(self, keys: Iterable[str]) -> None:
        """Begin to perform activities."""
        runner, loop = self._runner(), self._world.loop

        async def perform(key: str) -> None:
            try:
                await runner.perform(key)
            except StorageError:
                # The next boot decides.
                return

        for key in keys:
            loop.create_task(perform(key))

    def _propose_run(self, choices: Choices) -> Arguments:
        return {"steps": choices.pick("steps", _STEPS)}

    def _run_on(self, arguments: Arguments) -> str:
        """Run the loop for a number of steps; 0 runs it until it is idle."""
        steps = arguments["steps"]
        assert isinstance(steps, int)
        if steps:
            self._run(_pass(steps))
        else:
            self._world.loop.run_until_idle()
        return self._observe()

    def _propose_advance(self, choices: Choices) -> Arguments:
        return {"seconds": choices.pick("seconds", _ADVANCES)}

    def _advance(self, arguments: Arguments) -> str:
        self._world.loop.advance(int(str(arguments["seconds"])) * SECOND_NS)
        return self._observe()

    def _observe(self) -> str:
        """Check rows and effects of this moment."""
        if self._state.stopped is not None:
            self._open = False
            return "stopped"
        rows = self._rows()
        if rows is None:
            return "unread"
        self._check_effects(rows)
        self._uncertain = {k for k, row in rows.activities.items() if row["status"] == "UNCERTAIN"}
        return "ran"

    # -- a person ------------------------------------------------------------------------

    def _propose_decide(self, choices: Choices) -> Arguments:
        return {"decision": choices.pick("decision", tuple(Decision)).value}

    def _decide(self, arguments: Arguments) -> str:
        """Decide about the oldest activity about which a person is asked."""
        rows = self._rows()
        undecided = [] if rows is None else _undecided(rows)
        if not undecided:
            return "nothing is undecided"
        key, decision = undecided[0], Decision(str(arguments["decision"]))
        status = "INTENT" if decision is Decision.AGAIN else decision.value
        self._decided.add(key)
        ledger = self._ledger
        self._effects.decide(key, status, ledger.effects[key], ledger.requests[key])
        decided = self._do(
            lambda each: self._stores.activities.resolve(each, key, decision, "Bob"),
            self._shadow.state,
        )
        if decided is None:
            return "refused"
        self.marks.reach(DECIDED)
        if decision is Decision.AGAIN:
            self._perform([key])
        return decision.value

    # -- the end -------------------------------------------------------------------------

    def quiesce(self) -> None:
        """Let everything be performed; count it by its end."""
        self._plan_answers([])
        self._reopen({})
        if not self._until_done(_MOST_HOURS):
            raise Starved("an activity is never decided")
        rows = self._rows()
        assert rows is not None
        self._check_effects(rows)
        self._effects.check_performed(rows, self._ledger.effects)
        self.by_end.clear()
        for key, row in rows.activities.items():
            effects, is_decided = self._ledger.effects[key], key in self._decided
            self.by_end[row["action"], row["status"], is_decided, effects] += 1

    def _until_done(self, hours: int) -> bool:
        """Let up to ``hours`` pass until every activity is decided; return whether that is so.

        One whose outcome a fault has kept from its record is decided by the next boot.
        """
        for _ in range(hours):
            self._world.loop.run_until_idle()
            rows = self._rows() if self._open and self._state.stopped is None else None
            if rows is None or all(row["status"] != "INTENT" for row in rows.activities.values()):
                return True
            self._world.loop.advance(3_600 * SECOND_NS)
        return False


async def _pass(steps: int) -> None:
    for _ in range(steps):
        await sleep(0)


def _undecided(rows: Rows) -> list[str]:
    return [
        key
        for key, row in rows.activities.items()
        if row["status"] in ("UNCERTAIN", "FAILED") and row["decided_by"] is None
    ]


def activities() -> ActivitiesTarget:
    """Return a new target."""
    return ActivitiesTarget()
