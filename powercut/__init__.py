"""The front door: crash a program everywhere, and say what it lost.

Everything documented is imported from here. Each name is looked up when it is first used,
because the pytest plugin loads this package into runs that may never need it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from powercut.explore import explore
    from sim.disk.disk import Disk
    from sim.disk.handle import Handle
    from sim.disk.persistence import MODELS, PersistenceModel, model_named

__all__ = ["MODELS", "Disk", "Handle", "PersistenceModel", "explore", "model_named"]

_HOMES = {
    "MODELS": "sim.disk.persistence",
    "Disk": "sim.disk.disk",
    "Handle": "sim.disk.handle",
    "PersistenceModel": "sim.disk.persistence",
    "explore": "powercut.explore",
    "model_named": "sim.disk.persistence",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
