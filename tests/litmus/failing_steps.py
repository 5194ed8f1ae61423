"""Random steps on two files of a few blocks: barriers fail, and pages are dropped."""

from __future__ import annotations

from typing import Any, Final

from sim.choices import SeededChoices
from sim.disk.cache.operation import SyncFailure
from tests.litmus.observer import Steps, random_call

_FILES: Final = ("f", "f", "f", "g")
_TEXTS: Final = ("A1", "B2", "C3")
_OFFSETS: Final = (0, 1, 4, 511, 4095, 4096, 4100, 8191)
_SIZES: Final = (0, 1, 2, 4, 513, 4096, 4097, 8193)
_CALLS: Final = (
    "write", "write", "append", "truncate", "allocate", "fsync", "write_synced", "failed fsync",
    "failed fsync", "failed write_synced", "drop_pages", "drop_pages", "sync", "other",
)  # fmt: skip


def _failing_step(choices: SeededChoices) -> tuple[Any, ...]:
    name, file = choices.pick("call", _CALLS), choices.pick("file", _FILES)
    arguments: tuple[Any, ...] = (file,)
    match name:
        case "other":
            return random_call(choices)
        case "write" | "write_synced" | "failed write_synced":
            arguments = file, choices.pick("text", _TEXTS), choices.pick("offset", _OFFSETS)
        case "append":
            arguments = file, choices.pick("text", _TEXTS)
        case "truncate":
            arguments = file, choices.pick("size", _SIZES)
        case "allocate":
            arguments = file, choices.pick("offset", (0, 2)), choices.pick("size", _SIZES[1:])
        case "drop_pages":
            arguments = file, choices.pick("offset", (0, 4096)), choices.pick("length", (0, 4096))
        case "sync":
            arguments = ()
    if name.startswith("failed "):
        arguments = *arguments, choices.pick("policy", tuple(SyncFailure))
    return name, *arguments


FAILING: Final = Steps(_failing_step, _FILES)
