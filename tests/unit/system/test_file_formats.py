"""The tables of docs/file-formats.md, compared with the files that the code writes.

``agents/test_line_schemas.py`` compares the tables of lines.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from system.durable.schema import APPLICATION_ID, CREATED, VERSION
from system.host import real_host
from system.recording.executions.entry_type import EntryType
from system.recording.executions.log_record import encoded_log_record, end_of_log_record
from system.recording.records.header import HEADER_MEMBERS
from system.recording.records.record_members import RECORD_MEMBERS
from system.recording.stores.pack import pack_pieces
from system.recording.wal.checkpoint import Checkpoint, write_checkpoint
from system.recording.wal.format import ENTRY_BYTES, HEADER_BYTES
from system.root import Root
from system.sessions.session import SessionRecord, SessionState, encode_record
from tests.meta.page_tables import quoted, table_rows
from tests.meta.source_tree import ROOT

PAGE = (ROOT / "docs" / "file-formats.md").read_text("utf-8")


def members_of(title: str) -> set[str]:
    """Return the members in the table whose header begins with this title."""
    return {name for row in table_rows(PAGE, title) for name in quoted(row[0])}


def sealed(content: bytes) -> set[str]:
    """Return the members of a sealed object that has a line of its own."""
    assert content.count(b"\n") == 1
    assert content.endswith(b"\n")
    return set(json.loads(content)) - {"crc"}


def test_the_members_of_the_marker(tmp_path: Path) -> None:
    host = real_host(str(tmp_path))
    root = Root.open(host.files, host.ids)
    first = sealed((tmp_path / "root.json").read_bytes())
    root.adopt(host.files, host.ids, "0" * 32)
    root.close()
    assert sealed((tmp_path / "root.json").read_bytes()) == members_of("member of `root.json`")
    assert members_of("member of `root.json`") - first == {"root_id"}


def test_the_slots_of_the_lock(tmp_path: Path) -> None:
    host = real_host(str(tmp_path))
    for _ in range(3):
        Root.open(host.files, host.ids).close()
    content = (tmp_path / "runtime.lock").read_bytes()
    (size_bytes,) = map(int, re.findall(r"two slots of (\d+) bytes", PAGE))
    slots = [content[:size_bytes], content[size_bytes:]]
    assert [len(slot) for slot in slots] == [size_bytes, size_bytes]
    assert [json.loads(slot)["epoch"] for slot in slots] == [3, 2]
    assert all(slot.rstrip(b" ").endswith(b"\n") for slot in slots)


def test_the_members_and_states_of_a_session_record() -> None:
    record = SessionRecord("0" * 32, "provider", "model", SessionState.ACTIVE)
    assert sealed(encode_record(record)) == members_of("member of `session.json`")
    (states,) = (
        row[1] for row in table_rows(PAGE, "member of `session.json`") if "state`" in row[0]
    )
    assert quoted(states) == list(SessionState)


def test_the_members_of_the_checkpoint(tmp_path: Path) -> None:
    host = real_host(str(tmp_path))
    write_checkpoint(host.files, host.ids, "checkpoint", Checkpoint(records=0, snapshots=0))
    written = sealed((tmp_path / "checkpoint").read_bytes())
    assert written == members_of("member of `checkpoint`")


def test_the_members_of_a_log_record() -> None:
    encoded = encoded_log_record(1, b"{}", end_of_log_record("exec-0", "now"), reason=b'"lost"')
    assert set(json.loads(encoded)) == members_of("member of a log record")


def test_the_members_of_a_record() -> None:
    assert members_of("member of a record") == RECORD_MEMBERS
    assert members_of("member of `header`") == HEADER_MEMBERS


def test_the_types_of_entries() -> None:
    assert [(int(row[0]), quoted(row[1])[0]) for row in table_rows(PAGE, "type")] == [
        (int(each), each.name) for each in EntryType
    ]


@pytest.mark.parametrize(
    ("rule", "size_bytes"),
    [
        ("header  = ", HEADER_BYTES),
        ("entry   = ", ENTRY_BYTES),
        ("trailer = ", len(b"".join(pack_pieces([])))),
    ],
)
def test_the_sizes_of_fields(rule: str, size_bytes: int) -> None:
    fields = PAGE.partition(f"\n{rule}")[2].partition("\n")[0]
    sizes = [*map(int, re.findall(r":(\d+)", fields)), *map(len, re.findall(r'"(\w+)"', fields))]
    assert sum(sizes) == size_bytes


TABLES = {each.split()[2]: each for each in CREATED if each.startswith("CREATE TABLE ")}


def test_the_tables_of_the_database() -> None:
    assert {quoted(row[0])[0] for row in table_rows(PAGE, "table")} == set(TABLES)
    section = PAGE.partition("\n## state.db\n")[2]
    assert f"now {VERSION}" in section
    assert f"`{APPLICATION_ID.to_bytes(4, 'big').decode()}`" in section


@pytest.mark.parametrize(("name", "key", "others"), [row[:3] for row in table_rows(PAGE, "table")])
def test_the_columns_of_a_table(name: str, key: str, others: str) -> None:
    statement = TABLES[quoted(name)[0]]
    columns = re.findall(r"(\w+) (?:TEXT|REAL|INTEGER)", statement)
    documented = ", ".join([*quoted(key), *quoted(others)]).split(", ")
    assert [*documented, *["crc"][: name != "`meta`"]] == columns
    is_key = re.compile(r"(\w+) TEXT NOT NULL PRIMARY KEY|PRIMARY KEY \(([^)]+)\)").search(
        statement
    )
    assert quoted(key) == ([] if is_key is None else [is_key[1] or is_key[2]])
