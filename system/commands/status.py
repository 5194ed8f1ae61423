"""``schedules`` and ``status`` of durable execution."""

from __future__ import annotations

from typing import Final

import click

from system.commands.durable_root import DurableRoot, damage, durable_root, shown_time
from system.commands.offline import FOUND, echo_table, idle_root_option, leave, reporting
from system.durable.schedule import Schedule
from system.durable.seconds import reached_at
from system.durable.state import Transaction
from system.sessions.session_store import SessionStore

_UNDECIDED: Final = (
    "SELECT count(*) FROM activity_log WHERE status IN ('UNCERTAIN', 'FAILED')"
    " AND decided_by IS NULL"
)
_OPEN: Final = "SELECT count(*) FROM triggers WHERE status<>'DONE'"
_COUNTS: Final = (
    ("triggers pending", f"{_OPEN} AND status='PENDING'"),
    ("triggers claimed", f"{_OPEN} AND status='CLAIMED'"),
    ("triggers dead", f"{_OPEN} AND status IN ('FAILED', 'DEAD')"),
    ("schedules", "SELECT count(*) FROM schedules WHERE ended_at IS NULL"),
    ("tasks", "SELECT count(*) FROM tasks WHERE status IN ('ACTIVE', 'WAITING', 'BLOCKED')"),
    ("activities to be performed", "SELECT count(*) FROM activity_log WHERE status='INTENT'"),
    ("activities undecided", _UNDECIDED),
)


@click.command()
@idle_root_option
def schedules(root: str) -> None:
    """List the living schedules of a root. The root must not be in use.

    Exit codes: 0 done, 1 damage was found, 2 usage, 130 interrupted.
    """
    names = ("id", "kind", "spec", "zone", "session", "next", "state")
    with reporting(root), durable_root(root) as opened:
        found = opened.state.transact(opened.stores.schedules.all_living)
        echo_table(names, [_cells(each) for each in found if isinstance(each, Schedule)])
        damaged = [each for each in found if not isinstance(each, Schedule)]
        if damaged:
            leave(FOUND, *damaged)


@click.command()
@idle_root_option
def status(root: str) -> None:
    """Show the numbers of agents, triggers and activities of a root.

    The root must not be in use.

    Exit codes: 0 done, 1 damage was found, 2 usage, 130 interrupted.
    """
    with reporting(root), durable_root(root) as opened:
        rows, damaged = opened.state.transact(
            lambda transaction: (
                _rows(transaction, opened),
                damage(transaction, opened.stores),
            )
        )
        echo_table(("what", "number"), rows)
        if damaged:
            leave(FOUND, *damaged)


def _rows(transaction: Transaction, opened: DurableRoot) -> list[tuple[str, str]]:
    agents = SessionStore(opened.host).session_ids()
    due = transaction.execute(
        f"{_OPEN} AND status='PENDING' AND due_at<=?",
        (reached_at(transaction.now_ns),),
    )
    counts = [(name, str(transaction.execute(query)[0][0])) for name, query in _COUNTS]
    return [("agents", str(len(agents))), counts[0], ("triggers due", str(due[0][0])), *counts[1:]]


def _cells(schedule: Schedule) -> list[str]:
    state = f"paused: {schedule.reason}" if schedule.paused else "waiting"
    return [
        schedule.schedule_id, schedule.kind, schedule.spec, schedule.zone,
        schedule.session_id or "-", shown_time(schedule.next_fire_at), state,
    ]  # fmt: skip
