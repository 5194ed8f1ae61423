"""Crashes of recoveries: the check runs on a mount, which records it, and its journal is crashed.

A check that opens the data as the next start of the program would recovers them, and so writes.
Its operations are recorded once for each crash image. The images of their crashes are found under
each model that allows the first crash, and the same check must pass on them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import NamedTuple

from oracles.history import History
from powercut.fuse.command_check import acknowledged_in
from powercut.fuse.crash_search import search
from powercut.fuse.found_image import Found
from powercut.fuse.image_check import CommandCheck
from powercut.fuse.mount import enter_mount_namespace
from powercut.fuse.run_program import SHELL, run_program
from sim.disk.crash.image import Image
from sim.disk.crash.journal import Journal
from sim.disk.crash.journal_file import decode_journal, encode_journal
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.disk import Disk


class Recovery(NamedTuple):
    """A check that passed on the mount: its journal as bytes, and by model its crash images.

    The images have the acknowledgements of the first crash in their keys. ``sampled`` are the
    models under which not all of them were found.
    """

    encoded: bytes
    found: dict[str, list[Found]]
    sampled: frozenset[str]

    @property
    def journal(self) -> Journal:
        """The operations of the check, on the image that the first crash left."""
        return decode_journal(self.encoded)


class Recoveries:
    """Runs checks on mounts, in a process that does nothing else. ``folder`` is for files."""

    def __init__(self, check: CommandCheck, folder: str) -> None:
        """Enter a namespace where the machine allows it; raises ``OSError``."""
        self._check = check
        self._folder = folder
        self._directory = check.recording.mount_point
        if check.way.is_private:
            enter_mount_namespace()
        else:
            self._directory = f"{folder}/{os.getpid()}"
            os.mkdir(self._directory)

    def of(self, image: Image, entries: int, models: Sequence[PersistenceModel]) -> Recovery | None:
        """Return the recovery of an image that a crash left after ``entries`` acknowledgements.

        None if the check writes nothing, or does not pass on the mount.
        """
        journal = self._recorded(image, entries)
        if journal is None or not len(journal):
            return None
        nothing = History(lambda: len(journal))
        searches = {model.name: search(journal, nothing, model) for model in models}
        found = {
            name: [
                each._replace(key=(entries, each.key[1]), entries=entries)
                for each in searched.found
            ]
            for name, searched in searches.items()
        }
        sampled = frozenset(name for name, each in searches.items() if not each.exhaustive)
        return Recovery(encode_journal(journal), found, sampled)

    def _recorded(self, image: Image, entries: int) -> Journal | None:
        check = self._check
        lines = [text for _, text in check.recording.acknowledgements[:entries]]
        disk = Disk(image, now_ns=time.time_ns)
        command = (*SHELL, f"exec </dev/null 2>&1\n{check.command}")
        os.environ.update(acknowledged_in(self._folder, lines))
        try:
            run = run_program(disk, command, self._directory, check.way, check.timeout_s)
        except TimeoutError:
            return None
        return None if run.exit_status else disk.journal
