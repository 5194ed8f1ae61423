"""Boots and commands with a damaged or torn write-ahead log of SQLite."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import apsw
import pytest
from click.testing import CliRunner

from system.cli import cli
from system.durable.applied import applied_seq, record_applied
from system.durable.errors import StateLogDamaged
from system.durable.open_state import STATE_LOG, open_state
from system.durable.state import STATE
from system.host import real_host
from system.root import Root


def left_by_a_kill(directory: Path, seqs: Iterable[int], restart_at: int = 0) -> bytes:
    """Commit lines to a database, leave it as a kill does, and return its log."""
    state = open_state(real_host(str(directory)), None)
    for seq in seqs:
        if seq == restart_at:
            state._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        state.transact(partial(record_applied, session_id="s", seq=seq))
    names = (STATE, STATE_LOG)
    kept = [(directory / name).read_bytes() for name in names]
    state.close()
    for name, content in zip(names, kept, strict=True):
        (directory / name).write_bytes(content)
    return kept[1]


def test_a_flipped_bit_in_the_log_is_refused_and_nothing_changed(tmp_path: Path) -> None:
    log = left_by_a_kill(tmp_path, range(1, 5))
    damaged = log[: len(log) // 2] + bytes([log[len(log) // 2] ^ 1]) + log[len(log) // 2 + 1 :]
    (tmp_path / STATE_LOG).write_bytes(damaged)
    before = (tmp_path / STATE).read_bytes()
    for _ in range(2):
        with pytest.raises(StateLogDamaged, match=r"^state\.db-wal: damaged at offset=\d+, before"):
            open_state(real_host(str(tmp_path)), None)
    assert (tmp_path / STATE_LOG).read_bytes() == damaged
    assert (tmp_path / STATE).read_bytes() == before


def test_a_log_with_a_torn_header_is_replaced(tmp_path: Path) -> None:
    """SQLite would take over its salts, which are those of the old frames behind it."""
    old = left_by_a_kill(tmp_path, range(1, 12))
    new = left_by_a_kill(tmp_path, [12, 13], restart_at=12)
    assert len(new) == len(old)
    (tmp_path / STATE_LOG).write_bytes(new[:16] + old[16:])
    after = left_by_a_kill(tmp_path, [14, 15])
    assert after[16:24] != old[16:24]
    state = open_state(real_host(str(tmp_path)), None)
    assert state.transact(lambda transaction: applied_seq(transaction, "s")) == 15
    state.close()


def test_a_command_says_the_same_as_a_boot(tmp_path: Path) -> None:
    host = real_host(str(tmp_path))
    Root.open(host.files, host.ids).close()
    log = left_by_a_kill(tmp_path, range(1, 5))
    (tmp_path / STATE_LOG).write_bytes(bytes(512) + log[512:])
    found = CliRunner().invoke(cli, ["status", "--root", str(tmp_path)])
    assert found.exit_code == 2
    assert "state.db-wal: damaged at offset=0, before commits that were durable" in found.stderr
    assert "restore state.db and state.db-wal from one copy" in found.stderr
