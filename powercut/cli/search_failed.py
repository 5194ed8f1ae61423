"""The end of a command whose search for missing barriers failed, after the report of the rest."""

from __future__ import annotations

import traceback
from typing import IO, Any

import click

from powercut.cli.exit_code import ExitCode


class SearchFailed(click.ClickException):
    """An error of powercut in the search for missing barriers; the verdicts are printed."""

    exit_code = ExitCode.INTERNAL_ERROR

    def __init__(self, error: Exception) -> None:
        super().__init__(
            "powercut itself failed in the search for missing fsyncs; the verdicts stand. Please "
            "report the lines above and the output of `powercut doctor`"
        )
        self.error = error

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the traceback of the error, and the sentence."""
        click.echo("".join(traceback.format_exception(self.error)), err=True, file=file)
        click.echo(self.message, err=True, file=file)
