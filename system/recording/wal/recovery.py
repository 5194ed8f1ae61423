"""Reading a write-ahead log after a crash: segments, checkpoint and snapshots.

Nothing is repaired in place. Executions are read from snapshots and entries, and written to
records. Then a checkpoint after the last entry makes the segments superfluous. After a crash
before that, all files that the recovery needs still exist, and it is repeated.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from posixpath import join
from typing import Final, NamedTuple

from system.foreign import on_one_line
from system.ports import Clock, FileKind, FileSystem, Ids, OpenMode
from system.recording.records.errors import ForeignRecordFile, RecordCorruptedError
from system.recording.stores.pack import NAME, builder_of, pack_name, read_table
from system.recording.wal.checkpoint import CHECKPOINT, Checkpoint, read_checkpoint
from system.recording.wal.format import CURRENT, DIRECTORY, NEXT_CURRENT, SEGMENT_NAME, number_of
from system.recording.wal.log import RECORDS, SNAPSHOTS
from system.recording.wal.logged_executions import LoggedExecutions
from system.recording.wal.report import WalReport
from system.recording.wal.scan import ScannedSegment, durable_before, scan_segments
from system.storage.atomic_file import read_whole, sweep_temporaries
from system.storage.log_report import Damage
from system.storage.log_scan import BadSpan
from system.storage.quarantine import put_aside

_ASIDE: Final = re.compile(r"\.quarantine\.\d+$|\.tmp\.[0-9a-f]{8}$")

_CURE: Final = "the sessions' logs have the responses of their turns"
_NO_DIRECTORY: Final = "it is not a directory"


class BadBytes(NamedTuple):
    """Bytes of the file at ``path`` that are not kept."""

    path: str
    span: BadSpan
    data: bytes


class ReadLog(NamedTuple):
    """A log as a crash has left it.

    ``last`` is the number of its last entry, ``number`` that of its newest segment,
    ``snapshots`` are the numbers of all packs of snapshots, used or not, and ``pack`` is the
    highest number of a pack in ``checkpoint`` or a name in that directory. ``superfluous`` are
    segments that a crash has left, or a power cut has restored. ``missing_paths`` are
    files and directories that existed at the checkpoint.
    """

    report: WalReport
    executions: LoggedExecutions
    checkpoint: Checkpoint
    segments: tuple[ScannedSegment, ...]
    snapshots: tuple[int, ...]
    bad: tuple[BadBytes, ...]
    last: int
    number: int
    pack: int
    superfluous: tuple[str, ...]
    missing_paths: tuple[str, ...]

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing to write: no segment, no snapshot, no damage."""
        return not (self.segments or self.snapshots or self.bad or self.missing_paths)

    @property
    def is_checkpoint_wrong(self) -> bool:
        """Whether the checkpoint must be replaced: it is damaged, or its files are missing."""
        return bool(self.checkpoint.problem or self.missing_paths)


def read_log(files: FileSystem, clock: Clock, root: str = "") -> ReadLog:
    """Read the log below ``root``, and change nothing.

    Raises ``NewerFormat``, ``ForeignRecordFile`` or ``OSError``.
    """
    reader = _Reader(files, root)
    checkpoint = reader.read_checkpoint()
    settled = checkpoint.sequence
    segments = reader.read_segments(checkpoint)
    executions = LoggedExecutions(clock)
    snapshots = reader.read_snapshots(checkpoint, executions)
    missing_paths = reader.find_missing(checkpoint, segments)
    if missing_paths:
        executions.may_lack_others = True
    for segment in segments:
        executions.apply(segment.series, settled)
    last = max([settled, *(segment.last for segment in segments)])
    return ReadLog(
        reader.report,
        executions,
        checkpoint,
        segments,
        snapshots,
        tuple(reader.bad),
        last,
        reader.number,
        reader.pack,
        tuple(reader.superfluous),
        missing_paths,
    )


def has_segments_or_snapshots(files: FileSystem, root: str = "") -> bool:
    """Return whether executions may be in no record; reads two directories. Raises ``OSError``."""
    for directory, names in ((DIRECTORY, SEGMENT_NAME), (SNAPSHOTS, NAME)):
        path = join(root, directory)
        if files.kind(path) is FileKind.DIRECTORY and any(
            map(names.fullmatch, files.listdir(path))
        ):
            return True
    return False


def sweep_recording(files: FileSystem, root: str = "") -> list[str]:
    """Remove the temporary files that crashes left; return their paths. Raises ``OSError``.

    Temporary files of records are in the directory of the snapshots, so that a boot need not
    list all records. The temporary file of the link ``current`` is removed and not returned.
    """
    swept = []
    for name in (DIRECTORY, SNAPSHOTS):
        path = join(root, name)
        if files.kind(path) is FileKind.DIRECTORY:
            swept += sweep_temporaries(files, path)
            if NEXT_CURRENT in files.listdir(path):
                # It may be a directory; nothing depends on it.
                with suppress(OSError):
                    files.unlink(join(path, NEXT_CURRENT))
    return swept


def put_bad_bytes_aside(files: FileSystem, ids: Ids, log: ReadLog) -> None:
    """Save damaged bytes in quarantine durably, and report them; raises ``OSError``."""
    for path, span, data in log.bad:
        copy = put_aside(files, path, data, ids)
        damage = Damage(path, span.start, len(data), span.reason, span.tail, copy)
        log.report.damaged.append(damage)


def make_log_durable(files: FileSystem, log: ReadLog, root: str = "") -> None:
    """Make everything durable that the recovery has read; raises ``OSError``.

    After a kill, entries may be only in the page cache. The records computed from them, and the
    entries that follow them, must not survive a power cut without them. After damage to the
    checkpoint, the removal of a segment or a snapshot must not be undone either: no number is
    left by which it could be ignored.
    """
    for segment in log.segments:
        file = files.open(segment.path, OpenMode.WRITE)
        try:
            file.fdatasync()
        finally:
            file.close()
    directories = (DIRECTORY, SNAPSHOTS) if log.checkpoint.problem else (DIRECTORY,)
    if log.segments or log.checkpoint.problem:
        for path in [join(root, name) for name in directories]:
            if files.kind(path) is FileKind.DIRECTORY:
                files.sync_dir(path)


def _had_barrier(segments: Iterable[ScannedSegment]) -> bool:
    """Return whether an entry shows that the log, and its directories, were durable."""
    return any(series.known_durable for segment in segments for series in segment.series)


class _Reader:
    """Reads the files of one log, and collects their damage."""

    def __init__(self, files: FileSystem, root: str) -> None:
        self.report = WalReport()
        self.bad: list[BadBytes] = []
        self.number = 0
        self.pack = 0
        self.superfluous: list[str] = []
        self._files = files
        self._root = root

    def read_checkpoint(self) -> Checkpoint:
        """Return the checkpoint; a damaged one is reported."""
        path = join(self._root, CHECKPOINT)
        found = read_checkpoint(self._files, path)
        if found.problem:
            self._add_bad(path, found.content, found.problem)
        self.number, self.pack = max(0, found.segment - 1), found.pack
        return found

    def read_segments(self, checkpoint: Checkpoint) -> tuple[ScannedSegment, ...]:
        """Classify the segments that are needed; entries in records do not count as missing."""
        settled, contents = checkpoint.sequence, dict[str, bytes]()
        for path, name in self._names(DIRECTORY):
            if SEGMENT_NAME.fullmatch(name):
                number = number_of(name)
                is_needed = number >= checkpoint.segment
                if not self._is_regular(path, is_needed=is_needed):
                    continue
                self.number = max(self.number, number)
                if is_needed:
                    contents[path] = read_whole(self._files, path)
                else:
                    self.superfluous.append(path)
            elif name == CURRENT:
                self._check_link(path)
            elif name != NEXT_CURRENT:
                self._add_foreign(path)
        segments, report = scan_segments(contents, settled), self.report
        for segment in segments:
            report.segments += 1
            report.entries += segment.count_after(settled)
            report.torn_bytes += segment.torn_bytes
            report.missing += segment.missing
            content = contents[segment.path]
            self.bad += [
                BadBytes(segment.path, span, content[span.start : span.end]) for span in segment.bad
            ]
        if segments and segments[-1].last < settled:
            first, path = segments[-1].last + 1, segments[-1].path
            report.findings.append(
                f"{path}: it ends before the checkpoint, entries {first} to {settled} are gone;"
                " their executions are in records"
            )
        elif segments and durable_before(segments) > settled:
            first = segments[0].first
            if settled:
                report.missing.insert(0, (settled + 1, durable_before(segments)))
            else:
                report.findings.append(
                    f"{CHECKPOINT}: there is none, and the log begins with entry {first}"
                )
        return segments

    def read_snapshots(
        self, checkpoint: Checkpoint, executions: LoggedExecutions
    ) -> tuple[int, ...]:
        """Add the executions of the snapshots; return the numbers of all packs of snapshots.

        Without a checkpoint all packs are used; a newer one takes precedence.
        """
        numbers, needed = list[int](), dict[int, str]()
        for path, name in self._names(SNAPSHOTS):
            found = NAME.fullmatch(name)
            if found is None:
                self._add_foreign(path)
                continue
            number = int(found[1])
            # A pack cannot be written in the place of a directory.
            self.pack = max(self.pack, number)
            is_needed = not checkpoint.is_whole or number == checkpoint.pack
            if self._is_regular(path, is_needed=is_needed):
                numbers.append(number)
                if is_needed:
                    needed[number] = path
        for _, path in sorted(needed.items()):
            self._read_pack(path, executions)
        return tuple(numbers)

    def find_missing(
        self, checkpoint: Checkpoint, segments: Sequence[ScannedSegment]
    ) -> tuple[str, ...]:
        """Report the files that certainly existed and are missing; return their paths.

        A pack of records that is older than the newest one is not missed.
        """
        directory, missing = join(self._root, RECORDS), dict[str, str]()
        newest = join(directory, pack_name(checkpoint.records or 0))
        snapshot = join(self._root, SNAPSHOTS, pack_name(checkpoint.snapshots or 0))
        kind = self._files.kind(directory)
        if kind not in {None, FileKind.DIRECTORY}:
            raise ForeignRecordFile(directory, _NO_DIRECTORY)
        if kind is None and (checkpoint.is_whole or _had_barrier(segments)):
            missing[directory] = "the directory is missing, and all records in it are lost"
        elif kind is not None and checkpoint.records and not self._is_file(newest):
            missing[newest] = "the pack is missing, and the records in it are lost"
        if checkpoint.snapshots and not self._is_file(snapshot):
            missing[snapshot] = (
                "the pack is missing, and with it the executions that were under way"
                " at the checkpoint"
            )
        self.report.findings += [f"{path}: {reason}; {_CURE}" for path, reason in missing.items()]
        return tuple(missing)

    def _read_pack(self, path: str, executions: LoggedExecutions) -> None:
        table = read_table(self._files, path)
        if table.problem:
            self._add_bad(path, read_whole(self._files, path), table.problem)
            executions.may_lack_others = True
        for member in table.members():
            try:
                builder = builder_of(member.lines(self._files), member.name)
            except RecordCorruptedError as corrupted:
                reason = "; ".join(corrupted.problems)
                self._add_bad(path, member.stored(self._files), reason, member.start)
                executions.headless.add(member.execution_id)
            else:
                executions.resume(member.execution_id, builder.kept)

    def _names(self, directory: str) -> list[tuple[str, str]]:
        path = join(self._root, directory)
        kind = self._files.kind(path)
        if kind is None:
            return []
        if kind is not FileKind.DIRECTORY:
            raise ForeignRecordFile(path, _NO_DIRECTORY)
        return [(join(path, name), name) for name in self._files.listdir(path)]

    def _is_file(self, path: str) -> bool:
        return self._files.kind(path) is FileKind.FILE

    def _is_regular(self, path: str, *, is_needed: bool) -> bool:
        """Return whether a listed name can be that of a file of the log; report others.

        The process that owns the root may have removed a file that is not needed meanwhile.
        """
        kind = self._files.kind(path)
        if kind is FileKind.FILE or (kind is None and not is_needed):
            return True
        self.report.findings.append(
            f"{path}: it is not a regular file, and was left; move it out of the directory"
        )
        return False

    def _add_bad(self, path: str, content: bytes, reason: str, start: int = 0) -> None:
        span = BadSpan(start, start + len(content), reason, tail=False)
        self.bad.append(BadBytes(path, span, content))

    def _check_link(self, path: str) -> None:
        """Report a file in the place of the link ``current``, and a link to no segment.

        A crash leaves the link missing or stale, so this is not reported.
        """
        try:
            target = self._files.readlink(path)
        except OSError as error:
            if error.errno != errno.EINVAL:
                return  # The link is for people only: no recovery depends on it.
            if self._files.kind(path) is FileKind.DIRECTORY:
                self._add_foreign(path)
                return
            target = ""
        if not SEGMENT_NAME.fullmatch(target):
            self.report.foreign.append(
                f"{path}: it is no link to a segment; the next segment replaces it"
            )

    def _add_foreign(self, path: str) -> None:
        if not _ASIDE.search(path):
            self.report.foreign.append(
                f"{on_one_line(path)}: it is no part of the log, and was left; move it out of the"
                " directory"
            )
