"""Records in files: ``records/<execution id>.json``, or ``.json.gz``, or many in one pack."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from posixpath import join
from typing import Final

from system.errors import NewerFormat, RaisingStorageFull, StorageError
from system.ports import FileKind, Host
from system.recording.executions.execution import Execution
from system.recording.executions.spool import chunks
from system.recording.records.errors import (
    ForeignRecordFile,
    RecordCorruptedError,
    RecordNotFoundError,
)
from system.recording.records.event import ExecutionEvent
from system.recording.records.execution_id import is_execution_id
from system.recording.records.invalidation import invalidated, still_invalidated
from system.recording.records.record import ExecutionRecord
from system.recording.records.structure import to_save
from system.recording.stores.gzip_data import compressed, is_expandable
from system.recording.stores.pack import Packable
from system.recording.stores.pack_folder import PackFolder
from system.recording.stores.pack_stream import PackStream
from system.recording.stores.record_file import (
    COMPRESSED,
    SUFFIX,
    check_owner,
    decode_record,
    encode_record,
)
from system.recording.stores.record_stream import RecordStream, compressed_pieces, file_pieces
from system.storage.atomic_file import read_whole, replace_by_pieces
from system.storage.durable_directory import make_durable_directory
from system.storage.quarantine import move_aside

_NAME: Final = re.compile(r"(exec-[0-9a-f]{16})\.json(?:\.gz)?")


class FileExecutionStore:
    """An ``ExecutionStore`` over one directory.

    A record is in a file of its own, which has one of two names, or in a pack. If there are
    several, the uncompressed file takes precedence over the compressed one, and this over a
    pack. ``scratch`` is the directory of temporary files, by default ``base_path``. Saved
    records are ``compressed`` or not. Packs with a number up to ``above`` are ignored.
    """

    def __init__(
        self,
        host: Host,
        base_path: str = "records",
        scratch: str | None = None,
        *,
        compressed: bool = False,
        above: int = 0,
    ) -> None:
        self.base_path = base_path
        self.packs = PackFolder(host.files, base_path, above)
        self._host = host
        self._scratch = scratch
        self._compressed = compressed
        self._is_durable = False
        # Record hash and envelope hash of every record that was read, saved or noted here.
        self._hashes: dict[str, tuple[str, str]] = {}

    def save(self, record: ExecutionRecord) -> str:
        """Write a record into a file of its own, durably, with its directory; return its path.

        An invalidation in the file that it replaces is kept. Raises ``UnsoundRecord`` for a record
        that ``load`` would refuse, ``NewerFormat`` if the file is of a later version, and
        ``StorageFull`` or ``OSError``.
        """
        return self.write(to_save(record, self.base_path))

    def write(self, record: ExecutionRecord) -> str:
        """Do the same as ``save`` for a record of the log, which may lack events."""
        record = still_invalidated(record, self._own_record(record.execution_id))
        if not self._is_durable:
            # The log creates the directory too, and may not have synced it yet.
            with RaisingStorageFull(self.base_path):
                make_durable_directory(self._host.files, self.base_path)
                self._make_scratch()
            self._is_durable = True
        files, path = self._host.files, self._path(record.execution_id)
        data = encode_record(record)
        # If there is an uncompressed file, it takes precedence and stays the only one.
        if self._compressed and is_expandable(data) and files.kind(path) is None:
            path, data = path + COMPRESSED, compressed(data)
        content = chunks([data])
        with RaisingStorageFull(path):
            replace_by_pieces(files, path, content, self._host.ids, self._scratch)
        self.note(record)
        self.sync()
        return path

    def _make_scratch(self) -> None:
        """Make the directory of temporary files, which a power cut may have removed."""
        files, scratch = self._host.files, self._scratch
        if scratch is not None and files.kind(scratch) is not FileKind.DIRECTORY:
            files.mkdir(scratch)

    def write_pack(self, number: int, executions: Iterable[Packable]) -> None:
        """Write executions into one new pack, whose name is durable after ``sync``.

        Raises as ``save``.
        """
        with RaisingStorageFull(self.base_path):
            scratch = self.base_path if self._scratch is None else self._scratch
            self.packs.write(number, executions, self._host.ids, scratch)

    def remove_pack(self, number: int) -> None:
        """Remove a pack, without a barrier; a pack that a power cut restores is harmless."""
        with suppress(OSError):
            self.packs.remove(number)

    def settle(self) -> None:
        """Make names durable that an earlier process has left without a barrier."""
        if self._host.files.kind(self.base_path) is FileKind.DIRECTORY:
            self.sync()

    def sync(self) -> None:
        """Make the names of all records durable; raises as ``save``."""
        with RaisingStorageFull(self.base_path):
            self._host.files.sync_dir(self.base_path)

    def make_directory(self) -> None:
        """Make the directory durably if it is missing; raises as ``save``."""
        files = self._host.files
        with RaisingStorageFull(self.base_path):
            if files.kind(self.base_path) is not FileKind.DIRECTORY:
                make_durable_directory(files, self.base_path)

    def load(self, execution_id: str) -> ExecutionRecord:
        if not is_execution_id(execution_id):
            raise RecordNotFoundError(self.base_path, execution_id)
        own = self._own_content(execution_id)
        if own is not None:
            path, data = own
            record = decode_record(data, path, compressed=path.endswith(COMPRESSED))
        elif (member := self.packs.find(execution_id)) is not None:
            path, record = member.name, member.record(self._host.files)
        else:
            raise RecordNotFoundError(self._path(execution_id), execution_id)
        check_owner(record.execution_id, execution_id, path)
        self.note(record)
        return record

    def _own_content(self, execution_id: str) -> tuple[str, bytes] | None:
        """Return path and content of the record's own file, or None; raises as ``_own_file``."""
        for is_last in (False, True):
            path = self._own_file(execution_id)
            if path is None:
                break
            try:
                return path, read_whole(self._host.files, path)
            except FileNotFoundError:
                # A recovery in another process has put it aside.
                if is_last:
                    raise
        return None

    def _own_file(self, execution_id: str) -> str | None:
        """Return the path of the record's own file, or None; raises ``ForeignRecordFile``."""
        plain = self._path(execution_id)
        for path in (plain, plain + COMPRESSED):
            kind = self._host.files.kind(path)
            if kind is FileKind.FILE:
                return path
            if kind is not None:
                raise ForeignRecordFile(path, "it is not a regular file")
        return None

    def _own_record(self, execution_id: str) -> ExecutionRecord | None:
        """Return what can be parsed of the record's own file, or None.

        Raises ``NewerFormat`` or ``OSError``.
        """
        if not self.has_own_file(execution_id):
            return None
        try:
            return self.load(execution_id)
        except RecordCorruptedError as corrupted:
            return corrupted.record
        except ForeignRecordFile:
            return None

    def has_own_file(self, execution_id: str) -> bool:
        """Return whether the record has a regular file of its own, damaged or not."""
        try:
            return self._own_file(execution_id) is not None
        except ForeignRecordFile:
            return False

    def stream_events(self, execution_id: str) -> Iterator[ExecutionEvent]:
        """Yield the events of a long record, one at a time in memory.

        Only for records that this program has written. Raises as ``load``, before the first one.
        """
        return self.stream(execution_id).events()

    def stream_response(self, execution_id: str) -> Iterator[bytes]:
        """Yield the final response of a long record, as ``stream_events`` the events."""
        return self.stream(execution_id).response()

    def stream(self, execution_id: str) -> RecordStream | PackStream:
        """Return what reads a record in pieces; raises ``RecordNotFoundError``, and as ``find``."""
        if not is_execution_id(execution_id):
            raise RecordNotFoundError(self.base_path, execution_id)
        files, path = self._host.files, self._own_file(execution_id)
        if path is not None:
            pieces = partial(file_pieces, files, path)
            if path.endswith(COMPRESSED):
                pieces = partial(compressed_pieces, pieces, path)
            return RecordStream(pieces, path, execution_id)
        member = self.packs.find(execution_id)
        if member is None:
            raise RecordNotFoundError(self._path(execution_id), execution_id)
        return PackStream(partial(member.pieces, files), member.name)

    def list_all(self) -> Iterator[str]:
        return iter(sorted(self._own_ids() | self.packs.ids()))

    def is_running(self, _execution_id: str) -> bool:
        """Return False: an execution that is open has no record in a file."""
        return False

    def _own_ids(self) -> set[str]:
        """Return the ids of the records that have a file of their own."""
        files = self._host.files
        kind = files.kind(self.base_path)
        if kind is None:
            return set()
        if kind is not FileKind.DIRECTORY:
            raise ForeignRecordFile(self.base_path, "it is not a directory")
        matches = map(_NAME.fullmatch, files.listdir(self.base_path))
        return {found[1] for found in matches if found is not None}

    def find_by_hash(self, envelope_hash: str) -> list[str]:
        found, own = list[str](), self._own_ids()
        for execution_id in sorted(own | self.packs.ids_with(envelope_hash)):
            if execution_id not in self._hashes:
                try:
                    self.load(execution_id)
                except StorageError:
                    # ``load`` reports it. A damaged file has no hash; that of a damaged member of a
                    # pack is in the table.
                    if execution_id not in own:
                        found.append(execution_id)
                    continue
            if self._hashes[execution_id][1] == envelope_hash:
                found.append(execution_id)
        return found

    def has(self, execution_id: str) -> bool:
        """Return whether this store has the record, damaged or not; raises ``OSError``."""
        return self.has_own_record(execution_id) or self.has_in_pack(execution_id)

    def has_in_pack(self, execution_id: str) -> bool:
        """Return whether a pack has the record, damaged or not; raises ``OSError``.

        A record that is not found in a damaged pack is lost, whether the pack has had it or not.
        """
        try:
            return self.packs.find(execution_id) is not None
        except NewerFormat:
            return True
        except StorageError:
            return False

    def has_own_record(self, execution_id: str) -> bool:
        """Return whether the record has a file of its own, damaged or not; raises ``OSError``.

        A file that has the record of another execution is none.
        """
        if not self.has_own_file(execution_id):
            return False
        try:
            self.load(execution_id)
        except ForeignRecordFile:
            return False
        except StorageError:
            # The damaged file may have been its record, and one of a newer version is.
            return True
        return True

    def hash_of(self, execution_id: str) -> str | None:
        known = self._hashes.get(execution_id) if is_execution_id(execution_id) else None
        return None if known is None else known[0]

    def invalidate(self, execution_id: str, reason: str, by: str) -> ExecutionRecord:
        record = invalidated(self.load(execution_id), reason, by, self._host.clock)
        # An earlier call may have changed the file and failed before it was durable.
        self.save(record)
        return record

    def put_file_aside(self, execution_id: str) -> str:
        """Rename the record's own file into quarantine; return its new path; raises ``OSError``."""
        path = self._own_file(execution_id)
        assert path is not None, execution_id
        return move_aside(self._host.files, path)

    def note(self, record: ExecutionRecord) -> None:
        """Keep the hashes of a record that is stored here, or will be, for ``hash_of``."""
        header = record.header
        record_hash = header.record_hash or record.compute_hash()
        self._hashes[header.execution_id] = (record_hash, header.envelope_hash)

    def _path(self, execution_id: str) -> str:
        return join(self.base_path, execution_id + SUFFIX)


def is_settled(store: FileExecutionStore, execution: Execution) -> bool:
    """Return whether the store has a record that a log cannot change any more.

    These are a record with a response and an invalidated one, which recovery never replaces
    (planted bug I19), and one that has all events of an unfinished execution: a power cut may
    have brought back an old snapshot, whose removal has no barrier. Raises ``RecordCorruptedError``
    if the record's own file is damaged, because it may have been invalidated, ``ForeignRecordFile``
    if it has another execution, and ``OSError``.
    """
    try:
        record = store.load(execution.execution_id)
    except RecordNotFoundError:
        return False
    except NewerFormat:
        # A file is left unchanged. A pack that cannot be read shows nothing.
        return store.has_own_file(execution.execution_id)
    except (RecordCorruptedError, ForeignRecordFile):
        # A directory in the place of the file shows nothing, nor does a damaged pack.
        if store.has_own_file(execution.execution_id):
            raise
        return False
    if record.frozen_response is not None or record.header.invalidation is not None:
        return True
    return not execution.is_finished and len(record.events) >= execution.event_count
