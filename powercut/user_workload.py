"""A scenario of the user's own: ``module:function``, imported from the current directory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final, cast

from crash_tests.workloads.workload import Scenario
from powercut.fuzz.finding import failure_of
from sim.errors import HarnessError

_SHAPE: Final = "module:function, such as store:workload"


def user_scenario(name: str, check: str | None) -> Scenario:
    """Return the scenario around ``module:function``, which takes (disk, ack).

    Its check is ``check`` (``module:function``, taking (disk, known)), else the function's
    own attribute ``check``, else "old or new". Raises ``HarnessError`` in one sentence for
    whatever cannot be imported or called.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    workload = _imported(name)
    own = _imported(check) if check is not None else getattr(workload, "check", None)
    if own is not None and not callable(own):
        raise HarnessError(f"the check of {name} is not callable: {own!r}")
    return Scenario(name, "your own workload", workload, own)


def _imported(name: str) -> Callable[..., None]:
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        raise HarnessError(f"{name!r} is not {_SHAPE}")
    try:
        failure = failure_of(lambda: import_module(module))
    except SystemExit as left:
        raise HarnessError(f"module {module!r} exits when it is imported: {left.code}") from None
    if isinstance(failure, ModuleNotFoundError) and failure.name == module:
        raise HarnessError(f"there is no module {module!r} in {Path.cwd()}, nor installed")
    if failure is not None:
        told = f"{type(failure).__name__}: {failure}"
        raise HarnessError(f"module {module!r} cannot be imported: {told}")
    found = getattr(sys.modules[module], function, None)
    if found is None:
        raise HarnessError(f"module {module!r} has no function {function!r}")
    if not callable(found):
        raise HarnessError(f"{name} is not callable: {found!r}")
    return cast("Callable[..., None]", found)
