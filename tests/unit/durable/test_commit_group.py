"""Works that wait for the database together: one commit, and each its own result."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import pytest

from sim.disk.cache.operation import Sync
from system.durable.applied import applied_seq, record_applied
from system.durable.commit_group import CommitGroup, Work
from system.durable.errors import StateStopped
from system.durable.state import Transaction
from system.errors import StorageFull
from tests.unit.durable.durable_bench import Bench

T = TypeVar("T")

SESSIONS = ("a", "b", "c")


def applying(session_id: str) -> Callable[[Transaction], bool]:
    return lambda transaction: record_applied(transaction, session_id, 1)


def refused(transaction: Transaction) -> None:
    record_applied(transaction, "refused", 1)
    raise ValueError("no")


def loop(bench: Bench, work: Awaitable[T]) -> T:
    return bench.world.loop.run_until_complete(work)


async def together(bench: Bench, *works: Callable[[Transaction], object]) -> list[object]:
    """Do works that wait for the database at the same time; the first alone, the others behind."""
    results = await asyncio.gather(*map(bench.state.run, works), return_exceptions=True)
    return list(results)


def seqs(bench: Bench) -> list[int]:
    return [bench.do(applied_seq, session_id) for session_id in SESSIONS]


def syncs(bench: Bench) -> int:
    return sum(isinstance(each, Sync) for each in bench.world.disk.journal.operations)


def test_works_that_wait_together_are_durable_behind_one_barrier(bench: Bench) -> None:
    before = syncs(bench)
    works = [applying(session_id) for session_id in SESSIONS]
    assert loop(bench, together(bench, *works)) == [True, True, True]
    # One for the first, one for those that came meanwhile.
    assert syncs(bench) - before == 2
    bench.cut_power()
    assert seqs(bench) == [1, 1, 1]


def test_each_work_sees_the_changes_of_those_before_it(bench: Bench) -> None:
    works = [applying("a"), applying("b"), applying("b"), applying("c")]
    assert loop(bench, together(bench, *works)) == [True, True, False, True]


def test_a_work_that_raises_takes_back_its_own_changes_only(bench: Bench) -> None:
    works = [applying("a"), applying("b"), refused, applying("c")]
    first, second, third, fourth = loop(bench, together(bench, *works))
    assert (first, second, fourth) == (True, True, True)
    assert isinstance(third, ValueError)
    assert seqs(bench) == [1, 1, 1]
    assert bench.do(applied_seq, "refused") == 0


def test_the_calls_behind_a_commit_are_made_in_the_order_of_the_works(bench: Bench) -> None:
    called: list[str] = []

    def noting(name: str) -> Callable[[Transaction], None]:
        return lambda transaction: transaction.after_commit(lambda: called.append(name))

    def failing(transaction: Transaction) -> None:
        noting("failed")(transaction)
        raise ValueError("no")

    loop(bench, together(bench, noting("a"), noting("b"), failing, noting("c")))
    assert called == ["a", "b", "c"]


def test_behind_a_full_disk_each_work_is_tried_by_itself(bench: Bench) -> None:
    def large(transaction: Transaction) -> None:
        transaction.execute("CREATE TABLE large AS SELECT zeroblob(500000) AS content")

    bench.fail("write *state.db-wal after 64KiB ENOSPC")
    results = loop(bench, together(bench, applying("a"), large, applying("b"), applying("c")))
    assert [type(result) for result in results] == [bool, StorageFull, bool, bool]


def test_a_full_disk_takes_no_trigger_out_of_the_queue(bench: Bench) -> None:
    trigger_id, triggers = bench.emit(), bench.stores.triggers
    bench.fail("write *state.db-wal ENOSPC")
    results = loop(
        bench,
        together(
            bench,
            applying("a"),
            lambda transaction: triggers.cancel(transaction, trigger_id),
            lambda transaction: triggers.claim(transaction, trigger_id),
        ),
    )
    assert [type(result) for result in results] == [StorageFull] * 3
    assert (bench.due(), bench.row(trigger_id).status) == (trigger_id, "PENDING")


def test_a_failed_barrier_stops_all_works_that_share_it(bench: Bench) -> None:
    bench.fail("fsync *state.db-wal #1 EIO:ext4")
    works = [applying(session_id) for session_id in SESSIONS]
    first, *others = loop(bench, together(bench, *works))
    assert isinstance(first, StateStopped)
    assert all(isinstance(other, StateStopped) for other in others)
    assert len({id(result) for result in (first, *others)}) == 3


def test_a_failed_barrier_stops_the_group_that_shares_it(bench: Bench) -> None:
    bench.fail("fsync *state.db-wal #2 EIO:ext4")
    works = [applying(session_id) for session_id in SESSIONS]
    first, *others = loop(bench, together(bench, *works))
    assert first is True
    assert [type(other) for other in others] == [StateStopped, StateStopped]
    assert others[0] is not others[1]
    bench.cut_power()
    assert bench.do(applied_seq, "a") == 1


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_caller_that_is_cancelled_takes_no_other_with_it(bench: Bench, which: int) -> None:
    async def cancelled() -> list[object]:
        tasks = [asyncio.create_task(bench.state.run(applying(each))) for each in SESSIONS]
        await asyncio.sleep(0)
        tasks[which].cancel()
        return list(await asyncio.gather(*tasks, return_exceptions=True))

    results = loop(bench, cancelled())
    assert isinstance(results.pop(which), asyncio.CancelledError)
    assert results == [True, True]
    found = seqs(bench)
    # The first had been started, and a work that waits is taken back.
    assert found == [1, 1, 1] if which == 0 else found.count(1) == 2


class LateWorkers:
    """Workers whose call begins a step later, and never if its caller was cancelled."""

    def __init__(self) -> None:
        self.calls = 0
        self.has_second = asyncio.Event()

    async def run(self, call: Callable[[], T]) -> T:
        self.calls += 1
        if self.calls == 2:
            self.has_second.set()
        await asyncio.sleep(0)
        return call()


def at_once(works: Sequence[Work[str]]) -> None:
    for work in works:
        work.succeed(work.call("call"), lambda: None)


async def cancelled(which: int) -> tuple[list[object], int]:
    """Let four works wait, the second of which leads the others, and cancel one of them."""
    workers = LateWorkers()
    group = CommitGroup(workers, at_once)
    tasks = [asyncio.create_task(group.run(f"{name} {{}}".format)) for name in "abcd"]
    await workers.has_second.wait()
    tasks[which].cancel()
    return list(await asyncio.gather(*tasks, return_exceptions=True)), workers.calls


def test_a_work_that_waits_is_taken_back() -> None:
    called: list[str] = []

    def noting(name: str) -> Callable[[object], None]:
        return lambda _: called.append(name)

    async def work() -> list[object]:
        group = CommitGroup(LateWorkers(), at_once)
        tasks = [asyncio.create_task(group.run(noting(name))) for name in "abc"]
        await asyncio.sleep(0)
        tasks[1].cancel()
        return list(await asyncio.gather(*tasks, return_exceptions=True))

    results = asyncio.run(work())
    assert isinstance(results.pop(1), asyncio.CancelledError)
    assert called == ["a", "c"]


def test_works_are_not_lost_with_the_caller_that_would_have_started_them() -> None:
    (first, second, *others), calls = asyncio.run(cancelled(1))
    assert (first, others, calls) == ("a call", ["c call", "d call"], 3)
    assert isinstance(second, asyncio.CancelledError)


def test_a_caller_that_is_cancelled_waits_for_the_end_of_its_work() -> None:
    (*others, third, fourth), calls = asyncio.run(cancelled(2))
    assert (others, fourth, calls) == (["a call", "b call"], "d call", 2)
    assert isinstance(third, asyncio.CancelledError)


class RefusingWorkers(LateWorkers):
    """Workers that have no thread for their first call."""

    async def run(self, call: Callable[[], T]) -> T:
        if not self.calls:
            self.calls += 1
            raise OSError(errno.EAGAIN, "no thread")
        return await super().run(call)


def test_a_work_for_which_there_was_no_thread_is_not_done_with_the_others() -> None:
    called: list[str] = []

    async def work() -> list[object]:
        group = CommitGroup(RefusingWorkers(), at_once)
        calls = [partial(lambda name, _: called.append(name), name) for name in "ab"]
        return list(await asyncio.gather(*map(group.run, calls), return_exceptions=True))

    refused, done = asyncio.run(work())
    assert isinstance(refused, OSError)
    assert (done, called) == (None, ["b"])


class EarlyWorkers:
    """Workers whose calls end some steps before their caller goes on, as in another thread."""

    async def run(self, call: Callable[[], T]) -> T:
        result = call()
        for _ in range(3):
            await asyncio.sleep(0)
        return result


def test_a_caller_goes_on_behind_the_calls_that_follow_its_commit() -> None:
    noted: list[str] = []
    tasks: list[asyncio.Task[None]] = []

    async def work() -> None:
        async def do(name: str) -> None:
            await group.run(lambda _: name)
            noted.append(f"{name} returned")

        def follow(name: str) -> None:
            noted.append(f"{name} followed")
            if name == "a":
                # It does the works that wait, before the first of their callers is woken.
                tasks.append(asyncio.create_task(do("d")))

        def commit(works: Sequence[Work[str]]) -> None:
            for work in works:
                name = work.call(None)
                work.succeed(name, partial(follow, name))

        group = CommitGroup(EarlyWorkers(), commit)
        tasks.extend(asyncio.create_task(do(name)) for name in "abc")
        await asyncio.gather(*tasks)
        await asyncio.gather(*tasks)

    asyncio.run(work())
    assert len(noted) == 8
    for name in "abcd":
        assert noted.index(f"{name} followed") < noted.index(f"{name} returned")
