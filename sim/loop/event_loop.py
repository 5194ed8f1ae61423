"""A deterministic event loop: ordinary asyncio code, in virtual time, in a chosen order.

Which of the handles that are ready runs next is asked of ``Choices`` (``next``; 0 is the
one that has waited longest). Steps of tasks and calls of workers may overtake everything;
plain callbacks keep their order among themselves, because asyncio promises it. When
nothing is ready, the clock jumps to the earliest timer. Steps take no time, unless they
look at the clock.

When a task meets the end of its lifetime, nothing else of that lifetime runs: ``run_*``
raises what ended it. Exceptions that nobody asks for are kept, and never printed.

Left out: threads, sockets, signals, processes, task factories and debug mode.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import _get_running_loop, _set_running_loop
from collections.abc import Awaitable, Callable, Generator
from contextvars import Context, copy_context
from itertools import repeat
from math import isinf
from operator import attrgetter
from typing import Any, Final, TypeVar, TypeVarTuple, cast

from sim.choices import Choices
from sim.errors import (
    HarnessError,
    Livelock,
    PowerOff,
    SimulatedCrash,
    Stuck,
    UnhandledFailure,
    UnsupportedOperation,
)
from sim.loop.abandonment import abandon
from sim.loop.clock import SimulatedClock
from sim.loop.generators import LivingGenerators
from sim.loop.handles import MomentHandle, ReadyHandle, is_free, name_of
from sim.loop.power import AlwaysOn, Power
from sim.loop.refusals import Refusals
from sim.loop.sandbox import SANDBOX
from sim.loop.timers import Timers
from sim.loop.unhandled import Handler, Unhandled, UnhandledFailures, never_asked
from sim.loop.waiting import waiting_of
from sim.trace import Trace

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MOST_STEPS: Final = 1_000_000
"""Handles in one run; a world that needs more goes round in circles."""

_TASKS_KEPT: Final = 64

_DEAD: Final = "this lifetime has ended: nothing of it may run any more"

# The method would count as having asked for the exception.
_failure_of: Final = attrgetter("_exception")


class SimulatedLoop(Refusals):
    """The event loop of one lifetime.

    ``choices`` may be replaced at any time. ``trace``, if set, is told which task or
    callback ran. ``power`` going off ends the run.
    """

    def __init__(self, clock: SimulatedClock, choices: Choices, power: Power | None = None) -> None:
        self._ended = self._running = False
        self.clock = clock
        self.choices = choices
        self.trace: Trace | None = None
        self._power = power or AlwaysOn()
        self._ready: list[ReadyHandle | MomentHandle] = []
        self._timers = Timers()
        # All that live, in the order of their birth: nobody else keeps a task alive, and
        # the garbage collector must not choose the moment at which one disappears.
        self._tasks: list[asyncio.Task[Any]] = []
        self._tasks_made = 0
        self._sweep_at = _TASKS_KEPT
        self._generators = LivingGenerators(self)
        self._handler: Handler | None = None
        self._failures = UnhandledFailures()

    # -- running -------------------------------------------------------------------------

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        """Run until ``future`` (or a task made of the coroutine) is done; return its result.

        What else is ready then waits for the next run. Raises what it raises, ``Stuck``
        when it can never be done, ``SimulatedCrash`` or ``PowerOff`` when the lifetime ends.
        """
        self._must_live()
        task = self.create_task(_result_of(future))
        if not self._run(task, None):
            reason = f"stuck: nothing is ready, no timer is set, and {task.get_name()} is not done"
            raise Stuck(reason, waiting_of(self._living()))
        try:
            return cast("T", task.result())
        finally:
            # A failure knows this frame, which must not know who keeps the failure.
            del task

    def run_until_idle(self, until_ns: int | None = None) -> None:
        """Run until nothing is ready and no timer is due up to ``until_ns`` (virtual, monotonic).

        The clock is left at the last timer that was due, not at ``until_ns``; without
        ``until_ns`` it does not jump at all. Raises what ends the lifetime.
        """
        self._must_live()
        self._run(None, self.clock.now_ns if until_ns is None else until_ns)

    def advance(self, delay_ns: int) -> None:
        """Let ``delay_ns`` of virtual time pass, with all that is due in it; end at that moment."""
        moment_ns = self.clock.now_ns + delay_ns
        self.run_until_idle(moment_ns)
        self.clock.advance_to(moment_ns)

    def _run(self, until: asyncio.Task[Any] | None, limit_ns: int | None) -> bool:
        """Run handles; return whether ``until`` was done before the world was idle.

        ``limit_ns`` is how far the clock may jump, None for as far as it likes.
        """
        if _get_running_loop() is not None:
            raise HarnessError("an event loop is running already: a world cannot run inside it")
        hooks = sys.get_asyncgen_hooks()
        self._running = True
        try:
            _set_running_loop(self)
            sys.set_asyncgen_hooks(self._generators.started, self._generators.dropped)
            with SANDBOX:
                return self._steps(until, limit_ns)
        finally:
            sys.set_asyncgen_hooks(*hooks)
            _set_running_loop(None)
            self._running = False

    def _steps(self, until: asyncio.Task[Any] | None, limit_ns: int | None) -> bool:
        ready, timers, clock, power, trace = (
            self._ready, self._timers.heap, self.clock, self._power, self.trace,
        )  # fmt: skip
        task_type = asyncio.Task
        for _ in repeat(None, MOST_STEPS):
            if timers and timers[0][0] <= clock.now_ns:
                ready.extend(self._timers.due(clock.now_ns))
            waiting = len(ready)
            if waiting > 1:
                handle = ready.pop(self._next(waiting))
            elif waiting:
                handle = ready.pop()
            elif self._jump(limit_ns):
                continue
            else:
                return False
            callback = handle.callback
            if callback is None:
                continue
            if trace is not None:
                trace.add(f"  run {name_of(callback)}")
            try:
                handle.context.run(callback, *handle.args)
            except Exception as failure:
                if isinstance(failure, HarnessError):
                    raise
                self.call_exception_handler({"message": "a callback failed", "exception": failure})
            owner = getattr(callback, "__self__", None)
            done = type(owner) is task_type and owner.done() and self._survived(owner)
            if power.off:
                raise SimulatedCrash(_DEAD)
            if done is until:
                return True
        raise Livelock(
            f"livelock: {MOST_STEPS} steps in one run, at now_ns={clock.now_ns}",
            waiting_of(self._living()),
        )

    def _next(self, waiting: int) -> int:
        """Return the position of the ready handle that runs next."""
        index = self.choices.integer("next", 0, waiting - 1)
        ready = self._ready
        if index and not is_free(ready[index]):
            return next(at for at in range(index + 1) if not is_free(ready[at]))
        return index

    def _survived(self, task: asyncio.Task[Any]) -> asyncio.Task[Any]:
        """Return a task that is done, or raise what it ended with if nothing may outlive that.

        asyncio keeps such an exception for whoever awaits the task, and goes on.
        """
        failure = _failure_of(task)
        if not (failure is None or isinstance(failure, Exception | asyncio.CancelledError)):
            task.exception()
            raise failure
        return task

    # -- time ----------------------------------------------------------------------------

    def time(self) -> float:
        """Return the virtual monotonic time in seconds; looking at it does not move it."""
        return self.clock.now_ns / 1e9

    def _jump(self, limit_ns: int | None) -> bool:
        """Move the clock to the earliest timer; False if there is none up to ``limit_ns``."""
        moment_ns = self._timers.earliest_ns()
        if moment_ns is None or (limit_ns is not None and moment_ns > limit_ns):
            return False
        self.clock.advance_to(moment_ns)
        return True

    # -- what asyncio calls --------------------------------------------------------------

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> ReadyHandle:
        """Make a call ready; after the end of the lifetime nothing runs it."""
        handle = ReadyHandle(callback, args, copy_context() if context is None else context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> ReadyHandle:
        """Make a call ready; there is only one thread."""
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> MomentHandle:
        """Call after ``delay`` seconds."""
        return self._set_timer(delay, self.clock.now_ns, callback, args, context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> MomentHandle:
        """Call when ``time()`` is ``when`` (seconds)."""
        return self._set_timer(when, 0, callback, args, context)

    def _set_timer(
        self,
        seconds: float,
        from_ns: int,
        callback: Any,
        args: tuple[Any, ...],
        context: Context | None,
    ) -> MomentHandle:
        kept = copy_context() if context is None else context
        if isinf(seconds):
            return MomentHandle(from_ns, callback, args, kept)
        moment_ns = from_ns + max(0, round(seconds * 1e9))
        handle = MomentHandle(moment_ns, callback, args, kept)
        self._timers.set(handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        """Return a new future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Any,
        *,
        name: object = None,
        context: Context | None = None,
        **options: object,
    ) -> asyncio.Task[Any]:
        """Return a new task, called ``Task-<n>`` if nothing is said; ``PowerOff`` after the end."""
        if self._ended:
            coro.close()
            raise PowerOff(_DEAD)
        if options:
            raise UnsupportedOperation(f"create_task({', '.join(options)}=...) is not simulated")
        self._tasks_made += 1
        task: asyncio.Task[Any] = asyncio.Task(
            coro,
            loop=self,
            name=f"Task-{self._tasks_made}" if name is None else str(name),
            context=context,
        )
        self._tasks.append(task)
        if len(self._tasks) > self._sweep_at:
            self._tasks = [task for task in self._tasks if not task.done() or never_asked(task)]
            self._sweep_at = 2 * len(self._tasks) + _TASKS_KEPT
        return task

    def is_running(self) -> bool:
        """Say whether a run is under way."""
        return self._running

    async def shutdown_asyncgens(self) -> None:
        """Close every asynchronous generator that is still suspended."""
        for generator in self._generators.living():
            await generator.aclose()

    # -- failures that reach nobody ------------------------------------------------------

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep a failure, or hand it to the handler that was set."""
        if self._ended:
            return
        if self._handler is not None:
            self._handler(self, context)
        else:
            self.default_exception_handler(context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep a failure for ``unhandled``."""
        self._failures.keep(context)

    def set_exception_handler(self, handler: Handler | None) -> None:
        """Have failures handed to ``handler``, or kept again."""
        self._handler = handler

    def get_exception_handler(self) -> Handler | None:
        """Return the handler that was set."""
        return self._handler

    def unhandled(self) -> tuple[Unhandled, ...]:
        """Return the failures that reached nobody, those of tasks that ended included; once."""
        return self._failures.take(self._tasks, self._ready)

    def raise_unhandled(self) -> None:
        """Raise ``UnhandledFailure`` for the first of them."""
        for first in self.unhandled():
            raise UnhandledFailure(str(first)) from first.failure

    # -- the end -------------------------------------------------------------------------

    def abandon(self) -> None:
        """End the lifetime: nothing of it runs again, and nothing of it is printed.

        Clean-up code of suspended coroutines runs now, up to its first ``await`` that
        waits; what it asks of this loop is dropped, and the ports are expected to be dead.
        """
        if self._running:
            raise HarnessError("a lifetime cannot be ended from inside its own event loop")
        self._ended = True
        tasks, self._tasks = self._living(), []
        generators = self._generators.end()
        if tasks or generators:
            running = _get_running_loop()
            _set_running_loop(self)
            try:
                with SANDBOX:
                    abandon(tasks, generators)
            finally:
                _set_running_loop(running)
        self._ready.clear()
        self._timers.clear()
        self._failures.clear()

    def close(self) -> None:
        """End the lifetime as ``abandon`` does; an orderly end has left nothing to drop."""
        if not self._ended:
            self.abandon()

    def __del__(self) -> None:
        # A world that a failure left standing goes as silently as one that was ended.
        if not (self._ended or self._running):
            self.abandon()

    def is_closed(self) -> bool:
        """Say whether the lifetime has ended."""
        return self._ended

    def _living(self) -> list[asyncio.Task[Any]]:
        return [task for task in self._tasks if not task.done()]

    def _must_live(self) -> None:
        if self._ended:
            raise HarnessError(f"{_DEAD}; boot the world again")
        if self._power.off:
            raise PowerOff(_DEAD)


async def _result_of(awaited: Any) -> Any:
    return await awaited
