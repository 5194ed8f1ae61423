"""Mutants of whole files: replacements, reads and quarantine that lose what they should keep."""

from __future__ import annotations

from crash_tests.mutants.folders import SYSTEM_TESTS
from oracles.violation import FalseAlarm, LostAck, SilentEmpty, TornRecord
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

content_is_not_synced = Mutant(
    "a new content is renamed into place without a sync",
    "atomic-file",
    (LostAck, SilentEmpty, TornRecord),
    (
        SourcePatch(
            "system.storage.atomic_file",
            """
                offset += len(piece)
            file.fsync()
            """,
            "    offset += len(piece)",
        ),
    ),
)

content_is_synced_after_the_rename = Mutant(
    "a new content is synced only after it was renamed into place",
    "atomic-file",
    (SilentEmpty, TornRecord),
    (
        SourcePatch(
            "system.storage.atomic_file",
            """
                offset += len(piece)
            file.fsync()
            """,
            "    offset += len(piece)",
        ),
        SourcePatch(
            "system.storage.atomic_file",
            "files.replace(temporary, path)",
            """
            files.replace(temporary, path)
            renamed = files.open(path, OpenMode.WRITE)
            try:
                renamed.fsync()
            finally:
                renamed.close()
            """,
        ),
    ),
)

rename_is_not_synced = Mutant(
    "a rename is acknowledged without a sync of its directory",
    "atomic-file",
    (LostAck, SilentEmpty),
    (
        SourcePatch(
            "system.storage.atomic_file",
            """
            replace_file(files, path, data, ids)
            files.sync_dir(parent_of(path))
            """,
            "replace_file(files, path, data, ids)",
        ),
    ),
)

refused_temporary_stays = Mutant(
    "the temporary file of a write that failed is not removed",
    patches=(
        SourcePatch(
            "system.storage.atomic_file",
            """
            except OSError:
                _remove(files, temporary)
                raise
            """,
            """
            except OSError:
                raise
            """,
        ),
    ),
    tests=(
        (
            f"{SYSTEM_TESTS}/test_atomic_file.py"
            "::test_a_clean_failure_leaves_the_old_file_and_nothing_else"
        ),
    ),
)

old_file_is_unlinked_first = Mutant(
    "the old file is unlinked before the new one takes its name",
    "atomic-file",
    (LostAck, SilentEmpty),
    (
        SourcePatch(
            "system.storage.atomic_file",
            "files.replace(temporary, path)",
            """
            if files.kind(path) is not None:
                files.unlink(path)
            files.replace(temporary, path)
            """,
        ),
    ),
)

short_read_is_a_whole_file = Mutant(
    "a short read is taken for a whole file",
    "atomic-file",
    (FalseAlarm, LostAck, TornRecord),
    (
        SourcePatch(
            "system.storage.atomic_file",
            "if len(data) == size_bytes:",
            "if data or not size_bytes:",
        ),
    ),
)

short_write_is_a_whole_one = Mutant(
    "a short write is taken for a whole one",
    "atomic-file",
    (TornRecord,),
    (
        SourcePatch(
            "system.storage.transfer",
            """
            while data:
                taken = _some(file.pwrite(data, offset))
            """,
            """
            if data:
                taken = _some(file.pwrite(data, offset))
            """,
        ),
    ),
)

full_disk_is_no_failure = Mutant(
    "a write to a full disk counts as done",
    "atomic-file",
    (LostAck,),
    (
        SourcePatch(
            "system.storage.atomic_file",
            """
            except OSError:
                _remove(files, temporary)
                raise
            """,
            """
            except OSError as error:
                _remove(files, temporary)
                if error.errno != ENOSPC:
                    raise
            """,
        ),
        SourcePatch(
            "system.storage.atomic_file",
            "import re",
            """
            import re
            from errno import ENOSPC
            """,
        ),
    ),
)

quarantine_is_replaced = Mutant(
    "a damaged record replaces the one that was put aside before",
    "session-store",
    (LostAck,),
    (
        SourcePatch(
            "system.storage.quarantine",
            """
            while files.kind(aside := f"{path}.quarantine.{number}") is not None:
                number += 1
            """,
            'aside = f"{path}.quarantine.{number}"',
        ),
    ),
)


known_copy_is_not_synced = Mutant(
    "a copy that an interrupted recovery has made is not synced again",
    patches=(
        SourcePatch(
            "system.storage.quarantine",
            """
            if kind is FileKind.FILE and read_whole(files, copy) == data:
                files.sync_dir(parent_of(copy))
                return copy
            """,
            """
            if kind is FileKind.FILE and read_whole(files, copy) == data:
                return copy
            """,
        ),
    ),
    tests=(
        (
            f"{SYSTEM_TESTS}/test_quarantine.py"
            "::test_the_same_bytes_are_put_aside_once_and_are_durable_all_the_same"
        ),
    ),
)

existing_directory_is_durable = Mutant(
    "a directory that a killed process has made is taken for durable",
    patches=(
        SourcePatch(
            "system.storage.durable_directory",
            """
            if files.kind(path) is not FileKind.DIRECTORY:
                try:
            """,
            """
            if files.kind(path) is FileKind.DIRECTORY:
                return
            else:
                try:
            """,
        ),
    ),
    tests=(
        (
            f"{SYSTEM_TESTS}/test_durable_directory.py"
            "::test_a_directory_that_is_there_may_still_need_its_barrier"
        ),
    ),
)
