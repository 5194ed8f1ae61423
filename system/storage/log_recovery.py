"""Recovery of an event log after a crash: afterwards it is complete and durable.

The order of the steps makes a crash inside recovery safe, and a second recovery idempotent:

1. sweep temporary files of an interrupted repair;
2. create the log if there is none, and make its directories durable;
3. read and classify every byte (``log_scan.py``) and the pending entry (``pending_entry.py``);
4. save damaged bytes in quarantine, durably, before anything is removed;
5. repair. After damage in the middle, the good lines are written to a new file that replaces
   the old one. After damage to the first line of a segment, its good lines are written to a new
   file, after those of the segment before it. Otherwise the end is cut, completed and synced in
   place;
6. only then remove the pending entry.

Bytes that a killed process wrote are readable but need not be durable, and after a failed
fsync they never will be, because the kernel has marked the pages clean (Rebello et al.,
ATC'20). So the end of the log is written again before the barrier: every line that two
barriers in a row have not covered, because ext4 with ``data=journal`` reports a failed fsync
only at the next one. The kernel writes whole pages, with zeros behind the end of the file. So this
also removes the bytes of an append that a power cut has left there without its size. On ext4
they would appear after a later append that loses its data but not its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from system.errors import LogMissing, RaisingStorageFull
from system.ports import FileSystem, Ids, OpenMode
from system.storage.atomic_file import read_whole, sweep_temporaries, write_atomic
from system.storage.durable_directory import make_durable_directory
from system.storage.line import Line
from system.storage.log_report import Damage, LogReport, PendingVerdict
from system.storage.log_scan import Scan, scan
from system.storage.path import name_of, parent_of
from system.storage.pending_entry import NO_ENTRY, PendingEntry, read_pending_entry
from system.storage.quarantine import put_aside
from system.storage.segments import SegmentText, read_newest, segment_path, segments_in
from system.storage.transfer import write_all


class RecoveredLog(NamedTuple):
    """A log that is complete and durable, and its report.

    ``last_seq`` is that of the last line, or 0. ``number`` and ``size_bytes`` are those of the
    newest segment.
    """

    lines: tuple[Line, ...]
    last_seq: int
    number: int
    size_bytes: int
    report: LogReport


class ExaminedLog:
    """A log that was read and classified. It exists, and is otherwise not changed yet.

    Reading is processor work, and ``settle`` waits for the disk. Therefore the logs of a root
    are read one after the other, and settled concurrently.
    """

    def __init__(
        self,
        files: FileSystem,
        ids: Ids,
        path: str,
        text: SegmentText,
        found: Scan,
        entry: PendingEntry,
        pending_path: str,
        swept: list[str],
    ) -> None:
        self.files = files
        self.ids = ids
        self.path = segment_path(path, text.number)
        self.text = text
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
        *,
        may_be_new: bool = True,
    ) -> ExaminedLog:
        """Read the log of a session at ``path``, and its pending entry.

        The log is created if there is none and it ``may_be_new``. ``pending_path`` is the path of
        the entry of the framing ``pending``, which an earlier boot may have used. ``names`` is the
        listing of the directory, if the caller has swept it already. Raises ``LogMissing``,
        ``NewerFormat`` with the log unchanged, ``StorageFull``, or ``OSError``; then the call can
        be repeated.
        """
        directory, name = parent_of(path), name_of(path)
        with RaisingStorageFull(path):
            swept = []
            if names is None:
                names = _names_in(files, directory)
                swept = sweep_temporaries(files, directory, name.removesuffix(".jsonl"), names)
            numbers = segments_in(names, path)
            if not numbers:
                if not may_be_new:
                    raise LogMissing(path, "the root has agents, but not this log")
                make_durable_directory(files, directory)
                files.open(path, OpenMode.CREATE).close()
                numbers = [0]
            has_entry = name_of(pending_path) in names
            entry_path = pending_path if has_entry else ""
            text, found, entry = classified(files, path, session_id, numbers, entry_path)
            return cls(files, ids, path, text, found, entry, pending_path, swept)

    def settle(self) -> RecoveredLog:
        """Save damaged bytes, repair the log and make it durable; raises as ``read``."""
        with RaisingStorageFull(self.path):
            return self._settled()

    def _settled(self) -> RecoveredLog:
        content, found, entry = self.text.content, self.found, self.entry
        damaged = self._put_aside(content, found)
        is_rewritten = found.has_damaged_middle or self.text.before
        repair = self._rewrite if is_rewritten else self._make_whole
        size_bytes = repair(content, found, entry.encoded)
        damaged += self._dismiss(entry, found.last_seq)
        lines = found.lines + entry.lines
        report = LogReport(
            self.path,
            lines=len(lines),
            torn_bytes=found.torn_bytes,
            damaged=damaged,
            missing=found.missing + entry.missing,
            pending=entry.verdict,
            swept=tuple(self.swept),
            has_fallen_back=bool(self.text.before),
        )
        last_seq = found.last_seq + len(entry.lines)
        return RecoveredLog(lines, last_seq, self.text.number, size_bytes, report)

    def _put_aside(self, content: bytes, found: Scan) -> tuple[Damage, ...]:
        damaged = []
        for bad in found.bad:
            data = content[bad.start : bad.end]
            path, offset = self._place_of(bad.start)
            copy = put_aside(self.files, path, data, self.ids)
            damaged.append(Damage(path, offset, len(data), bad.reason, bad.tail, copy))
        return tuple(damaged)

    def _place_of(self, offset: int) -> tuple[str, int]:
        """Return the path of the segment that has a byte of the content, and the offset in it."""
        for size_bytes, path in self.text.before:
            if offset < size_bytes:
                return path, offset
            offset -= size_bytes
        return self.path, offset

    def _rewrite(self, content: bytes, found: Scan, replay: bytes) -> int:
        lines = [content[start:end] for start, end in found.good]
        kept = b"\n".join([*lines, b""]) + replay
        write_atomic(self.files, self.path, kept, self.ids)
        return len(kept)

    def _make_whole(self, content: bytes, found: Scan, replay: bytes) -> int:
        start, tail = 0, replay
        if found.good:  # the last line is never proven, and no gap follows the first unproven
            start, end = found.good[found.unproven][0], found.good[-1][1]
            tail = content[start:end] + b"\n" + replay
        size_bytes = start + len(tail)
        file = self.files.open(self.path, OpenMode.WRITE)
        try:
            write_all(file, tail, start)
            if self.text.size_bytes > size_bytes:
                file.truncate(size_bytes)
            file.fsync()
        finally:
            file.close()
        self.files.sync_dir(parent_of(self.path))
        return size_bytes

    def _dismiss(self, entry: PendingEntry, last_seq: int) -> tuple[Damage, ...]:
        if entry.verdict is PendingVerdict.ABSENT:
            return ()
        damaged: tuple[Damage, ...] = ()
        if entry.verdict is PendingVerdict.AHEAD:
            # A copy, because the entry of a killed process need not be durable.
            data = read_whole(self.files, self.pending_path)
            copy = put_aside(self.files, self.pending_path, data, self.ids)
            reason = f"the log ends at seq={last_seq}, so this entry cannot be its next line"
            damaged = (Damage(self.pending_path, 0, len(data), reason, tail=True, quarantine=copy),)
        self.files.unlink(self.pending_path)
        # A torn entry may still be complete on the platter. It must not reappear as the
        # next line after recovery has returned a log without it.
        self.files.sync_dir(parent_of(self.pending_path))
        return damaged


def classified(
    files: FileSystem, path: str, session_id: str, numbers: Sequence[int], entry_path: str
) -> tuple[SegmentText, Scan, PendingEntry]:
    """Read and classify the newest of these segments, and the pending entry if it has a path.

    The text is without its torn end. Nothing is changed. Raises ``NewerFormat`` or ``OSError``.
    """
    text = read_newest(files, path, session_id, numbers)
    found = scan(text.content, session_id, path, text.last_seq)
    entry = NO_ENTRY
    if entry_path:
        entry = read_pending_entry(files, entry_path, session_id, found.last_seq)
        if entry.verdict is PendingVerdict.REPLAYED:
            # The end of the log is a part of this very entry.
            found = found.with_tail_explained()
    if found.torn_bytes:
        text = text._replace(content=text.content[: -found.torn_bytes])
    return text, found, entry


def _names_in(files: FileSystem, directory: str) -> Sequence[str]:
    try:
        return files.listdir(directory)
    except FileNotFoundError:
        return ()
