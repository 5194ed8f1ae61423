"""Boots with a recording: executions that have ended, and records that are written already."""

from __future__ import annotations

import errno

from tests.unit.system.agents.room import log_of, opened
from tests.unit.system.agents.test_recorded_turns import only


def test_an_execution_that_has_ended_is_in_a_pack_although_its_session_cannot_be_read() -> None:
    room, ada = opened()
    room.say(ada, "hello")
    execution_id, log = only(room).execution_id, log_of(room.session(ada))
    room.kill()
    room.files.fail("open-read", log, errno.EIO)
    room.open()
    store = room.runtime.records
    assert store is not None
    assert not store.is_running(execution_id)
    assert room.exists("records/00000001.pack")


def test_a_boot_that_writes_no_record_makes_the_names_of_earlier_ones_durable() -> None:
    room, ada = opened()
    room.say(ada, "hello")
    room.run(room.runtime.close())
    room.kill()
    room.open()
    assert room.files.calls.count("sync_dir records") == 1
