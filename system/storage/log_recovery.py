"""Recovery of an event log: from whatever a crash has left to lines that can be built on.

The order is what makes it safe to crash anywhere inside, and to run twice:

1. sweep temporary files of an interrupted repair;
2. create the log if there is none, and make the way to it durable (R18);
3. read, and judge every byte (``log_scan.py``) and the pending entry (``pending_entry.py``);
4. put damaged bytes aside, durably, before anything is removed;
5. repair. After damage in the middle the good lines are written to a new file that
   replaces the old one. Otherwise the end is settled in place: cut, made whole, durable;
6. only then remove the pending entry.

What a killed process wrote is readable but need not be durable, and after an fsync that
failed it never will be: the kernel took the pages for clean (fsyncgate). So the end of
the log is written again before the barrier: every line that two barriers in a row have not
covered, because a journaling ext4 tells of a failed fsync only at the next one. And the
file is cut once even when there is nothing to cut: that removes bytes of a lost append from
behind its end, where a later append that loses its data, but not its size, would show them
as a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from system.errors import raising_storage_full
from system.ports import FileSystem, Ids, OpenMode
from system.storage.atomic_file import read_whole, sweep_temporaries, write_atomic
from system.storage.durable_directory import make_durable_directory
from system.storage.line import Line
from system.storage.log_report import Damage, LogReport, PendingFate
from system.storage.log_scan import Scan, scan
from system.storage.path import name_of, parent_of
from system.storage.pending_entry import NO_ENTRY, PendingEntry, read_pending_entry
from system.storage.quarantine import move_aside, put_aside
from system.storage.transfer import write_all


class RecoveredLog(NamedTuple):
    """A log that is whole and durable: its lines, its size, what was found.

    ``last_seq`` is that of the last line, or 0.
    """

    lines: tuple[Line, ...]
    last_seq: int
    size_bytes: int
    report: LogReport


def recover_log(
    files: FileSystem, ids: Ids, path: str, session_id: str, pending_path: str
) -> RecoveredLog:
    """Recover the log of a session at ``path``; it is created if there is none.

    ``pending_path`` is where the framing ``pending`` keeps its entry; the lifetime before
    may have had that framing, whichever this one has. Raises ``NewerFormat`` with the log
    as it was, ``StorageFull``, or ``OSError``; then nothing was accepted, and it can be
    called again.
    """
    return ExaminedLog.read(files, ids, path, session_id, pending_path).settle()


class ExaminedLog:
    """A log that was read and judged, and not changed yet, except that it exists.

    Reading takes a processor and settling waits for a disk, so many logs are read one after
    the other and settled side by side.
    """

    def __init__(
        self,
        files: FileSystem,
        ids: Ids,
        path: str,
        content: bytes,
        found: Scan,
        entry: PendingEntry,
        pending_path: str,
        swept: list[str],
    ) -> None:
        self.files = files
        self.ids = ids
        self.path = path
        self.content = content
        self.found = found
        self.entry = entry
        self.pending_path = pending_path
        self.swept = swept

    @classmethod
    def read(
        cls,
        files: FileSystem,
        ids: Ids,
        path: str,
        session_id: str,
        pending_path: str,
        names: Sequence[str] | None = None,
    ) -> ExaminedLog:
        """Read the log and its pending entry; raises as ``recover_log``.

        ``names`` is the listing of its directory, for who has swept it already.
        """
        directory, name = parent_of(path), name_of(path)
        with raising_storage_full(path):
            swept = []
            if names is None:
                names = _names_in(files, directory)
                swept = sweep_temporaries(files, directory, name, names)
            if name not in names:
                make_durable_directory(files, directory)
                files.open(path, OpenMode.CREATE).close()
            content = read_whole(files, path)
            found = scan(content, session_id, path)
            entry = NO_ENTRY
            if name_of(pending_path) in names:
                entry = read_pending_entry(files, pending_path, session_id, found.last_seq)
                if entry.fate is PendingFate.REPLAYED:
                    # What stands at the end is what was appended of this very entry.
                    found = found.with_tail_explained()
            return cls(files, ids, path, content, found, entry, pending_path, swept)

    def settle(self) -> RecoveredLog:
        """Put damage aside, repair the log, make it durable; raises as ``recover_log``."""
        with raising_storage_full(self.path):
            return self._settled()

    def _settled(self) -> RecoveredLog:
        content, found, entry = self.content, self.found, self.entry
        damaged = self._put_aside(content, found)
        repair = self._rewrite if found.has_damaged_middle else self._make_whole
        size_bytes = repair(content, found, entry.encoded)
        damaged += self._dismiss(entry, found.last_seq)
        lines = found.lines + entry.lines
        report = LogReport(
            self.path,
            lines=len(lines),
            torn_bytes=found.torn_bytes,
            damaged=damaged,
            missing=found.missing + entry.missing,
            pending=entry.fate,
            swept=tuple(self.swept),
        )
        return RecoveredLog(lines, found.last_seq + len(entry.lines), size_bytes, report)

    def _put_aside(self, content: bytes, found: Scan) -> tuple[Damage, ...]:
        damaged = []
        for bad in found.bad:
            data = content[bad.start : bad.end]
            copy = put_aside(self.files, self.path, data, self.ids)
            damaged.append(Damage(self.path, bad.start, len(data), bad.reason, bad.tail, copy))
        return tuple(damaged)

    def _rewrite(self, content: bytes, found: Scan, replay: bytes) -> int:
        lines = [content[start:end] for start, end in found.good]
        kept = b"\n".join([*lines, b""]) + replay
        write_atomic(self.files, self.path, kept, self.ids)
        return len(kept)

    def _make_whole(self, content: bytes, found: Scan, replay: bytes) -> int:
        start, tail = 0, replay
        if found.good:  # the last line at least is not proven, and nothing stands between them
            start, end = found.good[found.unproven][0], found.good[-1][1]
            tail = content[start:end] + b"\n" + replay
        size_bytes = start + len(tail)
        file = self.files.open(self.path, OpenMode.WRITE)
        try:
            write_all(file, tail, start)
            if len(content) <= size_bytes:
                file.truncate(size_bytes + 1)
            file.truncate(size_bytes)
            file.fsync()
        finally:
            file.close()
        self.files.sync_dir(parent_of(self.path))
        return size_bytes

    def _dismiss(self, entry: PendingEntry, last_seq: int) -> tuple[Damage, ...]:
        if entry.fate is PendingFate.ABSENT:
            return ()
        if entry.fate is not PendingFate.AHEAD:
            self.files.unlink(self.pending_path)
            # What is spoilt here may still be whole on the platter, and the next line of
            # the log: it must not come back after recovery has shown a log without it.
            self.files.sync_dir(parent_of(self.pending_path))
            return ()
        aside = move_aside(self.files, self.pending_path)
        reason = f"the log ends at seq={last_seq}, so this entry cannot be its next line"
        size_bytes = len(entry.content)
        return (Damage(self.pending_path, 0, size_bytes, reason, tail=True, quarantine=aside),)


def _names_in(files: FileSystem, directory: str) -> Sequence[str]:
    try:
        return files.listdir(directory)
    except FileNotFoundError:
        return ()
