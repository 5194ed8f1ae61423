"""Performing activities: at most one attempt at a time, each between two transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from system.durable.activity import Activity, ActivityStatus, Decision, Unknown
from system.durable.activity_runner import ActivityRunner, action_named, actions_by_name
from system.durable.errors import BadActivity, StateStopped
from system.ports import Action, EffectRefused, JsonObject, Performed
from tests.unit.durable.durable_bench import Bench
from tests.unit.durable.test_activity_store import (
    DEDUP,
    DUMB,
    KEY,
    attempt,
    intend,
    read,
    record,
    resolve,
)

T = TypeVar("T")


class ActionProvider:
    """The world behind it: the calls that reached it, and what it answers, one after the other."""

    def __init__(self, *answers: Exception | Performed | Callable[[], Coroutine[Any, Any, None]]):
        self.answers = list(answers)
        self.calls: list[tuple[str, str, JsonObject]] = []

    def actions(self) -> Sequence[Action]:
        return [DUMB, DEDUP]

    async def perform(self, action: str, key: str, arguments: JsonObject) -> Performed:
        self.calls.append((action, key, arguments))
        answer = self.answers.pop(0) if self.answers else Performed("ref", "ok")
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Performed):
            return answer
        await answer()
        raise AssertionError("it never returns")


class Twice(ActionProvider):
    """It offers one action twice."""

    def actions(self) -> Sequence[Action]:
        return [DUMB, DUMB]


class Forgetful(ActionProvider):
    """It performs a repeated key again, also of the action that another provider performed once."""

    def actions(self) -> Sequence[Action]:
        return [DUMB, replace(DEDUP, provider_dedup=False)]


async def forever() -> None:
    await asyncio.Event().wait()


def runner(bench: Bench, provider: ActionProvider) -> ActivityRunner:
    host = bench.host
    return ActivityRunner(bench.state, bench.stores.activities, provider, host.clock, host.ids)


def run(bench: Bench, main: Coroutine[Any, Any, T]) -> T:
    return bench.world.loop.run_until_complete(main)


def performed(bench: Bench, provider: ActionProvider, key: str = KEY) -> Activity:
    return run(bench, runner(bench, provider).perform(key))


def test_an_activity_is_performed_once(bench: Bench) -> None:
    intend(bench)
    provider = ActionProvider()
    for _ in range(3):
        row = performed(bench, provider)
        assert (row.status, row.provider_ref, row.result) == ("DONE", "ref", "ok")
    assert provider.calls == [("mail", KEY, {"to": "Anna"})]


def test_two_callers_perform_it_once(bench: Bench) -> None:
    intend(bench)
    provider = ActionProvider()
    one = runner(bench, provider)

    async def both() -> list[Activity]:
        return list(await asyncio.gather(one.perform(KEY), one.perform(KEY)))

    run(bench, both())
    assert len(provider.calls) == 1


def test_two_callers_in_one_commit_perform_it_once(bench: Bench) -> None:
    intend(bench)
    provider = ActionProvider()
    one = runner(bench, provider)

    async def both() -> list[Activity]:
        # Both wait for the transaction of another caller, and share the next commit.
        other = asyncio.ensure_future(bench.state.run(lambda _: None))
        await asyncio.sleep(0)
        _, *found = await asyncio.gather(other, one.perform(KEY), one.perform(KEY))
        return found

    run(bench, both())
    assert len(provider.calls) == 1
    assert read(bench).status is ActivityStatus.DONE


def test_a_provider_that_deduplicates_gets_the_same_key_again(bench: Bench) -> None:
    intend(bench, DEDUP)
    provider = ActionProvider(OSError("reset"), forever)
    before = bench.world.clock.now_ns
    assert performed(bench, provider).status is ActivityStatus.DONE
    assert provider.calls == [("pay", KEY, {"to": "Anna"})] * 3
    assert bench.world.clock.now_ns - before >= (30 + 1 + 60) * 10**9


def test_a_provider_that_does_not_is_asked_once(bench: Bench) -> None:
    intend(bench)
    provider = ActionProvider(OSError("reset"))
    row = performed(bench, provider)
    assert (row.status, row.reason) == ("UNCERTAIN", "OSError('reset')")
    assert performed(bench, provider).status is ActivityStatus.UNCERTAIN
    assert len(provider.calls) == 1


def test_a_refusal_is_failed(bench: Bench) -> None:
    intend(bench)
    row = performed(bench, ActionProvider(EffectRefused("no such address: \ud800")))
    assert (row.status, row.reason) == ("FAILED", "no such address: \\ud800")


def test_a_timeout_is_uncertain(bench: Bench) -> None:
    intend(bench)
    assert performed(bench, ActionProvider(forever)).status is ActivityStatus.UNCERTAIN


def test_a_cancelled_attempt_is_recorded_as_unknown(bench: Bench) -> None:
    intend(bench)

    async def cancelled() -> None:
        task = bench.world.loop.create_task(runner(bench, ActionProvider(forever)).perform(KEY))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(bench, cancelled())
    assert (read(bench).status, read(bench).reason) == ("UNCERTAIN", "it was cancelled")


class FillingProvider(ActionProvider):
    """The disk is full when it has performed the action, once."""

    def __init__(self, bench: Bench) -> None:
        super().__init__()
        self.bench = bench

    async def perform(self, action: str, key: str, arguments: JsonObject) -> Performed:
        self.bench.fail("write *state.db-wal #1 ENOSPC")
        return await super().perform(action, key, arguments)


def test_a_cancelled_attempt_does_not_wait_for_the_disk(bench: Bench) -> None:
    intend(bench)

    async def cancelled() -> None:
        task = bench.world.loop.create_task(runner(bench, ActionProvider(forever)).perform(KEY))
        await asyncio.sleep(0.1)
        bench.fail("write *state.db-wal #1+ ENOSPC")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(bench, cancelled())
    bench.kill()
    assert (read(bench).status, read(bench).attempts) == ("INTENT", 1)


def test_an_outcome_that_a_full_disk_refuses_is_recorded_later(bench: Bench) -> None:
    intend(bench)
    before = bench.world.clock.now_ns
    assert performed(bench, FillingProvider(bench)).status is ActivityStatus.DONE
    assert bench.world.clock.now_ns - before >= 30 * 10**9


def test_an_attempt_whose_row_the_disk_cannot_read_is_made_later(bench: Bench) -> None:
    intend(bench)
    bench.kill()
    bench.fail("read *state.db-wal #1 EIO")
    before = bench.world.clock.now_ns
    assert performed(bench, ActionProvider()).status is ActivityStatus.DONE
    assert bench.world.clock.now_ns - before >= 30 * 10**9


def test_an_attempt_that_is_not_durable_is_not_made(bench: Bench) -> None:
    intend(bench)
    bench.fail("fsync *state.db-wal #1 EIO:ext4")
    provider = ActionProvider()
    with pytest.raises(StateStopped):
        performed(bench, provider)
    assert provider.calls == []


@pytest.mark.parametrize(
    ("attempts", "later_s", "status", "reason"),
    [
        (0, 0, "FAILED", "action='fly' is not registered"),
        (1, 0, "UNCERTAIN", "action='fly' is not registered"),
        (1, 86_400, "UNCERTAIN", "attempt=1 has no known outcome"),
    ],
)
def test_an_action_that_is_no_longer_registered_is_not_attempted(
    bench: Bench, attempts: int, later_s: int, status: str, reason: str
) -> None:
    gone = Action("fly", DEDUP.side_effect, provider_dedup=True, timeout_ns=1)
    intend(bench, gone)
    for _ in range(attempts):
        attempt(bench)
        bench.kill()
        bench.do(bench.stores.activities.recover)
    one, provider = ActivityStatus(status), ActionProvider()
    bench.advance(later_s)
    row = performed(bench, provider)
    assert (row.status, row.reason) == (one, reason)
    assert provider.calls == []


def test_an_unregistered_action_that_may_have_been_performed_before_a_decision_is_uncertain(
    bench: Bench,
) -> None:
    intend(bench, Action("fly", DUMB.side_effect, provider_dedup=False, timeout_ns=1))
    attempt(bench)
    record(bench, Unknown("the answer was lost"))
    resolve(bench, Decision.AGAIN)
    row = performed(bench, ActionProvider())
    assert (row.status, row.reason) == ("UNCERTAIN", "action='fly' is not registered")


def test_an_attempt_is_not_repeated_at_a_provider_that_does_not_deduplicate_any_more(
    bench: Bench,
) -> None:
    intend(bench, DEDUP)
    attempt(bench)
    bench.kill()
    assert bench.do(bench.stores.activities.recover) == [KEY]
    provider = Forgetful()
    assert performed(bench, provider).status is ActivityStatus.UNCERTAIN
    assert provider.calls == []


def test_a_first_attempt_at_a_provider_that_does_not_deduplicate_any_more_is_the_only_one(
    bench: Bench,
) -> None:
    intend(bench, DEDUP)
    provider = Forgetful(TimeoutError("late"))
    assert performed(bench, provider).status is ActivityStatus.UNCERTAIN
    assert len(provider.calls) == 1


def test_actions_are_found_by_their_names(bench: Bench) -> None:
    actions = actions_by_name(ActionProvider())
    assert action_named(actions, "pay") == DEDUP
    with pytest.raises(BadActivity, match="action='fly' is not registered, known are: mail, pay"):
        action_named(actions, "fly")
    with pytest.raises(BadActivity, match="action='mail' is registered twice"):
        runner(bench, Twice())
