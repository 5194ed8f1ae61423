"""Works, functions of a transaction, that wait at the same time share one and its barrier."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar, cast

from system.ports import Workers
from system.storage.shared_call import SharedCall

T = TypeVar("T")

MOST: Final = 256
"""The most works in one transaction."""


class Work(Generic[T]):
    """A call that waits for a transaction, and later its result.

    ``succeed`` or ``fail`` ends it. ``finish`` makes the calls that follow its commit, on the
    event loop.
    """

    __slots__ = ("_failure", "_following", "_value", "call", "is_done")

    def __init__(self, call: Callable[[Any], T]) -> None:
        self.call = call
        self.is_done = False
        self._value: T | None = None
        self._failure: BaseException | None = None
        self._following: Callable[[], None] | None = None

    def succeed(self, value: T, following: Callable[[], None]) -> None:
        """Keep the result of a call whose transaction is durable."""
        self._value, self._following, self.is_done = value, following, True

    def fail(self, failure: BaseException) -> None:
        """Keep the exception of a call that has changed nothing, or whose commit has failed."""
        self._failure, self.is_done = failure, True

    def finish(self) -> None:
        """Make the calls that follow the commit, once."""
        following, self._following = self._following, None
        if following is not None:
            following()

    def result(self) -> T:
        """Return the result, or raise the exception."""
        assert self.is_done
        if self._failure is not None:
            raise self._failure
        return cast("T", self._value)


class CommitGroup:
    """Does works in another thread: all that wait, in one call of ``commit``.

    ``commit`` must call ``succeed`` or ``fail`` of each of them.
    """

    def __init__(self, workers: Workers, commit: Callable[[Sequence[Work[Any]]], None]) -> None:
        self._workers = workers
        self._commit = commit
        self._shared = SharedCall()
        self._waiting: list[Work[Any]] = []

    async def run(self, call: Callable[[Any], T]) -> T:
        """Return the result of ``call`` when its transaction is durable.

        If the caller is cancelled, a transaction that was started still runs to its end.
        """
        work = Work(call)
        self._waiting.append(work)
        try:
            await self._shared.until(lambda: work.is_done, self._commit_waiting)
        except CancelledError:
            await self._leave(work)
            raise
        return work.result()

    async def _commit_waiting(self) -> None:
        """Do the works that wait."""
        batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        try:
            await self._workers.run(lambda: self._commit(batch))
        finally:
            for work in batch:
                work.finish()
            # If this caller was cancelled before the call began, the works of others wait again.
            self._waiting[:0] = [work for work in batch if not work.is_done]

    async def _leave(self, work: Work[Any]) -> None:
        """Take back a work that was not started; wait for the end of one that was."""
        while not work.is_done:
            if work in self._waiting:
                self._waiting.remove(work)
                return
            with suppress(CancelledError):
                # Another caller does the work.
                await self._shared.end()
