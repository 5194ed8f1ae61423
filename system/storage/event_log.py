"""The event log of one session: durable when ``append`` returns, recovered when opened.

Several lines may share one barrier (``append_all``), and a line may wait for the barrier of
a later one (``note``). What a crash leaves of lines without a barrier is a beginning of
them, never a later line without an earlier one.

Rows S-01…S-09 of the specification, Y2, Y12. What the disk may leave after a crash, and
what becomes of it, is told in ``log_scan.py`` and ``log_recovery.py``; how a line is made
durable in ``framing.py``. One process has a log open, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from system.errors import BadSeal, LogDamaged, LogStopped, raising_storage_full
from system.ports import Clock, Host, JsonObject
from system.storage.framing import FramedWriter, Framing, LineWriter, pending_path
from system.storage.line import Line, decode_line, encode_line, timestamp
from system.storage.log_file import LogFile
from system.storage.log_recovery import ExaminedLog, RecoveredLog
from system.storage.pending_writer import PendingWriter


class EventLog:
    """An open log. ``report`` is what recovery found; ``last_seq`` counts its lines.

    ``recovered`` are the lines as they were when it was opened, all of them durable;
    whoever has folded them sets it to ``()``, and the memory is free.

    Calls of one log follow one another, from whichever thread.
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

        Raises ``NewerFormat``, ``StorageFull`` or ``OSError``; then it is not open, and what
        was in it is still there.
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
        """Read and judge a log; what is returned settles its end and opens it.

        ``names`` is the listing of its directory, for who has swept it already. The first half
        takes a processor, the second waits for the disk. Both raise as ``open``.
        """
        pending = pending_path(path)
        examined = ExaminedLog.read(host.files, host.ids, path, session_id, pending, names)

        def settled() -> EventLog:
            recovered = examined.settle()
            file = LogFile(host.files, path, recovered.size_bytes)
            writer: LineWriter = FramedWriter(file)
            if framing is Framing.PENDING:
                writer = PendingWriter(host.files, file, pending)
            return cls(host.clock, session_id, recovered, file, writer)

        return settled

    def append(self, event: str, data: JsonObject) -> Line:
        """Append one event; returns and raises as ``append_all``."""
        return self.append_all([(event, data)])[0]

    def append_all(self, events: Sequence[tuple[str, JsonObject]]) -> list[Line]:
        """Append events behind one barrier; when this returns all of them are durable.

        So is everything noted before. A crash meanwhile leaves the first few of them, or
        none. Raises ``NotPlainJson`` or ``LineTooLarge`` before anything is written;
        ``StorageFull`` or ``OSError`` when they could not be written, with nothing of them
        left and the log usable; ``LogStopped`` when their fate is unknown, from then on
        always.
        """
        lines = self._write(events, self._writer.write)
        self._durable_seq = self.last_seq
        return lines

    def append_unsynced(self, events: Sequence[tuple[str, JsonObject]]) -> list[Line]:
        """Append events without a barrier; raises as ``append_all``.

        They survive the death of the process, and become durable with the next append. A
        power cut before that leaves the first few of them, or none.
        """
        return self._write(events, self._writer.append_unsynced)

    def _write(
        self, events: Sequence[tuple[str, JsonObject]], write: Callable[[bytes], None]
    ) -> list[Line]:
        if self._stopped is not None:
            raise LogStopped(self.path, self._stopped)
        lines = self._next_lines(events)
        encoded = b"".join([encode_line(line, self.path) for line in lines])
        # True of whatever leaves this method from here on without saying more.
        self._stopped = "an append was interrupted"
        with raising_storage_full(self.path):
            try:
                write(encoded)
            except LogStopped as stopped:
                self._stopped = stopped.reason
                raise
            except OSError:
                self._stopped = None
                raise
        self._stopped = None
        self.last_seq += len(lines)
        return lines

    def _next_lines(self, events: Sequence[tuple[str, JsonObject]]) -> list[Line]:
        assert events
        ts = timestamp(self._clock.wall_ns())
        lines = []
        for seq, (event, data) in enumerate(events, self.last_seq + 1):
            durable = None if self._durable_seq == seq - 1 else self._durable_seq
            lines.append(Line(seq, ts, self.session_id, event, data, durable))
        return lines

    def lines(self) -> Iterator[Line]:
        """Yield every line that was appended or noted, in order, read from the disk.

        When a barrier has failed, only those that are durable: the kernel may show the
        others no more.

        Raises ``LogDamaged`` when the file is not what it was, and ``OSError``.
        """
        start = 0
        for encoded in self._file.read().split(b"\n")[:-1]:
            try:
                yield decode_line(encoded, self.session_id, self.path)
            except BadSeal as bad:
                raise LogDamaged(self.path, f"at offset {start}: {bad}") from bad
            start += len(encoded) + 1

    @property
    def is_durable(self) -> bool:
        """Whether no note waits for a barrier, so that ``rest`` needs none."""
        return self._durable_seq == self.last_seq

    def park(self) -> None:
        """Hold no descriptor until the next append or note; all that was noted is durable then.

        There is a barrier if anything was noted since the last one. Raises ``LogStopped``.
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
        """Close the file; what was acknowledged is durable already."""
        self._stopped = "it is closed"
        self._file.close()
