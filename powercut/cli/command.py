"""The class of the commands: an option with one value is given once."""

from __future__ import annotations

from collections import Counter

import click

from powercut.cli.usage import UsageMistake


class Command(click.Command):
    """A command that refuses an option if one of its values would be ignored.

    Flags may be repeated, and so may options with several values.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; ``UsageMistake`` for the first option that has a value too many."""
        arguments = super().parse_args(ctx, [*args])
        if ctx.resilient_parsing:
            return arguments
        _, _, given = self.make_parser(ctx).parse_args(args)
        for option, times in Counter(given).items():
            if times > 1 and isinstance(option, click.Option) and _has_one_value(option):
                name = max(option.opts, key=len)
                raise UsageMistake(f"{name} takes one value, and is given {times} times")
        return arguments


def _has_one_value(option: click.Option) -> bool:
    return not (option.is_flag or option.multiple)
