"""powercut: crash a program at every operation of its disk, and check the data that is left.

Everything documented is imported from here::

    from powercut import explore, Disk, Process

A name is imported when it is first used, so that ``import powercut`` costs nothing. No
subpackage has the name of a function.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from faults.crash_counter import CrashCounter
    from faults.crash_point import CrashKind, CrashPoint, Phase
    from faults.fault_plan import FaultPlan
    from faults.injector import FaultInjector
    from oracles.history import History, Known
    from oracles.shadow_file import ShadowFile
    from oracles.shadow_log import ShadowLog
    from oracles.violation import (
        Duplicated,
        FalseAlarm,
        Garbage,
        InvalidState,
        LostAck,
        Phantom,
        Reordered,
        Resurrected,
        SilentEmpty,
        TornRecord,
        UnreadableAfterCrash,
        Violation,
    )
    from powercut.crashing_disk import CrashingDisk
    from powercut.explorer.explore import explore, explore_models
    from powercut.explorer.limits import Engine, Limits
    from powercut.explorer.recovery_unit import recovery_unit
    from powercut.explorer.two_phases import TwoPhases
    from powercut.explorer.verdicts import Exploration, Failure
    from powercut.fuzz.action import ActionKind, Arguments
    from powercut.fuzz.drivers.hypothesis_choices import HypothesisChoices
    from powercut.fuzz.fault_families import FaultFamily
    from powercut.fuzz.mutant import Mutant
    from powercut.fuzz.source_patch import SourcePatch
    from powercut.fuzz.target import DiskTarget, Target
    from powercut.interpose.interposed import interposed
    from powercut.interpose.seed import image_of
    from sim.choices import Choices, PlainChoices, SeededChoices
    from sim.disk.calls.modules import OsModule
    from sim.disk.calls.process import Process
    from sim.disk.crash.image import Image
    from sim.disk.crash.journal import Journal
    from sim.disk.crash.journal_file import load_journal, save_journal
    from sim.disk.crash.persistence import MODELS, PersistenceModel, model_named
    from sim.disk.crash.survivor_set import SurvivorSet
    from sim.disk.disk import Disk
    from sim.errors import HarnessError, PowerOff, SimulatedCrash, UnsupportedOperation
    from sim.sqlite.connection import abandon, connect
    from sim.world import Boot, World

__all__ = [
    "MODELS",
    "ActionKind",
    "Arguments",
    "Boot",
    "Choices",
    "CrashCounter",
    "CrashKind",
    "CrashPoint",
    "CrashingDisk",
    "Disk",
    "DiskTarget",
    "Duplicated",
    "Engine",
    "Exploration",
    "Failure",
    "FalseAlarm",
    "FaultFamily",
    "FaultInjector",
    "FaultPlan",
    "Garbage",
    "HarnessError",
    "History",
    "HypothesisChoices",
    "Image",
    "InvalidState",
    "Journal",
    "Known",
    "Limits",
    "LostAck",
    "Mutant",
    "OsModule",
    "PersistenceModel",
    "Phantom",
    "Phase",
    "PlainChoices",
    "PowerOff",
    "Process",
    "Reordered",
    "Resurrected",
    "SeededChoices",
    "ShadowFile",
    "ShadowLog",
    "SilentEmpty",
    "SimulatedCrash",
    "SourcePatch",
    "SurvivorSet",
    "Target",
    "TornRecord",
    "TwoPhases",
    "UnreadableAfterCrash",
    "UnsupportedOperation",
    "Violation",
    "World",
    "abandon",
    "connect",
    "explore",
    "explore_models",
    "image_of",
    "interposed",
    "load_journal",
    "model_named",
    "recovery_unit",
    "save_journal",
]

_MODULES = {
    "ActionKind": "powercut.fuzz.action",
    "Arguments": "powercut.fuzz.action",
    "Boot": "sim.world",
    "Choices": "sim.choices",
    "CrashCounter": "faults.crash_counter",
    "CrashKind": "faults.crash_point",
    "CrashPoint": "faults.crash_point",
    "CrashingDisk": "powercut.crashing_disk",
    "Disk": "sim.disk.disk",
    "DiskTarget": "powercut.fuzz.target",
    "Duplicated": "oracles.violation",
    "Engine": "powercut.explorer.limits",
    "Exploration": "powercut.explorer.verdicts",
    "Failure": "powercut.explorer.verdicts",
    "FalseAlarm": "oracles.violation",
    "FaultFamily": "powercut.fuzz.fault_families",
    "FaultInjector": "faults.injector",
    "FaultPlan": "faults.fault_plan",
    "Garbage": "oracles.violation",
    "HarnessError": "sim.errors",
    "History": "oracles.history",
    "HypothesisChoices": "powercut.fuzz.drivers.hypothesis_choices",
    "Image": "sim.disk.crash.image",
    "InvalidState": "oracles.violation",
    "Journal": "sim.disk.crash.journal",
    "Known": "oracles.history",
    "Limits": "powercut.explorer.limits",
    "LostAck": "oracles.violation",
    "MODELS": "sim.disk.crash.persistence",
    "Mutant": "powercut.fuzz.mutant",
    "OsModule": "sim.disk.calls.modules",
    "PersistenceModel": "sim.disk.crash.persistence",
    "Phantom": "oracles.violation",
    "Phase": "faults.crash_point",
    "PlainChoices": "sim.choices",
    "PowerOff": "sim.errors",
    "Process": "sim.disk.calls.process",
    "Reordered": "oracles.violation",
    "Resurrected": "oracles.violation",
    "SeededChoices": "sim.choices",
    "ShadowFile": "oracles.shadow_file",
    "ShadowLog": "oracles.shadow_log",
    "SilentEmpty": "oracles.violation",
    "SimulatedCrash": "sim.errors",
    "SourcePatch": "powercut.fuzz.source_patch",
    "SurvivorSet": "sim.disk.crash.survivor_set",
    "Target": "powercut.fuzz.target",
    "TornRecord": "oracles.violation",
    "TwoPhases": "powercut.explorer.two_phases",
    "UnreadableAfterCrash": "oracles.violation",
    "UnsupportedOperation": "sim.errors",
    "Violation": "oracles.violation",
    "World": "sim.world",
    "abandon": "sim.sqlite.connection",
    "connect": "sim.sqlite.connection",
    "explore": "powercut.explorer.explore",
    "explore_models": "powercut.explorer.explore",
    "image_of": "powercut.interpose.seed",
    "interposed": "powercut.interpose.interposed",
    "load_journal": "sim.disk.crash.journal_file",
    "model_named": "sim.disk.crash.persistence",
    "recovery_unit": "powercut.explorer.recovery_unit",
    "save_journal": "sim.disk.crash.journal_file",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    try:
        module = import_module(_MODULES[name])
    except ModuleNotFoundError as missing:
        from powercut.extras import missing_extra

        needed = missing_extra(missing)
        if not needed:
            raise
        raise ModuleNotFoundError(f"powercut.{name} needs {needed}", name=missing.name) from missing
    found: object = getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
