"""The functions of C that start a process or an interpreter without an audit event.

``multiprocessing`` starts its processes with ``fork_exec``, past ``subprocess.Popen``. What
another interpreter of this process does raises no event here. Each wrapper raises an event,
which the guard sees. That of ``fork_exec`` is the one of late releases of CPython 3.14 and 3.15.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

from powercut.interpose.os_calls import bound
from powercut.interpose.router import Router
from powercut.interpose.wrapper import Real, Routed

FORK_EXEC: Final = "_posixsubprocess.fork_exec"
# The module has the first name to CPython 3.12, and the second one from 3.13 on.
INTERPRETERS: Final = ("_xxsubinterpreters.create", "_interpreters.create")


def routed_programs() -> Iterator[tuple[Real, Routed]]:
    """Yield each function that this interpreter has with the wrapper that takes its place."""
    for event, maker in ((FORK_EXEC, _process_call), *((name, _call) for name in INTERPRETERS)):
        module, _, name = event.rpartition(".")
        with suppress(ImportError):
            real = getattr(import_module(module), name)
            yield real, bound(maker(event, real), real)


def _process_call(event: str, real: Real) -> Routed:
    def routed(_router: Router, arguments: Any, programs: Any, *more: Any) -> Any:
        sys.audit(event, programs, arguments)
        return real(arguments, programs, *more)

    return routed


def _call(event: str, real: Real) -> Routed:
    def routed(_router: Router, *arguments: Any, **options: Any) -> Any:
        sys.audit(event)
        return real(*arguments, **options)

    return routed
