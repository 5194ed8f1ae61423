"""The end of a command that could not explain a failure, after the report of the rest."""

from __future__ import annotations

import traceback
from typing import IO, Any

import click

from powercut.cli.exit_code import ExitCode
from powercut.cli.usage import UsageMistake, mistake_of
from sim.errors import HarnessError


class SearchFailed(click.ClickException):
    """An error of powercut in a reduction or in the search for missing barriers.

    The verdicts are printed.
    """

    exit_code = ExitCode.INTERNAL_ERROR

    def __init__(self, error: Exception) -> None:
        super().__init__(
            "powercut itself failed while it explained a failure; the verdicts stand. Please "
            "report the lines above and the output of `powercut doctor`"
        )
        self.error = error

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the traceback of the error, and the sentence."""
        click.echo("".join(traceback.format_exception(self.error)), err=True, file=file)
        click.echo(self.message, err=True, file=file)


def end_of_search(error: Exception, title: str = "") -> click.ClickException:
    """Return the end of a command whose search has ended with ``error``.

    A mistake of the user is one sentence, which begins with ``title``.
    """
    mistake = mistake_of(error)
    if not mistake and not isinstance(error, HarnessError):
        return SearchFailed(error)
    return UsageMistake(f"{title}: {mistake or error}" if title else mistake or str(error))
