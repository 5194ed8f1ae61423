"""The event log of one session: durable when ``append`` returns, recovered when opened.

Several lines may share one barrier (``append_all``), and a line may become durable with the
barrier of a later one (``append_unsynced``). A crash leaves a prefix of the unsynced lines, never
a later line without an earlier one.

``log_scan.py`` and ``log_recovery.py`` handle the states that a crash may leave, and
``framing.py`` makes lines durable. At most one process has a log open, and only once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from system.errors import BadSeal, LogDamaged, LogStopped, RaisingStorageFull, raise_if_full
from system.ports import Host, JsonObject, OpenMode
from system.storage.atomic_file import replace_file
from system.storage.framing import Framing, LineWriter, pending_path
from system.storage.line import Line, decode_line, encode_line, encode_lines
from system.storage.log_file import LogFile
from system.storage.log_recovery import ExaminedLog, RecoveredLog
from system.storage.path import parent_of
from system.storage.pending_writer import PendingWriter
from system.storage.segments import SNAPSHOT, read_lines, remove_segments, segment_path

TAIL_BYTES_PER_SNAPSHOT_BYTE: Final = 4
"""A snapshot is taken when the lines after the last one have more than this times its bytes."""


class EventLog:
    """An open log. ``report`` is recovery's report; ``last_seq`` counts the lines.

    ``recovered`` holds the lines of the newest segment at the time of opening, all of them
    durable. The caller sets it to ``()`` after use, to free the memory. ``path`` is that of the
    first segment, ``number`` that of the newest one.

    Calls may come from any thread, but not at the same time.
    """

    def __init__(
        self, host: Host, path: str, session_id: str, framing: Framing, recovered: RecoveredLog
    ) -> None:
        self.path = path
        self.session_id = session_id
        self.report = recovered.report
        self.recovered = lines = recovered.lines
        self.last_seq = self._durable_seq = recovered.last_seq
        self.number = recovered.number
        self._host = host
        self._framing = framing
        self._stopped: str | None = None
        first = lines[0] if lines else None
        snapshot = first if first is not None and first.event == SNAPSHOT else None
        self._first_seq = snapshot.seq if snapshot else self.last_seq - len(lines)
        self._snapshot_bytes = len(encode_line(snapshot, path)) if snapshot else 0
        self._size_bytes = recovered.size_bytes
        self._file, self._writer = self._writers()

    def _writers(self) -> tuple[LogFile, LineWriter]:
        files = self._host.files
        file = LogFile(files, self._newest_path, self._size_bytes)
        if self._framing is Framing.PENDING:
            return file, PendingWriter(files, file, pending_path(self.path))
        return file, file

    @property
    def _newest_path(self) -> str:
        """The path of the newest segment; the lines of the others are durable."""
        return segment_path(self.path, self.number)

    @classmethod
    def open(
        cls,
        host: Host,
        path: str,
        session_id: str,
        framing: Framing = Framing.FRAMED,
        *,
        may_be_new: bool = True,
    ) -> EventLog:
        """Recover and open the log at ``path``; a new one is created durably if there is none.

        Raises ``LogMissing`` if it is not there and may not be new, ``NewerFormat``,
        ``StorageFull`` or ``OSError``; then the log is not open, and its content is not changed.
        """
        return cls.read(host, path, session_id, framing, may_be_new=may_be_new)()

    @classmethod
    def read(
        cls,
        host: Host,
        path: str,
        session_id: str,
        framing: Framing = Framing.FRAMED,
        names: Sequence[str] | None = None,
        *,
        may_be_new: bool = True,
    ) -> Callable[[], EventLog]:
        """Read and examine a log; the returned call repairs its end and opens it.

        ``names`` is the listing of its directory, if the caller has swept that directory
        already. Reading is processor work; the returned call waits for the disk. Both raise
        the errors of ``open``.
        """
        pending = pending_path(path)
        examined = ExaminedLog.read(
            host.files, host.ids, path, session_id, pending, names, may_be_new=may_be_new
        )

        def settled() -> EventLog:
            return cls(host, path, session_id, framing, examined.settle())

        return settled

    def append(self, event: str, data: JsonObject) -> Line:
        """Append one event durably, as ``append_all`` does."""
        return self.append_all([(event, data)])[0]

    def append_all(self, events: Sequence[tuple[str, JsonObject]]) -> list[Line]:
        """Append events with one barrier; on return they and all earlier lines are durable.

        A crash before that leaves a prefix of them. Raises ``NotPlainJson`` or
        ``LineTooLarge`` before anything is written; ``StorageFull`` or ``OSError`` when they
        could not be written, with nothing left of them and the log still usable;
        ``LogStopped`` when it is unknown whether they are durable, and from then on for every
        call.
        """
        lines = self._write(events, self._writer.write)
        self._durable_seq = self.last_seq
        return lines

    def append_unsynced(self, events: Sequence[tuple[str, JsonObject]]) -> list[Line]:
        """Append events without a barrier; raises the errors of ``append_all``.

        They survive a kill, and become durable with the next append. A power cut before that
        leaves a prefix of them.
        """
        return self._write(events, self._writer.append_unsynced)

    def _write(
        self, events: Sequence[tuple[str, JsonObject]], write: Callable[[bytes], None]
    ) -> list[Line]:
        if self._stopped is not None:
            raise LogStopped(self.path, self._stopped)
        durable_seq, last_seq = self._durable_seq, self.last_seq
        lines, encoded = encode_lines(
            self.path, self.session_id, self._host.clock.wall_ns(), last_seq, durable_seq, events
        )
        # The reason for any exception that this method raises from here on.
        self._stopped = "an append was interrupted"
        try:
            write(encoded)
        except LogStopped as stopped:
            self._stopped = stopped.reason
            raise
        except OSError as error:
            self._stopped = None
            raise_if_full(self.path, error)
            raise
        self._stopped = None
        self.last_seq += len(lines)
        self._size_bytes += len(encoded)
        return lines

    def is_snapshot_due(self, most_lines: int) -> bool:
        """Whether more lines follow the last snapshot, and four times as many bytes."""
        tail_bytes = self._size_bytes - self._snapshot_bytes
        return (
            self.last_seq - self._first_seq > most_lines
            and tail_bytes > TAIL_BYTES_PER_SNAPSHOT_BYTE * self._snapshot_bytes
        )

    def begin_segment(self, data: JsonObject) -> Line:
        """Begin a new segment with a snapshot of all lines so far; durable on return.

        The current segment is made durable first. Raises ``NotPlainJson``, ``LineTooLarge``,
        ``StorageFull`` or ``OSError`` with the log unchanged, and ``LogStopped``.
        """
        self.park()
        files, path = self._host.files, segment_path(self.path, self.number + 1)
        lines, encoded = encode_lines(
            path, self.session_id, self._host.clock.wall_ns(), self.last_seq, self.last_seq,
            [(SNAPSHOT, data)],
        )  # fmt: skip
        with RaisingStorageFull(path):
            replace_file(files, path, encoded, self._host.ids)
        # The next boot reads the new segment if it exists, so nothing more is written to this one.
        self._stopped = "the beginning of a segment was interrupted"
        try:
            files.sync_dir(parent_of(path))
        except OSError as error:
            self._stopped = f"the barrier of a new segment failed ({error})"
            raise LogStopped(path, self._stopped) from error
        self._stopped = None
        self.number += 1
        self.last_seq += 1
        self._durable_seq = self._first_seq = self.last_seq
        self._snapshot_bytes = self._size_bytes = len(encoded)
        self._file, self._writer = self._writers()
        return lines[0]

    def remove_old_segments(self, before_ts: str) -> int:
        """Remove the segments all of whose lines were written by ``before_ts``; return how many.

        The last two are kept. The removal becomes durable with the name of the next segment.
        Raises ``OSError``.
        """
        return remove_segments(self._host.files, self.path, self.session_id, self.number, before_ts)

    def skip_to(self, seq: int) -> None:
        """Give the next line a number above ``seq``, which another file shows to have been used."""
        self.last_seq = max(self.last_seq, seq)
        self._durable_seq = max(self._durable_seq, seq)

    def earlier_lines(self) -> Iterator[Line]:
        """Yield the lines of the segments before the newest one; raises ``OSError``."""
        return read_lines(self._host.files, self.path, self.session_id, self.number)

    def lines(self) -> Iterator[Line]:
        """Yield every line of the newest segment in order, read from the disk.

        After a failed barrier only the durable lines are read, because the kernel may have
        dropped the others. Raises ``LogDamaged`` when the file has changed, and ``OSError``.
        """
        start = 0
        *lines, unended = self._file.read().split(b"\n")
        for encoded in lines:
            try:
                yield decode_line(encoded, self.session_id, self.path)
            except BadSeal as bad:
                raise LogDamaged(self.path, f"at offset {start}: {bad}") from bad
            start += len(encoded) + 1
        if unended:
            raise LogDamaged(self.path, f"at offset {start}: its last line has no line end")

    @property
    def durable_seq(self) -> int:
        """The number of the last line known to be durable."""
        return self._durable_seq

    @property
    def is_durable(self) -> bool:
        """Whether every line is durable, so that ``park`` needs no barrier."""
        return self._durable_seq == self.last_seq

    def park(self) -> None:
        """Sync any unsynced lines, and close the descriptor until the next call.

        Raises ``LogStopped`` when the barrier fails.
        """
        if self._stopped is not None:
            raise LogStopped(self.path, self._stopped)
        self._stopped = "a barrier was interrupted"
        try:
            self._writer.park()
        except LogStopped as stopped:
            self._stopped = stopped.reason
            raise
        self._stopped = None
        self._durable_seq = self.last_seq

    def sync_closed(self) -> None:
        """Make every line of a log that is closed durable.

        Raises ``OSError`` if it cannot be opened, and ``LogStopped`` when the barrier fails: the
        kernel reports that once, so another barrier would prove nothing.
        """
        file = self._host.files.open(self._newest_path, OpenMode.WRITE)
        try:
            file.fsync()
        except OSError as error:
            raise LogStopped(self._newest_path, f"its barrier failed ({error})") from error
        finally:
            file.close()
        self._durable_seq = self.last_seq

    def close(self) -> None:
        """Close the log; acknowledged lines are durable already."""
        self._stopped = "it is closed"
        self._file.close()
