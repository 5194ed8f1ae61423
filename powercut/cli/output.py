"""The output of a command: tables and stories for people, one JSON object for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from powercut.cli.usage import UsageMistake
from powercut.fuzz.action import Json
from powercut.fuzz.reproducer import write_durably
from powercut.one_line import one_line

SCHEMA: Final = 1
_COLUMNS: Final = 200
"""Columns of output that is not for a terminal: enough for every table, so that none is cut."""
_JSON: Final = "powercut.json"
_STDOUT, _STDERR = 1, 2


def _without_other_output(ctx: click.Context, _option: click.Parameter, out: Any) -> Any:
    if out == "-":
        ctx.meta[_JSON] = ctx.with_resource(_other_output_to_stderr())
    return out


json_option = click.option(
    "--json",
    "json_out",
    metavar="OUT",
    callback=_without_other_output,
    help="Write one JSON object to this file (-: the standard output).",
)
"""The option of commands that call ``write_json`` at their end.

With ``--json -`` all other output goes to stderr, also that of the program under test.
"""


def console_beside(json_out: str | None) -> Console:
    """Return the console for people: stderr if ``--json -`` writes to stdout, else stdout.

    Colour and progress are for terminals only, whatever the environment variables say.
    """
    file = sys.stderr if json_out == "-" else sys.stdout
    terminal = file.isatty()
    return Console(
        file=file,
        force_terminal=terminal,
        color_system="auto" if terminal else None,
        width=None if terminal else _COLUMNS,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )


@contextmanager
def _other_output_to_stderr() -> Iterator[list[str]]:
    """Send the output of this process and its children to stderr; print the yielded texts last."""
    texts: list[str] = []
    stdout = sys.stdout
    stdout.flush()
    kept = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)
    sys.stdout = sys.stderr
    try:
        yield texts
    finally:
        stdout.flush()
        sys.stdout = stdout
        os.dup2(kept, _STDOUT)
        os.close(kept)
        for text in texts:
            click.echo(text)


def write_json(out: str, members: Mapping[str, Json]) -> None:
    """Write one object with a ``schema`` number, or raise ``UsageMistake`` and leave the file."""
    text = json.dumps({"schema": SCHEMA, **members}, indent=1)
    if out == "-":
        click.get_current_context().meta[_JSON].append(text)
        return
    try:
        write_durably(Path(out), f"{text}\n".encode("ascii"))
    except OSError as refused:
        raise UsageMistake(f"cannot write --json {out}: {refused.strerror}") from None


def print_lines(console: Console, lines: Iterable[str]) -> None:
    """Print texts, each as one line."""
    for line in lines:
        console.print(one_line(line), soft_wrap=True)


def busy(console: Console, text: str) -> AbstractContextManager[object]:
    """Show ``text`` with a spinner while the context lasts, on a terminal only."""
    return console.status(text) if console.is_terminal else nullcontext()
