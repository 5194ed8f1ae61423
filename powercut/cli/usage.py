"""Mistakes of the user: one sentence and exit code 2, before anything is written."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final

import click

from powercut.cli.exit_code import ExitCode
from powercut.fuzz.target_mistake import TargetMistake
from powercut.one_line import by_line
from powercut.place import ENGINE
from powercut.seconds import MOST, is_time
from powercut.user_function import VerdictReturned
from sim.errors import EscapedSimulation, HarnessError, UnsupportedOperation

_FRAME: Final = re.compile(r'File "(.+?)", line (\d+), in (\S+)')


class UsageMistake(click.ClickException):
    """A mistake of the user, with the value that is wrong and the remedy."""

    exit_code = ExitCode.USAGE

    def format_message(self) -> str:
        """Return the text that is shown: control characters in it are those of a program."""
        return by_line(super().format_message())


class TimeRange(click.FloatRange):
    """The type of options that are times: finite numbers above 0."""

    def __init__(self) -> None:
        super().__init__(0, min_open=True)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:  # the types that click itself declares
        """Return the number; ``click.BadParameter`` if it is none, or no time."""
        number = click.FLOAT.convert(value, param, ctx)
        if not is_time(number):
            self.fail(f"{value} is not a number above 0, at most {MOST}.", param, ctx)
        return number


@contextmanager
def asked_by_user() -> Iterator[None]:
    """Raise ``UsageMistake`` in place of a ``HarnessError`` about the user's request."""
    try:
        yield
    except HarnessError as mistake:
        raise UsageMistake(str(mistake)) from None


def mistake_of(failure: Exception) -> str:
    """Return a sentence if the target is wrong, or left the simulated machine, else "".

    The sentence names the innermost place outside the engine. Control characters are escaped.
    """
    return by_line(_sentence_of(failure))


def _sentence_of(failure: Exception) -> str:
    if isinstance(failure, EscapedSimulation | TargetMistake | VerdictReturned):
        return str(failure)
    if not isinstance(failure, UnsupportedOperation):
        return ""
    # A worker process sends its traceback as text, in the cause of the exception.
    remote = getattr(failure.__cause__, "tb", None)
    text = remote or "".join(traceback.format_exception(failure))
    frames = _FRAME.findall(text)
    places = [frame for frame in frames if not frame[0].startswith(ENGINE)]
    if not places:
        return str(failure)
    file, line, function = places[-1]
    return f"{failure}; called at {file}:{line} in {function}"


def must_be_writable(folder: Path, option: str = "") -> None:
    """Raise ``UsageMistake`` unless files can be created in ``folder``, which need not exist.

    ``option`` is the option that names another folder, empty if the current directory decides.

    Permission bits do not suffice: the file system may be full or read-only, and the
    superuser passes all of them. So an unnamed file is created in ``folder``, or in the
    nearest parent that exists.
    """
    existing = folder.absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    try:
        with TemporaryFile(dir=existing):
            pass
    except OSError as refused:
        remedy = f"name another one with {option}" if option else "run the command in another one"
        raise UsageMistake(
            f"cannot write to {folder}: {refused.strerror} (directory {existing}); {remedy}"
        ) from None


def must_take_json(out: str) -> None:
    """Raise ``UsageMistake`` unless ``--json out`` can be written."""
    path = Path(out)
    if out == "-":
        return
    if path.is_dir():
        raise UsageMistake(f"cannot write --json {out}: it is a directory")
    if path.exists() and not os.access(path, os.W_OK):
        raise UsageMistake(f"cannot write --json {out}: permission denied")
    if not path.parent.is_dir():
        raise UsageMistake(f"cannot write --json {out}: there is no directory {path.parent}")
    if path.exists() and not path.is_file():
        return
    try:
        with TemporaryFile(dir=path.resolve().parent):
            pass
    except OSError as refused:
        raise UsageMistake(f"cannot write --json {out}: {refused.strerror}") from None
