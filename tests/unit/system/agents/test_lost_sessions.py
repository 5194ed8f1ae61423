"""Sessions whose log does not name an agent: the lines of other sessions decide."""

from __future__ import annotations

import pytest

from system.agents.history import History
from system.agents.provider_state import ProviderState
from system.agents.session_data import AgentData
from system.recovery.orphans import SessionEvidence, SessionIndex, Verdict
from system.sessions.session import SessionRecord, SessionState
from system.storage.line import Line
from tests.unit.system.agents.room import (
    ADA,
    BOB,
    EVE,
    NOW,
    ONE,
    THREE,
    TWO,
    Events,
    completed,
    created,
    enqueued,
    spawned,
)

SPAWNING = completed("t", spawned=[spawned(BOB, TWO, "Bob")])


def folded(events: Events) -> History:
    return History.from_lines(
        Line(seq, NOW, ONE, name, data) for seq, (name, data) in enumerate(events, 1)
    )


def record(state: SessionState, turns: int = 0) -> SessionRecord:
    """A record of session TWO, which has had a conversation."""
    blob = ProviderState("c", turns).encoded()
    return SessionRecord(TWO, "scripted", "", state, blob)


def orphans(
    events: Events | None = None,
    *,
    damaged: bool = False,
    found: SessionRecord | None = None,
    record_is_damaged: bool = False,
) -> SessionEvidence:
    return SessionEvidence(folded(events or []), damaged, found, record_is_damaged)


def verdict(what: SessionEvidence, ada: Events, eve: Events | None = None) -> Verdict:
    """The verdict on session TWO beside these lines of Ada, and of Eve."""
    histories = {ONE: folded([*created(ADA, "Ada"), *ada]), TWO: what.history}
    if eve is not None:
        histories[THREE] = folded(eve)
    return SessionIndex(histories).verdict_on(TWO, what)


# -- files after a crash -----------------------------------------------------------------


def test_what_nobody_knows_is_an_orphan() -> None:
    assert verdict(orphans(), []) is Verdict.ORPHAN


def test_a_root_whose_creation_came_no_further_than_its_record_is_an_orphan() -> None:
    assert verdict(orphans(found=record(SessionState.ACTIVE)), []) is Verdict.ORPHAN


def test_a_spawned_child_of_which_nothing_is_there_is_uncreated() -> None:
    assert verdict(orphans(), [SPAWNING]) is Verdict.UNCREATED


def test_a_spawned_child_with_its_first_line_and_its_first_record_is_uncreated() -> None:
    at_creation = SessionRecord(TWO, "scripted", "", SessionState.SUSPENDED)

    assert (
        verdict(orphans(created(BOB, "Bob")[:1], found=at_creation), [SPAWNING])
        is Verdict.UNCREATED
    )


# -- what damage leaves ------------------------------------------------------------------


def test_the_outbox_names_a_child_whose_log_is_damaged() -> None:
    assert verdict(orphans(created(BOB, "Bob")[:1], damaged=True), [SPAWNING]) is Verdict.NAMED


def test_the_outbox_has_the_data_of_the_child() -> None:
    evidence = SessionIndex({ONE: folded([*created(ADA, "Ada"), SPAWNING])})

    assert evidence.spawned == {TWO: AgentData(BOB, "Bob", ONE, "work", None)}


def test_a_damaged_log_that_no_outbox_names_is_kept() -> None:
    assert verdict(orphans(created(BOB, "Bob")[:1], damaged=True), []) is Verdict.LOST


def test_a_damaged_log_without_its_first_line_is_kept() -> None:
    assert verdict(orphans(damaged=True), [SPAWNING]) is Verdict.LOST


@pytest.mark.parametrize("ada", [[], [SPAWNING]], ids=["nobody's", "spawned"])
def test_a_session_whose_record_is_damaged_is_kept(ada: Events) -> None:
    assert verdict(orphans(record_is_damaged=True), ada) is Verdict.LOST


# -- traces of a life --------------------------------------------------------------------


@pytest.mark.parametrize("ada", [[], [SPAWNING]], ids=["nobody's", "spawned"])
def test_who_has_a_child_has_stood_as_an_agent(ada: Events) -> None:
    assert verdict(orphans(), ada, eve=created(EVE, "Eve", parent=TWO)) is Verdict.LOST


@pytest.mark.parametrize("kind", ["text", "poke", "response", "bootstrap"])
def test_who_has_said_something_has_stood_as_an_agent(kind: str) -> None:
    assert verdict(orphans(), [SPAWNING, enqueued("m", BOB, ADA, kind)]) is Verdict.LOST


@pytest.mark.parametrize("kind", ["error", "notice"])
def test_what_the_runtime_says_in_the_name_of_an_agent_is_no_trace_of_it(kind: str) -> None:
    assert verdict(orphans(), [SPAWNING, enqueued("m", BOB, ADA, kind)]) is Verdict.UNCREATED


@pytest.mark.parametrize("state", [SessionState.ACTIVE, SessionState.TERMINATED])
def test_a_child_whose_record_has_moved_on_has_stood_as_an_agent(state: SessionState) -> None:
    assert verdict(orphans(found=record(state)), [SPAWNING]) is Verdict.LOST


@pytest.mark.parametrize("state", [SessionState.SUSPENDED, SessionState.TERMINATED])
def test_a_root_whose_record_has_moved_on_has_stood_as_an_agent(state: SessionState) -> None:
    assert verdict(orphans(found=record(state)), []) is Verdict.LOST


def test_a_record_that_counts_turns_is_that_of_an_agent() -> None:
    assert (
        verdict(orphans(found=record(SessionState.SUSPENDED, turns=3)), [SPAWNING]) is Verdict.LOST
    )


def test_a_child_that_has_had_a_conversation_has_stood_as_an_agent() -> None:
    # Its first conversation is of its first turn; a boot wrote the state back to SUSPENDED.
    assert verdict(orphans(found=record(SessionState.SUSPENDED)), [SPAWNING]) is Verdict.LOST
