"""``activities``: list, resolve."""

from __future__ import annotations

import click

from system.commands.durable_root import durable_root
from system.commands.offline import (
    FOUND,
    echo_table,
    idle_root_option,
    leave,
    reporting,
)
from system.durable.activity import ACTIVITIES, Activity, Decision
from system.durable.errors import RowDamaged
from system.foreign import on_one_line
from system.storage.codec import check_texts


@click.group()
def activities() -> None:
    """List or resolve the activities of a root. It must not be in use.

    Exit codes: 0 done, 1 damage was found, 2 usage, 130 interrupted.
    """


@activities.command("list")
@idle_root_option
@click.option("--all", "every", is_flag=True, help="Include those that are done.")
def list_activities(root: str, every: bool) -> None:
    """List the activities, oldest first."""
    condition = "1" if every else "status<>'DONE'"
    names = ("key", "action", "status", "attempts", "ref", "decided by", "reason")
    with reporting(root), durable_root(root) as opened:
        found = opened.state.transact(
            lambda transaction: list(ACTIVITIES.select(transaction, f"{condition} ORDER BY rowid"))
        )
        rows = [each for _, each in found if isinstance(each, Activity)]
        echo_table(names, [_cells(activity) for activity in rows])
        damaged = [each for _, each in found if isinstance(each, RowDamaged)]
        if damaged:
            leave(FOUND, *damaged)


@activities.command()
@idle_root_option
@click.argument("key", metavar="KEY")
@click.option("--performed", is_flag=True, help="It has happened.")
@click.option("--not-performed", is_flag=True, help="It has not happened.")
@click.option("--again", is_flag=True, help="Perform it, even if it has happened.")
@click.option("--ref", metavar="R", help="The provider's name for it, if it was performed.")
@click.option("--by", required=True, metavar="NAME", help="The person who decides.")
def resolve(
    root: str, key: str, *, performed: bool, not_performed: bool, again: bool, ref: str | None,
    by: str,
) -> None:  # fmt: skip
    """Decide about an activity that is UNCERTAIN or FAILED."""
    given = {
        Decision.PERFORMED: performed,
        Decision.NOT_PERFORMED: not_performed,
        Decision.AGAIN: again,
    }
    decisions = [decision for decision, is_given in given.items() if is_given]
    if len(decisions) != 1 or (ref is not None and not performed):
        raise click.UsageError(
            "give one of --performed, --not-performed and --again; --ref goes with the first"
        )
    with reporting(root), durable_root(root) as opened:
        check_texts(KEY=key)
        decided = opened.state.transact(
            lambda transaction: opened.stores.activities.resolve(
                transaction, key, decisions[0], by, ref
            )
        )
        click.echo(f"{on_one_line(key)} is {decided.status}")


def _cells(activity: Activity) -> list[str]:
    return [
        activity.idem_key, activity.action, activity.status, str(activity.attempts),
        activity.provider_ref or "-", activity.decided_by or "-",
        ascii(activity.reason or "")[1:-1][:60],
    ]  # fmt: skip
