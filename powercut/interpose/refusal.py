"""Calls of a program that the simulated disk refuses, and the sentence about them."""

from __future__ import annotations

from collections.abc import Callable

from powercut.place import raised_at
from sim.disk.calls.process import Process
from sim.errors import UnsupportedOperation


class SpecialFileRefused(UnsupportedOperation):
    """The program makes a fifo or a device on the disk, which ``powercut try`` refuses as well."""


def refusing(
    name: str, kind: type[UnsupportedOperation] = UnsupportedOperation
) -> Callable[[Process], None]:
    """Return a method of a process that refuses the call ``name`` with an error of this kind."""

    def refuse(_process: Process) -> None:
        raise kind(f"{name} is not modelled by the simulated disk")

    return refuse


def sentence_on(refusal: UnsupportedOperation) -> str:
    """Return the text of a refusal with the line of the program and the remedy."""
    remedy = "run the command with powercut try"
    if isinstance(refusal, SpecialFileRefused):
        remedy = "powercut try has no special files either, so make it outside of the disk"
    return f"{refusal}{raised_at(refusal.__traceback__)}; {remedy}"
