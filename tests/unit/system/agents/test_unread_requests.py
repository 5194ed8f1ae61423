"""Requests about a session that cannot be read: no agent is created twice."""

from __future__ import annotations

import errno

import pytest

from system.errors import MayBeThere
from tests.unit.system.agents.room import Room, log_of, opened


def with_unread_agent() -> tuple[Room, str, str]:
    """A root in which the agent of the request ``r`` cannot be read; its id and its session."""
    room = Room()
    room.open()
    room.create("Eve", request_id="s")
    ada = room.create("Ada", request_id="r")
    session_id = room.session(ada)
    room.kill()
    room.files.fail("pread", log_of(session_id), errno.EIO)
    room.open()
    return room, ada, session_id


def test_a_request_that_may_be_that_of_an_unread_session_is_refused() -> None:
    room, _, session_id = with_unread_agent()

    with pytest.raises(MayBeThere, match=session_id):
        room.create("Ada", request_id="r")

    assert not room.runtime.is_taken("Ada")


def test_a_refused_request_finds_its_agent_when_that_can_be_read_again() -> None:
    room, ada, _ = with_unread_agent()

    room.reopen()

    assert room.create("Ada", request_id="r") == ada


def test_a_request_whose_agent_is_there_is_answered() -> None:
    room, _, _ = with_unread_agent()

    assert room.create("Eve", request_id="s") == room.named("Eve").agent_id


def test_an_agent_without_a_request_can_always_be_created() -> None:
    room, _, _ = with_unread_agent()

    room.create("Cleo")

    assert room.named("Cleo").alive


def test_a_new_request_is_answered_when_every_session_can_be_read() -> None:
    room, _ = opened()

    assert room.create("Bob", request_id="new") == room.named("Bob").agent_id
