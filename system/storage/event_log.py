"""The event log of one session: durable when ``append`` returns, recovered when opened.

Several lines may share one barrier (``append_all``), and a line may be left to the barrier of
a later one (``append_unsynced``). A crash leaves a prefix of the unsynced lines, never a
later line without an earlier one.

``log_scan.py`` and ``log_recovery.py`` handle the states that a crash may leave, and
``framing.py`` makes lines durable. At most one process has a log open, and only once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from system.errors import BadSeal, LogDamaged, LogStopped, raise_if_full
from system.ports import Clock, Host, JsonObject
from system.storage.framing import Framing, LineWriter, pending_path
from system.storage.line import Line, decode_line, encode_lines
from system.storage.log_file import LogFile
from system.storage.log_recovery import ExaminedLog, RecoveredLog
from system.storage.pending_writer import PendingWriter


class EventLog:
    """An open log. ``report`` is recovery's report; ``last_seq`` counts the lines.

    ``recovered`` holds the lines at the time of opening, all of them durable. The caller sets
    it to ``()`` after use, to free the memory.

    Calls may come from any thread, but not at the same time.
    """

    def __init__(
        self,
        clock: Clock,
        session_id: str,
        recovered: RecoveredLog,
        file: LogFile,
        writer: LineWriter,
    ) -> None:
        self.path = file.path
        self.session_id = session_id
        self.report = recovered.report
        self.recovered = recovered.lines
        self.last_seq = recovered.last_seq
        self._durable_seq = recovered.last_seq
        self._clock = clock
        self._file = file
        self._writer = writer
        self._stopped: str | None = None

    @classmethod
    def open(
        cls, host: Host, path: str, session_id: str, framing: Framing = Framing.FRAMED
    ) -> EventLog:
        """Recover and open the log at ``path``; it is created durably if there is none.

        Raises ``NewerFormat``, ``StorageFull`` or ``OSError``; then the log is not open, and
        its content is not changed.
        """
        return cls.read(host, path, session_id, framing)()

    @classmethod
    def read(
        cls,
        host: Host,
        path: str,
        session_id: str,
        framing: Framing = Framing.FRAMED,
        names: Sequence[str] | None = None,
    ) -> Callable[[], EventLog]:
        """Read and examine a log; the returned call repairs its end and opens it.

        ``names`` is the listing of its directory, if the caller has swept that directory
        already. Reading is processor work; the returned call waits for the disk. Both raise
        the errors of ``open``.
        """
        pending = pending_path(path)
        examined = ExaminedLog.read(host.files, host.ids, path, session_id, pending, names)

        def settled() -> EventLog:
            recovered = examined.settle()
            file = LogFile(host.files, path, recovered.size_bytes)
            writer: LineWriter = file
            if framing is Framing.PENDING:
                writer = PendingWriter(host.files, file, pending)
            return cls(host.clock, session_id, recovered, file, writer)

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
            self.path, self.session_id, self._clock.wall_ns(), last_seq, durable_seq, events
        )
        # The reason for any exception that leaves this method from here on.
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
        return lines

    def lines(self) -> Iterator[Line]:
        """Yield every line in order, read from the disk.

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

    def close(self) -> None:
        """Close the log; acknowledged lines are durable already."""
        self._stopped = "it is closed"
        self._file.close()
