"""What a user can get wrong, told in one sentence with exit code 2, before anything is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

import click

from powercut.cli.exit_code import ExitCode
from sim.errors import HarnessError


class UsageMistake(click.ClickException):
    """One sentence: what was wrong, with which value, and what to do."""

    exit_code = ExitCode.USAGE


@contextmanager
def asked_by_user() -> Iterator[None]:
    """Tell a ``HarnessError`` about what the user has asked for as the user's mistake."""
    try:
        yield
    except HarnessError as mistake:
        raise UsageMistake(str(mistake)) from None


def must_be_writable(folder: Path) -> None:
    """Raise ``UsageMistake`` unless files can be made in ``folder``, which need not exist.

    Permissions do not tell all (a full or read-only file system, the superuser), so a file
    without a name is made where the folder is, or would be, and nothing stays of it.
    """
    standing = folder.absolute()
    while not standing.exists() and standing != standing.parent:
        standing = standing.parent
    try:
        with TemporaryFile(dir=standing):
            pass
    except OSError as refused:
        raise UsageMistake(
            f"cannot write to {folder}: {refused.strerror} ({standing}); "
            "name another directory with --root"
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
    if not path.exists():
        _must_make_files(path)


def _must_make_files(path: Path) -> None:
    try:
        with TemporaryFile(dir=path.parent):
            pass
    except OSError as refused:
        raise UsageMistake(f"cannot write --json {path}: {refused.strerror}") from None
