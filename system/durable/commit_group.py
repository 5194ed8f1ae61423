"""A group of works: those that wait at the same time share one transaction and its barrier.

A work is a function of a transaction.
"""

from __future__ import annotations

from asyncio import CancelledError, Future, get_running_loop
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar, cast

from system.ports import Workers

T = TypeVar("T")

MOST: Final = 1024
"""The most works in one transaction."""


class Work(Generic[T]):
    """A call that waits for a transaction, and later its result.

    ``succeed`` or ``fail`` is called where the transaction runs, the other methods on the event
    loop. ``is_done`` is set there too, by ``finish``, so that no caller goes on too early.
    """

    __slots__ = ("_failure", "_following", "_has_ended", "_value", "_woken", "call", "is_done")

    def __init__(self, call: Callable[[Any], T]) -> None:
        self.call = call
        self.is_done = False
        self._has_ended = False
        self._value: T | None = None
        self._failure: BaseException | None = None
        self._following: Callable[[], None] | None = None
        self._woken: Future[None] | None = None

    def succeed(self, value: T, following: Callable[[], None]) -> None:
        """Keep the result of a call whose transaction is durable."""
        self._value, self._following, self._has_ended = value, following, True

    def fail(self, failure: BaseException) -> None:
        """Keep the exception of a call that has changed nothing, or whose commit has failed."""
        self._failure, self._has_ended = failure, True

    async def wait(self) -> None:
        """Wait for ``wake``."""
        self._woken = get_running_loop().create_future()
        await self._woken

    def wake(self) -> None:
        """Wake the caller, if it waits: its work is done, or it is to do those that wait."""
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def finish(self) -> None:
        """Make the calls that follow the commit, and wake the caller; nothing if it never ran."""
        if not self._has_ended:
            return
        following, self._following = self._following, None
        if following is not None:
            following()
        self.is_done = True
        self.wake()

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
        self._is_committing = False
        self._waiting: list[Work[Any]] = []

    async def run(self, call: Callable[[Any], T]) -> T:
        """Return the result of ``call`` when its transaction is durable.

        If the caller is cancelled, a transaction that was started still runs to its end. Raises
        ``OSError`` if no thread can be started for it; then the work is not done.
        """
        work = Work(call)
        self._waiting.append(work)
        try:
            while not work.is_done:
                if self._is_committing:
                    await work.wait()
                else:
                    await self._commit_waiting()
        except (CancelledError, OSError):
            await self._leave(work)
            raise
        return work.result()

    async def _commit_waiting(self) -> None:
        """Do the works that wait, and let the caller of one of those that come meanwhile go on."""
        self._is_committing = True
        batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        try:
            await self._workers.run(lambda: self._commit(batch))
        finally:
            self._is_committing = False
            for work in batch:
                work.finish()
            # If the call has not begun, the works of others wait again.
            self._waiting[:0] = [work for work in batch if not work.is_done]
            self._wake_first()

    def _wake_first(self) -> None:
        if self._waiting and not self._is_committing:
            self._waiting[0].wake()

    async def _leave(self, work: Work[Any]) -> None:
        """Take back a work that was not started; wait for the end of one that was."""
        while not work.is_done:
            if work in self._waiting:
                self._waiting.remove(work)
                self._wake_first()
                return
            with suppress(CancelledError):
                # Another caller does the work.
                await work.wait()
