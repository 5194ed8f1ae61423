"""Known bugs of the saved file."""

from __future__ import annotations

from typing import Final

from oracles.violation import LostAck, SilentEmpty, TornRecord
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

PROGRAM: Final = "tests.unit.fuzz.saved_file"
NO_BARRIER: Final = SourcePatch(PROGRAM, "if sync:", "if not sync:")
NO_DIRECTORY_BARRIER: Final = SourcePatch(
    PROGRAM, "sync_directory(process, os.path.dirname(path))", ""
)

no_fsync = Mutant("the file is not synced", "saved-file", (SilentEmpty, TornRecord), (NO_BARRIER,))
no_directory_fsync = Mutant(
    "the directory is not synced", "saved-file", (SilentEmpty, LostAck), (NO_DIRECTORY_BARRIER,)
)
