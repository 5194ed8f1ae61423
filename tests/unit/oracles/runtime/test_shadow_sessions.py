"""The shadow of a session store: whole records, suspended by recovery, never silently missing."""

from __future__ import annotations

import pytest

from oracles.runtime.shadow_sessions import ShadowSessions, StoredContent, StoredSession
from oracles.violation import Duplicated, InvalidState, LostAck, Phantom, TornRecord

_ACTIVE = StoredContent("anthropic", "ACTIVE", b"1")
_SUSPENDED = StoredContent("anthropic", "SUSPENDED", b"1")


def _shadow() -> ShadowSessions:
    """Return a shadow with one acknowledged session, and one whose creation is in flight."""
    shadow = ShadowSessions()
    shadow.begin("first", _ACTIVE)
    shadow.acknowledge("first", "aa")
    shadow.begin("second", _ACTIVE)
    return shadow


def test_a_running_store_shows_what_was_acknowledged() -> None:
    shadow = _shadow()
    shadow.check([StoredSession("aa", "first", _ACTIVE)])
    shadow.check([StoredSession("aa", "first", _ACTIVE), StoredSession("bb", "second", _ACTIVE)])


def test_recovery_suspends_what_was_active() -> None:
    assert _shadow().settle([StoredSession("aa", "first", _SUSPENDED)]) is False
    with pytest.raises(InvalidState):
        _shadow().settle([StoredSession("aa", "first", _ACTIVE)])


def test_a_creation_in_flight_may_have_happened() -> None:
    shadow = _shadow()
    stored = [StoredSession("aa", "first", _SUSPENDED), StoredSession("bb", "second", _SUSPENDED)]
    assert shadow.settle(stored) is True
    assert shadow.knows("bb")
    with pytest.raises(LostAck):
        shadow.check(stored[:1])


@pytest.mark.parametrize(
    ("stored", "violation"),
    [
        ([], LostAck),
        ([StoredSession("cc", "first", _SUSPENDED)], Phantom),
        ([StoredSession("aa", "third", _SUSPENDED)], Phantom),
        (
            [StoredSession("aa", "first", _SUSPENDED), StoredSession("ab", "first", _SUSPENDED)],
            Duplicated,
        ),
        ([StoredSession("aa", "first", _SUSPENDED._replace(blob=b""))], TornRecord),
    ],
    ids=["gone", "another id", "unknown", "twice", "torn"],
)
def test_a_broken_store_is_called_by_the_property_it_breaks(
    stored: list[StoredSession], violation: type[Exception]
) -> None:
    with pytest.raises(violation):
        _shadow().settle(stored)


def test_a_damaged_record_that_was_reported_is_excused() -> None:
    shadow = _shadow()
    shadow.excuse("aa")
    shadow.settle([])
    shadow.check([])


def test_an_unreadable_session_is_not_settled() -> None:
    shadow = _shadow()
    shadow.settle([], unreadable={"aa"})
    shadow.check([StoredSession("aa", "first", _ACTIVE)])
    shadow.check([StoredSession("aa", "first", _SUSPENDED)])


def test_a_creation_in_flight_stays_open_while_an_unknown_id_is_unreported() -> None:
    shadow = _shadow()
    shadow.settle([StoredSession("aa", "first", _SUSPENDED)], unreadable={"bb"})
    stored = [StoredSession("aa", "first", _SUSPENDED), StoredSession("bb", "second", _SUSPENDED)]
    assert shadow.settle(stored) is True
