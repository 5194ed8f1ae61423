"""The tables of commands in docs/recording.md and docs/durable.md, compared with the commands."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from system.cli import cli
from tests.meta.page_tables import quoted, table_rows
from tests.meta.source_tree import ROOT


def commands(group: click.Group, *names: str) -> Iterator[tuple[str, click.Command]]:
    """Yield the commands below a group with their words."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, *names, name)
        else:
            yield " ".join((*names, name)), command


COMMANDS = dict(commands(cli))


def words_of(row: str) -> str:
    """Return the words of the command that a row begins with."""
    (words,) = re.findall(r"^[a-z ]*[a-z]", row)
    return str(words)


ROWS = {
    words_of(text): row[0]
    for page in ("recording.md", "durable.md")
    for row in table_rows((ROOT / "docs" / page).read_text("utf-8"), "command")
    for text in quoted(row[0])[:1]
}


def test_every_command_is_documented() -> None:
    assert {*ROWS, "demo"} == set(COMMANDS)


@pytest.mark.parametrize("words", ROWS)
def test_the_options_of_a_command_are_documented(words: str) -> None:
    options = {
        option
        for each in COMMANDS[words].params
        if isinstance(each, click.Option)
        for option in (*each.opts, *each.secondary_opts)
    }
    documented = re.findall(r"--[a-z-]+", ROWS[words])
    assert set(documented) == options - {"--root"}
