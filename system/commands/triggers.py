"""``triggers``: list, show, dead, resolve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from system.commands.durable_root import durable_root, shown_time
from system.commands.offline import (
    FOUND,
    echo_json,
    echo_table,
    idle_root_option,
    leave,
    reporting,
)
from system.durable.errors import RowDamaged, UnknownTrigger
from system.durable.trigger import TRIGGERS, Trigger
from system.foreign import on_one_line
from system.storage.codec import check_texts

if TYPE_CHECKING:
    from system.durable.state import Transaction


@click.group()
def triggers() -> None:
    """List, show or resolve the triggers of a root. It must not be in use.

    Exit codes: 0 done, 1 damage was found, 2 usage, 130 interrupted.
    """


@triggers.command("list")
@idle_root_option
@click.option("--all", "every", is_flag=True, help="Include those that are done.")
def list_triggers(root: str, every: bool) -> None:
    """List the triggers by the time at which they are due."""
    _list(root, "1" if every else "status<>'DONE'")


@triggers.command()
@idle_root_option
def dead(root: str) -> None:
    """List the triggers that wait for a decision."""
    _list(root, "status IN ('FAILED', 'DEAD')")


@triggers.command()
@idle_root_option
@click.argument("trigger_id", metavar="ID")
def show(root: str, trigger_id: str) -> None:
    """Print a trigger as JSON."""

    def read(transaction: Transaction) -> Trigger:
        trigger = TRIGGERS.read(transaction, trigger_id)
        if trigger is None:
            raise UnknownTrigger(trigger_id)
        return trigger

    with reporting(root), durable_root(root) as opened:
        check_texts(ID=trigger_id)
        trigger = opened.state.transact(read)
        members = trigger._asdict()
        del members["payload_json"]
        echo_json({**members, "payload": trigger.payload})


@triggers.command()
@idle_root_option
@click.argument("trigger_id", metavar="ID")
@click.option("--retry", is_flag=True, help="Run it again.")
@click.option("--discard", is_flag=True, help="Never run it.")
def resolve(root: str, trigger_id: str, *, retry: bool, discard: bool) -> None:
    """Decide about a trigger that is FAILED or DEAD."""
    if retry is discard:
        raise click.UsageError("give either --retry or --discard")
    with reporting(root), durable_root(root) as opened:
        check_texts(ID=trigger_id)
        store = opened.stores.triggers
        call = store.retry if retry else store.discard
        opened.state.transact(lambda transaction: call(transaction, trigger_id))
        click.echo(f"{on_one_line(trigger_id)} {'is PENDING' if retry else 'is DONE'}")


def _list(root: str, condition: str) -> None:
    names = ("id", "source", "status", "due", "session", "attempts", "about")
    with reporting(root), durable_root(root) as opened:
        found = opened.state.transact(
            lambda transaction: list(
                TRIGGERS.select(transaction, f"{condition} ORDER BY due_at, rowid")
            )
        )
        rows = [each for _, each in found if isinstance(each, Trigger)]
        echo_table(names, [_cells(trigger) for trigger in rows])
        damaged = [each for _, each in found if isinstance(each, RowDamaged)]
        if damaged:
            leave(FOUND, *damaged)


def _cells(trigger: Trigger) -> list[str]:
    about = trigger.reason or trigger.description or trigger.resolution or ""
    return [
        trigger.id, trigger.source, trigger.status, shown_time(trigger.due_at),
        trigger.session_id or "-", str(trigger.attempts), ascii(about)[1:-1][:60],
    ]  # fmt: skip
