"""The shadow of the recording: a wrong state is reported by exactly the right violation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import pytest

from oracles.recording.record_reader import FINAL, ObservedEvent, ObservedRecord
from oracles.recording.shadow_execution import (
    CORRUPTED,
    FAILURE,
    INCOMPLETE,
    INVALIDATED,
    LogRecordKind,
)
from oracles.recording.shadow_recording import ObservedRecords, ShadowRecording, is_sampled
from oracles.recording.violations import UnearnedReplay, UnreportedDamage, WrongReason
from oracles.violation import LogGap, LostAck, Phantom, Resurrected, SilentEmpty, Violation

ONE: Final = f"exec-{1:016x}"
TWO: Final = f"exec-{2:016x}"
FIRST: Final = "INTENT_RECEIVED"
SECOND: Final = "ROUTER_DECISION"
DONE: Final = b'{"status":"success"}'
CLASS: Final = "READ_ONLY"


def started(*execution_ids: str) -> ShadowRecording:
    """Executions that have started; nothing of them is durable."""
    shadow = ShadowRecording()
    for execution_id in execution_ids or (ONE,):
        shadow.begin_start(execution_id.encode(), CLASS)
        shadow.started(execution_id)
    return shadow


def add(shadow: ShadowRecording, name: str, execution_id: str = ONE) -> None:
    shadow.written(shadow.begin(execution_id, LogRecordKind.EVENT, name, b"{}"))


def end(shadow: ShadowRecording, execution_id: str = ONE) -> None:
    shadow.written(shadow.end(execution_id, DONE))


def observed(
    *names: str,
    reason: str | None = INCOMPLETE,
    execution_id: str = ONE,
    invalidated: tuple[str, str] | None = None,
    payload: bytes = b"{}",
    envelope: bytes = b"",
) -> ObservedRecord:
    events = [
        ObservedEvent(n, name, DONE if name == FINAL else payload)
        for n, name in enumerate(names, 1)
    ]
    response = DONE if FINAL in names else None
    return ObservedRecord(
        execution_id, envelope or execution_id.encode(), CLASS, tuple(events), response, reason,
        invalidated,
    )  # fmt: skip


def durable() -> ShadowRecording:
    """An execution that has ended, and is durable."""
    shadow = started()
    add(shadow, FIRST)
    end(shadow)
    shadow.barrier()
    return shadow


WHOLE: Final = observed(FIRST, FINAL, reason=None)

WRONG_READS: Final[dict[str, tuple[ObservedRecord | None, type[Violation]]]] = {
    "it is gone": (None, LostAck),
    "an event is gone": (observed(FINAL, reason=None), LostAck),
    "the response is gone": (observed(FIRST), LostAck),
    "an event was never recorded": (observed(FIRST, SECOND, FINAL, reason=None), Phantom),
    "a payload is another one": (observed(FIRST, FINAL, reason=None, payload=b"[]"), Phantom),
    "the envelope is another one": (observed(FIRST, FINAL, reason=None, envelope=b"x"), Phantom),
    "it has a reason": (observed(FIRST, FINAL, reason=FAILURE), WrongReason),
    "it is incomplete": (observed(FIRST, FINAL, reason=INCOMPLETE), WrongReason),
    "it is invalidated": (
        observed(FIRST, FINAL, reason=INVALIDATED, invalidated=("wrong", "Anna")), Resurrected,
    ),
}  # fmt: skip

wrong_reads = pytest.mark.parametrize(
    ("record", "violation"), WRONG_READS.values(), ids=WRONG_READS.keys()
)


def raised_by(check: Callable[[], object]) -> type[Violation]:
    with pytest.raises(Violation) as caught:
        check()
    return caught.type


def test_the_right_record_is_no_violation() -> None:
    durable().check(ONE, WHOLE)
    assert durable().settle({ONE: WHOLE}, kept=True) is False
    started().check(TWO, None)


@wrong_reads
def test_a_wrong_read_of_the_running_system(
    record: ObservedRecord | None, violation: type[Violation]
) -> None:
    assert raised_by(lambda: durable().check(ONE, record)) is violation


@wrong_reads
@pytest.mark.parametrize("kept", [True, False])
def test_a_wrong_record_behind_a_recovery(
    record: ObservedRecord | None, violation: type[Violation], kept: bool
) -> None:
    found = {} if record is None else {ONE: record}
    assert raised_by(lambda: durable().settle(found, kept=kept)) is violation


def test_a_record_that_was_never_started() -> None:
    assert raised_by(lambda: started().check(TWO, observed(execution_id=TWO))) is Phantom
    found: ObservedRecords = {ONE: observed(), TWO: observed(execution_id=TWO)}
    assert raised_by(lambda: started().settle(found, kept=True)) is Phantom


def test_an_id_is_given_once() -> None:
    shadow = started()
    shadow.begin_start(b"{}", CLASS)
    assert raised_by(lambda: shadow.started(ONE)) is Phantom


def test_a_kill_takes_nothing_whose_call_has_returned() -> None:
    shadow = started()
    add(shadow, FIRST)
    assert raised_by(lambda: shadow.settle({ONE: observed()}, kept=True)) is LostAck


def test_a_power_cut_takes_what_no_barrier_covers_and_then_it_stays_gone() -> None:
    shadow = started()
    shadow.barrier()
    add(shadow, FIRST)
    assert shadow.settle({ONE: observed()}, kept=False) is False
    assert raised_by(lambda: shadow.check(ONE, observed(FIRST))) is Phantom


def test_a_power_cut_never_takes_what_a_barrier_covers() -> None:
    shadow = started()
    add(shadow, FIRST)
    shadow.barrier(ONE)
    assert raised_by(lambda: shadow.settle({ONE: observed()}, kept=False)) is LostAck


@pytest.mark.parametrize(
    ("damaged", "synced", "violation"),
    [(True, False, None), (False, False, LostAck), (True, True, LostAck)],
)
def test_a_lost_record_may_be_unreadable_while_another_is_damaged(
    damaged: bool, synced: bool, violation: type[Violation] | None
) -> None:
    shadow = started(ONE)
    shadow.barrier()
    first = None if damaged else observed()
    shadow.settle({ONE: first}, kept=False, excused=(ONE,))
    shadow.begin_start(TWO.encode(), CLASS)
    shadow.started(TWO)
    if synced:
        shadow.barrier()
    found = {ONE: first, TWO: None}
    if violation is None:
        shadow.settle(found, kept=False)
        assert TWO not in shadow.executions
    else:
        assert raised_by(lambda: shadow.settle(found, kept=False)) is violation


def test_a_log_record_behind_a_lost_one_is_a_gap() -> None:
    shadow = started(ONE, TWO)
    shadow.barrier()
    add(shadow, FIRST, ONE)
    add(shadow, FIRST, TWO)
    found = {ONE: observed(), TWO: observed(FIRST, execution_id=TWO)}
    assert raised_by(lambda: shadow.settle(found, kept=False)) is LogGap
    found = {ONE: observed(FIRST), TWO: observed(execution_id=TWO)}
    assert started(ONE, TWO).settle({}, kept=False) is False


@pytest.mark.parametrize(
    ("is_repeated", "is_lost", "reason"),
    [(False, False, "impure"), (True, False, "impure"), (False, True, "recording_failure")],
)
def test_a_reason_behind_a_lost_log_record_is_a_gap_if_the_record_shows_that_it_is_there(
    is_repeated: bool, is_lost: bool, reason: str
) -> None:
    shadow = started(ONE, TWO)
    if is_repeated:
        shadow.written(shadow.begin(TWO, LogRecordKind.REASON, "impure", b""))
    shadow.barrier()
    add(shadow, FIRST, ONE)
    if is_lost:
        shadow.lost(TWO)
    shadow.written(shadow.begin(TWO, LogRecordKind.REASON, "impure", b""))
    found = {ONE: observed(), TWO: observed(execution_id=TWO, reason=reason)}
    if is_repeated or is_lost:
        shadow.settle(found, kept=False)
    else:
        assert raised_by(lambda: shadow.settle(found, kept=False)) is LogGap


def test_an_empty_store_is_a_violation_of_its_own() -> None:
    shadow = started(ONE, TWO)
    shadow.barrier()
    assert raised_by(lambda: shadow.settle({}, kept=False)) is SilentEmpty


def test_a_record_without_a_response_is_not_replayable() -> None:
    shadow = started()
    assert raised_by(lambda: shadow.check(ONE, observed(reason=None))) is UnearnedReplay


def test_a_marked_record_is_not_replayable() -> None:
    shadow = started()
    shadow.written(shadow.begin(ONE, LogRecordKind.REASON, "it has a clock", b""))
    end(shadow)
    shadow.check(ONE, observed(FINAL, reason="it has a clock"))
    assert raised_by(lambda: shadow.check(ONE, observed(FINAL, reason=None))) is UnearnedReplay
    assert raised_by(lambda: shadow.check(ONE, observed(FINAL, reason="another"))) is WrongReason


def test_a_record_that_lost_an_event_is_not_replayable() -> None:
    shadow = started()
    shadow.begin(ONE, LogRecordKind.EVENT, FIRST, b"{}")
    shadow.lost(ONE)
    end(shadow)
    shadow.check(ONE, observed(FINAL, reason=FAILURE))
    assert raised_by(lambda: shadow.check(ONE, observed(FINAL, reason=None))) is UnearnedReplay
    assert raised_by(lambda: shadow.check(ONE, observed(FINAL))) is WrongReason


def test_a_failed_barrier_has_lost_the_events_of_the_execution_that_asked() -> None:
    shadow = started()
    add(shadow, FIRST)
    shadow.fail_barrier(ONE)
    shadow.check(ONE, observed(FIRST, reason=FAILURE))
    assert raised_by(lambda: shadow.check(ONE, observed(FIRST))) is WrongReason


def test_an_acknowledged_response_is_there_although_an_earlier_barrier_has_failed() -> None:
    shadow = started(ONE, TWO)
    for execution_id in (ONE, TWO):
        add(shadow, FIRST, execution_id)
        shadow.fail_barrier(execution_id)
        end(shadow, execution_id)
    shadow.finalized(ONE)
    lost = observed(FINAL, reason=FAILURE)
    assert raised_by(lambda: shadow.settle({TWO: lost}, kept=False)) is LostAck
    shadow.settle({ONE: lost}, kept=False)


def test_a_barrier_that_may_have_failed_leaves_both_reasons() -> None:
    shadow = started()
    add(shadow, FIRST)
    shadow.disturb()
    shadow.check(ONE, observed(FIRST, reason=FAILURE))
    shadow.check(ONE, observed(FIRST))
    assert raised_by(lambda: shadow.check(ONE, observed(FIRST, reason="another"))) is WrongReason


@pytest.mark.parametrize("doubted", [True, False])
def test_a_reason_survives_an_event_only_if_a_barrier_may_have_failed(doubted: bool) -> None:
    shadow = started()
    add(shadow, FIRST)
    if doubted:
        shadow.disturb()
    shadow.written(shadow.begin(ONE, LogRecordKind.REASON, "impure", b""))
    if doubted:
        shadow.settle({ONE: observed(reason="impure")}, kept=False)
    else:
        settle = partial(shadow.settle, {ONE: observed(reason="impure")}, kept=False)
        assert raised_by(settle) is LostAck


def test_no_event_survives_one_before_it_although_a_barrier_may_have_failed() -> None:
    shadow = started()
    add(shadow, FIRST)
    add(shadow, SECOND)
    shadow.disturb()
    settle = partial(shadow.settle, {ONE: observed(SECOND, reason=FAILURE)}, kept=False)
    assert raised_by(settle) is LostAck


def test_a_start_under_way_may_be_there_once() -> None:
    shadow = ShadowRecording()
    shadow.begin_start(ONE.encode(), CLASS)
    assert shadow.settle({ONE: observed()}, kept=True) is True
    shadow.check(ONE, observed())
    again = ShadowRecording()
    again.begin_start(ONE.encode(), CLASS)
    found = {ONE: observed(), TWO: observed(execution_id=TWO, envelope=ONE.encode())}
    assert raised_by(lambda: again.settle(found, kept=True)) is Phantom


def test_a_start_under_way_is_undecided_while_a_record_cannot_be_read() -> None:
    found = {ONE: observed(), TWO: observed(execution_id=TWO)}
    hidden, readable = started(), started()
    for shadow in (hidden, readable):
        shadow.begin_start(TWO.encode(), CLASS)
    hidden.settle({ONE: None}, kept=False, excused=(ONE,))
    hidden.settle(found, kept=True)
    readable.settle({ONE: observed()}, kept=False)
    assert raised_by(lambda: readable.settle(found, kept=True)) is Phantom


def test_an_invalidation_stays() -> None:
    shadow = durable()
    shadow.begin_invalidate(ONE, "wrong", "Anna")
    invalid = observed(FIRST, FINAL, reason=INVALIDATED, invalidated=("wrong", "Anna"))
    shadow.check(ONE, invalid)
    shadow.check(ONE, WHOLE)
    shadow.invalidated(ONE)
    shadow.check(ONE, invalid)
    assert raised_by(lambda: shadow.check(ONE, WHOLE)) is Resurrected
    assert raised_by(lambda: shadow.settle({ONE: WHOLE}, kept=False)) is Resurrected


def test_damage_is_excused_if_it_is_reported_and_nothing_wrong_is_served() -> None:
    found: ObservedRecords = {}
    unreported = partial(durable().settle, found, kept=False, excused=[ONE], reported=False)
    assert raised_by(unreported) is UnreportedDamage
    shadow = durable()
    shadow.settle(found, kept=False, excused=[ONE])
    shadow.check(ONE, None)
    shadow.check(ONE, WHOLE)
    shadow.check(ONE, observed(FINAL, reason=CORRUPTED))
    assert raised_by(lambda: shadow.check(ONE, observed(SECOND))) is Phantom
    assert raised_by(lambda: shadow.check(ONE, observed(FINAL, reason=None))) is UnearnedReplay


@pytest.mark.parametrize("is_refused", [True, False])
def test_a_refused_mark_is_not_set_by_damage(is_refused: bool) -> None:
    shadow = started()
    add(shadow, FIRST)
    mark = shadow.begin(ONE, LogRecordKind.REASON, "not pure", b"")
    if not is_refused:
        shadow.written(mark)
    end(shadow)
    shadow.barrier()
    shadow.settle({}, kept=False, excused=[ONE])
    if is_refused:
        shadow.check(ONE, WHOLE)
    else:
        assert raised_by(lambda: shadow.check(ONE, WHOLE)) is UnearnedReplay


def test_a_record_that_the_store_calls_damaged_is_reported_by_that() -> None:
    durable().settle({ONE: None}, kept=False, excused=[ONE], reported=False)
    damaged = observed(FINAL, reason=CORRUPTED)
    durable().settle({ONE: damaged}, kept=False, excused=[ONE], reported=False)
    assert raised_by(lambda: durable().settle({ONE: None}, kept=False)) is LostAck


def test_an_unsafe_execution_that_damage_hides_may_come_back() -> None:
    shadow = started()
    shadow.settle({}, kept=False, excused=[ONE])
    shadow.settle({ONE: observed()}, kept=False)
    gone = started()
    gone.settle({}, kept=False)
    assert raised_by(lambda: gone.settle({ONE: observed()}, kept=False)) is Phantom


@pytest.mark.parametrize("hidden", [True, False])
def test_the_record_of_a_start_under_way_may_appear_after_damage_hid_it(hidden: bool) -> None:
    shadow = ShadowRecording()
    shadow.begin_start(ONE.encode(), CLASS)
    shadow.settle({}, kept=False, hidden=hidden)
    if hidden:
        shadow.settle({ONE: observed()}, kept=False)
    else:
        assert raised_by(lambda: shadow.settle({ONE: observed()}, kept=False)) is Phantom


@pytest.mark.parametrize(("digits", "is_in"), [("7fffffff", True), ("80000000", False)])
def test_the_id_decides_about_a_sample(digits: str, is_in: bool) -> None:
    assert is_sampled(f"exec-{digits}{0:08x}", 0.5) is is_in
    assert is_sampled(f"exec-{'f' * 16}", 1.0)
    assert not is_sampled(f"exec-{0:016x}", 0.0)
