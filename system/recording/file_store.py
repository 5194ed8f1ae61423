"""Records in files: ``records/<execution id>.json``, or ``.json.gz``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from posixpath import join
from typing import Final

from system.errors import StorageError, raising_storage_full
from system.ports import FileKind, Host
from system.recording.errors import ForeignRecordFile, RecordCorruptedError, RecordNotFoundError
from system.recording.event import ExecutionEvent
from system.recording.execution import Execution
from system.recording.execution_id import is_execution_id
from system.recording.header import ExecutionHeader
from system.recording.invalidation import invalidated
from system.recording.record import ExecutionRecord
from system.recording.record_file import COMPRESSED, SUFFIX, RecordContent, compress, decode_record
from system.recording.record_stream import RecordStream
from system.recording.spool import chunks
from system.storage.atomic_file import read_whole, replace_by_pieces
from system.storage.durable_directory import make_durable_directory

_NAME: Final = re.compile(r"(exec-[0-9a-f]{16})\.json(?:\.gz)?")


class FileExecutionStore:
    """An ``ExecutionStore`` over one directory.

    A record is in the file of one of two names; where a crash has left both, the one that is
    not compressed counts. ``scratch`` is the directory of temporary files, by default
    ``base_path``; new records are ``compressed`` or not.
    """

    def __init__(
        self,
        host: Host,
        base_path: str = "records",
        scratch: str | None = None,
        *,
        compressed: bool = False,
    ) -> None:
        self.base_path = base_path
        self._host = host
        self._scratch = scratch
        self._compressed = compressed
        self._is_durable = False
        # Record hash and envelope hash of every record that was read or written here.
        self._hashes: dict[str, tuple[str, str]] = {}

    def save(self, record: ExecutionRecord) -> str:
        """Write a record durably, with its directory; return its path.

        Raises ``StorageFull`` or ``OSError``.
        """
        if not self._is_durable:
            # The log makes the directory as well, and its barrier may not have come yet.
            with raising_storage_full(self.base_path):
                make_durable_directory(self._host.files, self.base_path)
            self._is_durable = True
        (path,) = self.write([record])
        self.sync()
        return path

    def settle(self) -> None:
        """Make names durable that an earlier process has left without a barrier."""
        if self._host.files.kind(self.base_path) is FileKind.DIRECTORY:
            self.sync()

    def sync(self) -> None:
        """Make the names of all records durable; raises as ``save``."""
        with raising_storage_full(self.base_path):
            self._host.files.sync_dir(self.base_path)

    def remove(self, execution_id: str) -> None:
        """Remove the file of a record, without a barrier; one that stays is harmless."""
        with suppress(OSError):
            self._host.files.unlink(self._path(execution_id))

    def make_directory(self) -> None:
        """Make the directory durably if it is missing; raises as ``save``."""
        files = self._host.files
        with raising_storage_full(self.base_path):
            if files.kind(self.base_path) is not FileKind.DIRECTORY:
                make_durable_directory(files, self.base_path)

    def write(self, records: Iterable[RecordContent]) -> list[str]:
        """Write records whose names are durable after a sync of the directory; raises as ``save``.

        For a caller that writes many.
        """
        files, paths = self._host.files, []
        for record in records:
            plain = self._path(record.execution_id)
            compressed = self._compressed and files.kind(plain) is None
            path = plain + COMPRESSED if compressed else plain
            sealed = list[ExecutionHeader]()
            content = record.pieces(sealed.append)
            data = chunks(compress(content) if compressed else content)
            with raising_storage_full(path):
                replace_by_pieces(files, path, data, self._host.ids, self._scratch)
            self._note(sealed[0])
            paths.append(path)
        return paths

    def load(self, execution_id: str) -> ExecutionRecord:
        if not is_execution_id(execution_id):
            raise RecordNotFoundError(self.base_path, execution_id)
        plain = self._path(execution_id)
        for path, compressed in ((plain, False), (plain + COMPRESSED, True)):
            kind = self._host.files.kind(path)
            if kind is None:
                continue
            if kind is not FileKind.FILE:
                raise ForeignRecordFile(path, "it is no regular file")
            record = decode_record(read_whole(self._host.files, path), path, compressed=compressed)
            if record.execution_id != execution_id:
                raise ForeignRecordFile(path, f"it is the record of {record.execution_id}")
            header = record.header
            if header.record_hash is None:
                header = replace(header, record_hash=record.compute_hash())
            self._note(header)
            return record
        raise RecordNotFoundError(plain, execution_id)

    def stream_events(self, execution_id: str) -> Iterator[ExecutionEvent]:
        """Yield the events of a long record, one at a time in memory.

        Only for records that this program has written uncompressed. Raises
        ``FileNotFoundError``, and as ``RecordStream``.
        """
        return RecordStream(self._host.files, self._path(execution_id)).events()

    def stream_response(self, execution_id: str) -> Iterator[bytes]:
        """Yield the final response of a long record, as ``stream_events`` the events."""
        return RecordStream(self._host.files, self._path(execution_id)).response()

    def list_all(self) -> Iterator[str]:
        return iter(sorted(self._ids()))

    def _ids(self) -> set[str]:
        files = self._host.files
        kind = files.kind(self.base_path)
        if kind is None:
            return set()
        if kind is not FileKind.DIRECTORY:
            raise ForeignRecordFile(self.base_path, "it is no directory")
        matches = map(_NAME.fullmatch, files.listdir(self.base_path))
        return {found[1] for found in matches if found is not None}

    def find_by_hash(self, envelope_hash: str) -> list[str]:
        found = []
        for execution_id in self.list_all():
            if execution_id not in self._hashes:
                try:
                    self.load(execution_id)
                except (StorageError, OSError):
                    # It is reported by a load, and has no hash to be found by.
                    continue
            if self._hashes[execution_id][1] == envelope_hash:
                found.append(execution_id)
        return found

    def has(self, execution_id: str) -> bool:
        """Return whether a file of this store has the name of the record."""
        kind, path = self._host.files.kind, self._path(execution_id)
        return kind(path) is not None or (self._compressed and kind(path + COMPRESSED) is not None)

    def hash_of(self, execution_id: str) -> str | None:
        known = self._hashes.get(execution_id)
        return None if known is None else known[0]

    def invalidate(self, execution_id: str, reason: str, by: str) -> ExecutionRecord:
        record = invalidated(self.load(execution_id), reason, by, self._host.clock)
        # An earlier call may have changed the file and failed before it was durable.
        self.save(record)
        return record

    def _note(self, header: ExecutionHeader) -> None:
        assert header.record_hash is not None
        self._hashes[header.execution_id] = (header.record_hash, header.envelope_hash)

    def _path(self, execution_id: str) -> str:
        return join(self.base_path, execution_id + SUFFIX)


def is_settled(store: FileExecutionStore, execution: Execution) -> bool:
    """Return whether the store has a record that a log cannot change any more.

    That is one with a response, or an invalidated one: a redo never brings it back (hole I19).
    So is one that has all events of an unfinished execution: a power cut may have brought back
    an old snapshot, whose removal has no barrier.
    """
    try:
        record = store.load(execution.execution_id)
    except (RecordNotFoundError, RecordCorruptedError):
        return False
    except StorageError:
        return True  # of a newer version, or no record at all: it is left alone
    if record.frozen_response is not None or record.header.invalidation is not None:
        return True
    return not execution.is_finished and len(record.events) >= len(execution.events)
