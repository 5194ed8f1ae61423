"""The event log of one session: durable when ``append`` returns, recovered when opened.

Rows S-01…S-09 of the specification, Y2, Y12. What the disk may leave after a crash, and
what becomes of it, is told in ``log_scan.py`` and ``log_recovery.py``; how a line is made
durable in ``framing.py``. One process has a log open, once.
"""

from __future__ import annotations

from collections.abc import Iterator

from system.errors import BadSeal, LogDamaged, LogStopped, told_when_full
from system.ports import Clock, Host
from system.storage.codec import JsonObject
from system.storage.framing import FramedWriter, Framing, LineWriter, pending_path
from system.storage.line import Line, decode_line, encode_line, timestamp
from system.storage.log_file import LogFile
from system.storage.log_recovery import RecoveredLog, recover_log
from system.storage.pending_writer import PendingWriter


class EventLog:
    """An open log. ``report`` is what recovery found; ``last_seq`` counts its lines."""

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
        self.last_seq = recovered.last_seq
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
        pending = pending_path(path)
        recovered = recover_log(host.files, host.ids, path, session_id, pending)
        file = LogFile(host.files, path, recovered.size_bytes)
        writer: LineWriter = FramedWriter(file)
        if framing is Framing.PENDING:
            writer = PendingWriter(host.files, file, pending)
        return cls(host.clock, session_id, recovered, file, writer)

    def append(self, event: str, data: JsonObject) -> Line:
        """Append an event; the line that it became is durable when this returns.

        Raises ``NotPlainJson`` or ``LineTooLarge`` before anything is written;
        ``StorageFull`` or ``OSError`` when it could not be written, with nothing of it
        left and the log usable; ``LogStopped`` when its fate is unknown, from then on
        always.
        """
        if self._stopped is not None:
            raise LogStopped(self.path, self._stopped)
        ts = timestamp(self._clock.wall_ns())
        line = Line(self.last_seq + 1, ts, self.session_id, event, data)
        encoded = encode_line(line, self.path)
        # True of whatever leaves this method from here on without saying more.
        self._stopped = "an append was interrupted"
        with told_when_full(self.path):
            try:
                self._writer.write(encoded)
            except LogStopped as stopped:
                self._stopped = stopped.reason
                raise
            except OSError:
                self._stopped = None
                raise
        self._stopped = None
        self.last_seq = line.seq
        return line

    def lines(self) -> Iterator[Line]:
        """Yield every durable line in order, read from the disk: the source of every fold.

        Raises ``LogDamaged`` when the file is not what it was, and ``OSError``.
        """
        start = 0
        for encoded in self._file.read().split(b"\n")[:-1]:
            try:
                yield decode_line(encoded, self.session_id, self.path)
            except BadSeal as bad:
                raise LogDamaged(self.path, f"at offset {start}: {bad}") from bad
            start += len(encoded) + 1

    def close(self) -> None:
        """Close the file; what was acknowledged is durable already."""
        self._stopped = "it is closed"
        self._file.close()
