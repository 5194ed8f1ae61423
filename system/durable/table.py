"""The tables as typed records, with a checksum in every row.

SQLite does not detect damage inside a row: a flipped bit in a text gives another text. So each row
has a ``crc`` over the name of its table and all its values, which is checked at every read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, get_type_hints
from zlib import crc32

from system.durable.errors import RowDamaged, RowHidden
from system.durable.state import STATE, Transaction
from system.errors import NotPlainJson
from system.storage.codec import canonical_row, is_plain_text

if TYPE_CHECKING:
    from apsw import SQLiteValue

    from system.durable.state import Bindings, SqlRow

    R = TypeVar("R", bound=NamedTuple)
else:
    R = TypeVar("R")


class Table(Generic[R]):
    """One table whose columns are the fields of the named tuple ``record``, and ``crc``.

    The first ``key_columns`` of them are its primary key.
    """

    def __init__(self, name: str, record: type[R], key_columns: int = 1) -> None:
        # A trailing underscore keeps a field from being a keyword.
        names = [field.rstrip("_") for field in record._fields]
        columns = ", ".join(names)
        marks = ", ".join("?" * len(names))
        changed = ", ".join(f"{column}=?" for column in names[key_columns:])
        key = " AND ".join(f"{column}=?" for column in names[:key_columns])
        hints = [get_type_hints(record)[field] for field in record._fields]
        self.name = name
        self._record = record
        self._key_columns = key_columns
        # The texts come first.
        self._texts_in_key = hints[:key_columns].count(str)
        # The columns that SQLite stores with another type: enums and truth values. Their numbers
        # begin with 1, behind the name of the table.
        self._enums = [(i, hint) for i, hint in enumerate(hints, 1) if _is_a(hint, StrEnum)]
        self._truths = [i for i, hint in enumerate(hints, 1) if _is_a(hint, bool)]
        self._insert = f"INSERT INTO {name} ({columns}, crc) VALUES ({marks}, ?)"
        self._keep = f"{self._insert} ON CONFLICT DO NOTHING"
        self._replace = self._insert.replace("INSERT", "REPLACE", 1)
        self._update = f"UPDATE {name} SET {changed}, crc=? WHERE {key}"
        self._delete = f"DELETE FROM {name} WHERE {key}"
        self._read = f"SELECT {columns}, crc FROM {name} WHERE {key}"
        as_blobs = ", ".join(f"CAST({column} AS BLOB)" for column in names[:key_columns])
        self._keys = f"SELECT {as_blobs} FROM {name}"
        self._read_by_blobs = self._read.replace("=?", "=CAST(? AS TEXT)")
        self._read_row = f"SELECT {columns}, crc FROM {name} WHERE rowid=?"
        # The scan of an index would not see a row that the index has lost.
        self._unfound = (
            f"SELECT rowid FROM {name} AS each NOT INDEXED WHERE NOT EXISTS"
            f" (SELECT 1 FROM {name} WHERE {names[0]}=each.{names[0]})"
        )

    def insert(self, transaction: Transaction, row: R) -> int:
        """Insert a row with a new key; return its number, in a table that has them."""
        transaction.execute(self._insert, self._sealed(row))
        return transaction.last_row()

    def keep(self, transaction: Transaction, row: R) -> bool:
        """Insert a row; return False, and change nothing, if there is a row with its key."""
        transaction.execute(self._keep, self._sealed(row))
        return transaction.changes() == 1

    def replace(self, transaction: Transaction, row: R) -> None:
        """Insert a row, or replace the row with the same key."""
        transaction.execute(self._replace, self._sealed(row))

    def update(self, transaction: Transaction, row: R) -> None:
        """Replace the row that has the key of ``row``; raises ``RowHidden``."""
        sealed = self._sealed(row)
        key, others = sealed[: self._key_columns], sealed[self._key_columns :]
        transaction.execute(self._update, (*others, *key))
        if not transaction.changes():
            raise RowHidden(STATE, self.name, "/".join(map(str, key)))

    def delete(self, transaction: Transaction, *key: str | int) -> None:
        """Remove the row with this key, if there is one."""
        transaction.execute(self._delete, key)

    def read(self, transaction: Transaction, *key: str | int) -> R | None:
        """Return the row with this key, or None; raises ``RowDamaged``."""
        if not all(map(is_plain_text, key[: self._texts_in_key])):
            # No row has it, and SQLite would raise, or compare the text of a number.
            return None
        shown = "/".join(map(str, key))
        try:
            found = transaction.execute(self._read, key)
        except UnicodeDecodeError:
            raise RowDamaged(STATE, self.name, shown) from None
        return self._checked(found[0], shown) if found else None

    def select(
        self, transaction: Transaction, condition: str, bindings: Bindings = (), index: str = ""
    ) -> Iterator[tuple[int, R | RowDamaged]]:
        """Yield the number and the content of the rows with ``condition`` (SQL), in its order.

        SQLite uses ``index``, if one is named. A damaged row is yielded as its error. Only for
        tables with row numbers.
        """
        source = f"{self.name} INDEXED BY {index}" if index else self.name
        rows = transaction.execute(f"SELECT rowid FROM {source} WHERE {condition}", bindings)
        for (number,) in rows:
            assert isinstance(number, int)
            yield number, self._row(transaction, number)

    def unfound(self, transaction: Transaction) -> Iterator[RowHidden]:
        """Yield an error for each sound row that ``read`` does not find.

        Reads the whole table. Only for tables with row numbers and one column as their key.
        """
        for (number,) in transaction.execute(self._unfound):
            assert isinstance(number, int)
            row = self._row(transaction, number)
            if not isinstance(row, RowDamaged):
                yield RowHidden(STATE, self.name, row[0])

    def _row(self, transaction: Transaction, number: int) -> R | RowDamaged:
        shown = f"rowid {number}"
        try:
            found = transaction.execute(self._read_row, (number,))
            return self._checked(found[0], shown)
        except UnicodeDecodeError:
            return RowDamaged(STATE, self.name, shown)
        except RowDamaged as damaged:
            return damaged

    def damaged(self, transaction: Transaction) -> Iterator[RowDamaged]:
        """Yield an error for each damaged row; reads the whole table, also one without numbers.

        A damaged key may hide the rows beside it.
        """
        for key in transaction.execute(self._keys):
            shown = "/".join(_bytes_of(value).decode(errors="backslashreplace") for value in key)
            try:
                found = transaction.execute(self._read_by_blobs, key)
                if not found:
                    yield RowHidden(STATE, self.name, shown)
                for row in found:
                    self._checked(row, shown)
            except UnicodeDecodeError:
                yield RowDamaged(STATE, self.name, shown)
            except RowDamaged as damaged:
                yield damaged

    def _sealed(self, row: R) -> list[Any]:
        """Return a row as SQLite stores it, with its checksum."""
        values: list[Any] = [self.name, *row]
        for index, _ in self._enums:
            values[index] = str(values[index])
        for index in self._truths:
            values[index] = int(values[index])
        values.append(_crc(values))
        del values[0]
        return values

    def _checked(self, found: SqlRow, shown: str) -> R:
        values: list[Any] = [self.name, *found]
        crc = values.pop()
        try:
            is_right = crc == _crc(values)
        except (NotPlainJson, TypeError):
            # A flipped bit may make a number infinite, or a text a blob.
            is_right = False
        if not is_right:
            raise RowDamaged(STATE, self.name, shown)
        for index, kind in self._enums:
            values[index] = kind(values[index])
        for index in self._truths:
            values[index] = bool(values[index])
        return self._record._make(values[1:])


def readable_texts(
    transaction: Transaction, query: str, bindings: Bindings = ()
) -> list[tuple[str, ...]]:
    """Return the rows of a query for texts, which casts them to blobs; without damaged rows.

    Without the cast, one text that is not UTF-8 makes the whole query raise.
    """
    rows = []
    for row in transaction.execute(query, bindings):
        with suppress(UnicodeDecodeError):
            rows.append(tuple([_text_of(value) for value in row]))
    return rows


def _text_of(value: SQLiteValue) -> str:
    return _bytes_of(value).decode()


def _bytes_of(value: SQLiteValue) -> bytes:
    assert isinstance(value, bytes)
    return value


def _crc(named: list[Any]) -> str:
    """Return the checksum of the name of a table and the values of a row."""
    return crc32(canonical_row(named)).to_bytes(4, "big").hex()


def _is_a(hint: Any, kind: type) -> bool:
    return isinstance(hint, type) and issubclass(hint, kind)
