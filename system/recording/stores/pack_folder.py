"""The packs of one directory: ``00000001.pack`` and so on, each of one checkpoint.

A pack is never changed. If two packs have a record of the same execution, the one with the higher
number takes precedence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from posixpath import join

from system.errors import NewerFormat, StorageError
from system.ports import FileKind, FileSystem, Ids
from system.recording.executions.spool import chunks
from system.recording.records.errors import ForeignRecordFile, PackCorruptedError
from system.recording.stores.pack import (
    NAME,
    Member,
    Packable,
    PackTable,
    pack_name,
    pack_pieces,
    read_table,
)
from system.storage.atomic_file import replace_by_pieces


class PackFolder:
    """The packs that were in ``directory`` at the first use, and those written here since then.

    Packs with a number up to ``above`` are ignored.
    """

    def __init__(self, files: FileSystem, directory: str, above: int = 0) -> None:
        self._files = files
        self._directory = directory
        self._above = above
        self._tables: dict[int, PackTable] = {}
        # Packs whose tables are not read yet; None before the first use.
        self._unread: set[int] | None = None
        # Packs of which no record can be read.
        self._unreadable: list[StorageError] = []
        self._skips_refused = False

    def skip_refused(self) -> None:
        """From now on, a pack that the disk refuses to read is a problem, and no ``OSError``.

        Only for reading: a recovery that did not see a record would write another.
        """
        self._skips_refused = True

    def numbers(self) -> list[int]:
        """Return the numbers of the packs, ascending; reads the directory. Raises ``OSError``."""
        if self._files.kind(self._directory) is not FileKind.DIRECTORY:
            return []
        matches = map(NAME.fullmatch, self._files.listdir(self._directory))
        numbers = (int(found[1]) for found in matches if found is not None)
        return sorted(number for number in numbers if number > self._above)

    def has(self, number: int) -> bool:
        """Return whether the pack is a regular file; raises ``OSError``."""
        return self._files.kind(self._path(number)) is FileKind.FILE

    def write(self, number: int, executions: Iterable[Packable], ids: Ids, scratch: str) -> None:
        """Write a pack; its name is durable after a sync of the directory.

        The temporary file is in the directory ``scratch``. Raises ``OSError``.
        """
        path = self._path(number)
        replace_by_pieces(self._files, path, chunks(pack_pieces(executions)), ids, scratch)
        if self._unread is not None:
            self._unread.add(number)

    def remove(self, number: int) -> None:
        """Remove a pack, which may be missing; raises ``OSError``."""
        self._tables.pop(number, None)
        with suppress(FileNotFoundError):
            self._files.unlink(self._path(number))

    def ids(self) -> set[str]:
        """Return the ids of all records; raises ``OSError``."""
        return {execution_id for table in self._newest_first() for execution_id in table.ids()}

    def ids_with(self, envelope_hash: str) -> set[str]:
        """Return the ids of all records that may have this envelope hash; raises ``OSError``."""
        return {each for table in self._newest_first() for each in table.ids_with(envelope_hash)}

    def find(self, execution_id: str) -> Member | None:
        """Return the newest place of a record, or None; raises ``OSError``.

        Raises ``NewerFormat`` or ``PackCorruptedError`` if a pack that cannot be read may have
        it.
        """
        for table in self._newest_first():
            if (member := table.find(execution_id)) is not None:
                return member
        for problem in self.problems():
            raise problem
        return None

    def problems(self) -> Iterator[StorageError]:
        """Yield an error for each pack that is damaged, refused, or of a later version."""
        tables = self._newest_first()
        yield from self._unreadable
        for table in tables:
            if table.problem:
                reason = f"{table.problem}; {len(table)} records were found without it"
                yield PackCorruptedError(table.path, [reason])

    def _newest_first(self) -> list[PackTable]:
        if self._unread is None:
            self._unread = self._listed()
        while self._unread:
            number = min(self._unread)
            self._read(number, self._path(number))
            self._unread.discard(number)
        return [self._tables[number] for number in sorted(self._tables, reverse=True)]

    def _listed(self) -> set[int]:
        """Return the numbers of the packs; another thread may write one meanwhile."""
        self._unread = numbers = set[int]()
        try:
            numbers.update(self.numbers())
        except OSError:
            self._unread = None
            raise
        return numbers

    def _read(self, number: int, path: str) -> None:
        try:
            if self.has(number):
                self._tables[number] = read_table(self._files, path)
            else:
                self._unreadable.append(ForeignRecordFile(path, "it is not a regular file"))
        except NewerFormat as newer:
            self._unreadable.append(newer)
        except OSError as error:
            if not self._skips_refused:
                raise
            reason = f"it cannot be read ({error.strerror or error})"
            self._unreadable.append(PackCorruptedError(path, [reason]))

    def _path(self, number: int) -> str:
        return join(self._directory, pack_name(number))
