"""The project of the engine's own tests: its targets, workloads and mutants are in ``tests``."""

from __future__ import annotations

from typing import Final

from powercut.config import Config
from powercut.registry import Registry

PROJECT: Final = Registry(
    Config(
        targets={
            "saved-file": "tests.unit.fuzz.saved_file:saved_file",
            "frequent-file": "tests.unit.fuzz.saved_file:frequent_file",
            "crash-free": "tests.unit.fuzz.broken:CrashFree",
        },
        workloads={
            "save": "tests.unit.explorer.workloads:save_twice",
            "save-without-fsync": "tests.unit.explorer.workloads:without_fsync",
            "directories": "tests.unit.explorer.workloads:directories",
        },
        mutants={
            "no-fsync": "tests.unit.fuzz.mutants:no_fsync",
            "no-directory-fsync": "tests.unit.fuzz.mutants:no_directory_fsync",
        },
    )
)
