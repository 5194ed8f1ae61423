"""The front door: crash a program everywhere, and say what it lost.

Everything documented is imported from here. Each name is looked up when it is first used,
because the pytest plugin loads this package into runs that may never need it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from powercut.explorer.explore import explore
    from sim.disk.calls.process import Process
    from sim.disk.crash.persistence import MODELS, PersistenceModel, model_named
    from sim.disk.disk import Disk

__all__ = ["MODELS", "Disk", "PersistenceModel", "Process", "explore", "model_named"]

_HOMES = {
    "MODELS": "sim.disk.crash.persistence",
    "Disk": "sim.disk.disk",
    "Process": "sim.disk.calls.process",
    "PersistenceModel": "sim.disk.crash.persistence",
    "explore": "powercut.explorer.explore",
    "model_named": "sim.disk.crash.persistence",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
