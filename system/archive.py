"""The archive: the lines of collected agents, one file each below ``archive/``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from system.agents.durable_work import DurableWork
from system.durable.ended import forget_archives, oldest_archive_at, oldest_archives
from system.durable.seconds import nanoseconds_of, seconds_of
from system.ports import FileSystem, Host, Ids
from system.storage.atomic_file import read_whole, replace_file
from system.storage.durable_directory import make_durable_directory
from system.storage.segments import segment_path, segments_in

ARCHIVE: Final = "archive"


def archive_path(session_id: str) -> str:
    """Return the path of the lines of a collected session."""
    return f"{ARCHIVE}/{session_id}.jsonl"


class Archive:
    """The archive of one root.

    The lines of an agent are kept until ``keep_ns`` nanoseconds after its end; None: for ever.
    ``due_ns`` is the time in nanoseconds since 1970 at which the next file is to be removed. It
    is None if there is none, and before the first ``remove_old``.
    """

    def __init__(self, host: Host, durable: DurableWork, keep_ns: int | None) -> None:
        self.due_ns: int | None = None
        self._host = host
        self._durable = durable
        self._keep_ns = keep_ns

    @property
    def may_be_due(self) -> bool:
        """Whether there may be a file to be removed."""
        return self._keep_ns is not None and self._durable.state is not None

    def is_kept(self, ended_ns: int) -> bool:
        """Whether the lines of an agent that ended then are kept now."""
        return self._keep_ns is None or ended_ns + self._keep_ns > self._host.clock.wall_ns()

    async def write(self, logs: Mapping[str, str]) -> int:
        """Write the lines of logs (paths by session id) durably; return the number of bytes.

        Raises ``StorageFull`` or ``OSError``.
        """
        if not logs:
            return 0
        host = self._host
        return await host.workers.run(lambda: _write(host.files, host.ids, logs))

    async def remove_old(self) -> None:
        """Remove the expired files, durably, and then their paths in the rows.

        Raises ``StorageError`` or ``OSError``; a later call removes the others.
        """
        host, durable = self._host, self._durable
        if self._keep_ns is None or durable.state is None:
            return
        before = seconds_of(host.clock.wall_ns() - self._keep_ns)
        while rows := await durable.run(lambda each: oldest_archives(each, before)):
            await host.workers.run(partial(_remove, host.files, [str(row.archive) for row in rows]))
            await durable.run(partial(forget_archives, rows=rows))
        oldest = await durable.run(oldest_archive_at)
        self.due_ns = None if oldest is None else nanoseconds_of(oldest) + self._keep_ns


def _write(files: FileSystem, ids: Ids, logs: Mapping[str, str]) -> int:
    make_durable_directory(files, ARCHIVE)
    archived = 0
    for session_id, path in logs.items():
        names = files.listdir(path.rpartition("/")[0])
        segments = [segment_path(path, number) for number in segments_in(names, path)]
        content = b"".join(read_whole(files, segment) for segment in segments)
        # A boot removes temporary files in the root; the archive may have any number of files.
        replace_file(files, archive_path(session_id), content, ids, scratch="")
        archived += len(content)
    files.sync_dir(ARCHIVE)
    return archived


def _remove(files: FileSystem, paths: Sequence[str]) -> None:
    for path in paths:
        with suppress(FileNotFoundError):
            files.unlink(path)
    files.sync_dir(ARCHIVE)
