"""A deterministic event loop: ordinary asyncio code in virtual time, in a chosen order.

``Choices`` decides which of the ready calls runs next (label ``next``; 0 is the one that has
waited longest). Steps of tasks and calls of workers may overtake all others; plain callbacks
keep their order among themselves, as asyncio guarantees. When nothing is ready, the clock
advances to the earliest timer. A step takes no time unless it reads the clock.

When a task meets the end of its lifetime, nothing else of that lifetime runs: ``run_*``
raises the exception that ended it. Exceptions that are never retrieved are collected, and
never printed.

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
from typing import Any, Final, Protocol, TypeAlias, TypeVar, TypeVarTuple, cast

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
from sim.loop.abandonment import LiveGenerators, abandon
from sim.loop.clock import SimulatedClock
from sim.loop.handles import ReadyHandle, TimedHandle, Timers, may_overtake, name_of
from sim.loop.refusals import RefusingLoop
from sim.loop.sandbox import SANDBOX
from sim.loop.task_reports import Unhandled, UnhandledFailures, never_retrieved, waiting_of
from sim.trace import Trace

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

Handler: TypeAlias = Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object]

MAX_STEPS: Final = 1_000_000
"""The steps of one run after which it counts as a livelock."""

_TASKS_KEPT: Final = 64
_ENDED: Final = "this lifetime has ended: nothing of it may run any more"

# Task.exception() would mark the exception as retrieved.
_failure_of: Final = attrgetter("_exception")


class Power(Protocol):
    """The power supply of a lifetime, such as a ``Disk``; ``off`` means that it has ended."""

    @property
    def off(self) -> bool: ...


class AlwaysOn:
    """The power supply of a loop without a machine."""

    off = False


class SimulatedLoop(RefusingLoop):
    """The event loop of one lifetime.

    ``choices`` may be replaced at any time. ``trace``, if set, receives the name of each
    task or callback that runs. When ``power`` goes off, the run ends.
    """

    def __init__(self, clock: SimulatedClock, choices: Choices, power: Power | None = None) -> None:
        self._ended = self._running = False
        self.clock = clock
        self.choices = choices
        self.trace: Trace | None = None
        self._power = power or AlwaysOn()
        self._ready: list[ReadyHandle | TimedHandle] = []
        self._timers = Timers()
        # All live tasks, in the order of their creation. The loop holds them, so that the
        # garbage collector does not choose the moment at which one disappears.
        self._tasks: list[asyncio.Task[Any]] = []
        self._tasks_made = 0
        self._sweep_at = _TASKS_KEPT
        self._generators = LiveGenerators(self)
        self._handler: Handler | None = None
        self._failures = UnhandledFailures()

    # -- running -------------------------------------------------------------------------

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        """Run until ``future`` is done and return its result; its exceptions pass through.

        Other calls that are ready then wait for the next run. Raises ``Stuck`` when it can
        never be done, ``SimulatedCrash`` or ``PowerOff`` when the lifetime ends.
        """
        self._check_alive()
        task = self.create_task(_result_of(future))
        if not self._run(task, None):
            reason = f"stuck: nothing is ready, no timer is set, and {task.get_name()} is not done"
            raise Stuck(reason, waiting_of(self._live_tasks()))
        try:
            return cast("T", task.result())
        finally:
            # The failure refers to this frame, which must not refer back to it.
            del task

    def run_until_idle(self, until_ns: int | None = None) -> None:
        """Run until nothing is ready and no timer is due up to ``until_ns`` (virtual, monotonic).

        The clock is left at the last timer that was due, not at ``until_ns``; without
        ``until_ns`` it is not advanced. Raises ``SimulatedCrash`` or ``PowerOff`` when the
        lifetime ends.
        """
        self._check_alive()
        self._run(None, self.clock.now_ns if until_ns is None else until_ns)

    def advance(self, delay_ns: int) -> None:
        """Advance the clock by ``delay_ns`` and run everything that becomes due meanwhile."""
        moment_ns = self.clock.now_ns + delay_ns
        self.run_until_idle(moment_ns)
        self.clock.advance_to(moment_ns)

    def _run(self, until: asyncio.Task[Any] | None, limit_ns: int | None) -> bool:
        """Run ready calls; return whether ``until`` was done before nothing was ready.

        The clock is advanced up to ``limit_ns``, or without limit if that is None.
        """
        if _get_running_loop() is not None:
            raise HarnessError("an event loop is running already: a world cannot run inside it")
        hooks = sys.get_asyncgen_hooks()
        self._running = True
        try:
            _set_running_loop(self)
            sys.set_asyncgen_hooks(self._generators.started, self._generators.dropped)
            with SANDBOX.interruptible(), SANDBOX:
                return self._steps(until, limit_ns)
        finally:
            sys.set_asyncgen_hooks(*hooks)
            _set_running_loop(None)
            self._running = False
            del until  # as in ``_steps``

    def _steps(self, until: asyncio.Task[Any] | None, limit_ns: int | None) -> bool:
        ready, timers, clock, power, trace, task_type = (
            self._ready, self._timers.heap, self.clock, self._power, self.trace, asyncio.Task,
        )  # fmt: skip
        for _ in repeat(None, MAX_STEPS):
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
                raise SimulatedCrash(_ENDED)
            if done is until:
                # From Python 3.13 on a failure of the task refers to this frame.
                del handle, callback, owner, done, until
                return True
        reason = f"livelock: {MAX_STEPS} steps in one run, at now_ns={clock.now_ns}"
        raise Livelock(reason, waiting_of(self._live_tasks()))

    def _next(self, waiting: int) -> int:
        """Return the position of the ready handle that runs next."""
        index = self.choices.integer("next", 0, waiting - 1)
        ready = self._ready
        if index and not may_overtake(ready[index]):
            return next(at for at in range(index + 1) if not may_overtake(ready[at]))
        return index

    def _survived(self, task: asyncio.Task[Any]) -> asyncio.Task[Any]:
        """Return a task that is done, or raise the exception that ends its lifetime.

        asyncio would store a ``BaseException`` in the task and go on.
        """
        failure = _failure_of(task)
        if not (failure is None or isinstance(failure, Exception | asyncio.CancelledError)):
            task.exception()
            raise failure
        return task

    # -- time ----------------------------------------------------------------------------

    def time(self) -> float:
        """Return the virtual monotonic time in seconds, without advancing it."""
        return self.clock.now_ns / 1e9

    def _jump(self, limit_ns: int | None) -> bool:
        """Advance the clock to the earliest timer; False if there is none up to ``limit_ns``."""
        moment_ns = self._timers.earliest_ns()
        if moment_ns is None or (limit_ns is not None and moment_ns > limit_ns):
            return False
        self.clock.advance_to(moment_ns)
        return True

    # -- the interface of asyncio ------------------------------------------------------

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> ReadyHandle:
        """Make a call ready; it never runs if the lifetime ends first."""
        handle = ReadyHandle(callback, args, copy_context() if context is None else context)
        self._ready.append(handle)
        return handle

    # There is only one thread.
    call_soon_threadsafe = call_soon

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> TimedHandle:
        """Call after ``delay`` seconds."""
        return self._set_timer(delay, self.clock.now_ns, callback, args, context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> TimedHandle:
        """Call when ``time()`` is ``when`` (seconds)."""
        return self._set_timer(when, 0, callback, args, context)

    def _set_timer(
        self,
        seconds: float,
        from_ns: int,
        callback: Any,
        args: tuple[Any, ...],
        context: Context | None,
    ) -> TimedHandle:
        kept = copy_context() if context is None else context
        if isinf(seconds):
            return TimedHandle(from_ns, callback, args, kept)
        moment_ns = from_ns + max(0, round(seconds * 1e9))
        handle = TimedHandle(moment_ns, callback, args, kept)
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
        """Return a new task, named ``Task-<n>`` by default.

        Raises ``PowerOff`` after the end of the lifetime.
        """
        if self._ended:
            coro.close()
            raise PowerOff(_ENDED)
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
            self._tasks = [task for task in self._tasks if not task.done() or never_retrieved(task)]
            self._sweep_at = 2 * len(self._tasks) + _TASKS_KEPT
        return task

    def is_running(self) -> bool:
        """Return whether a run is in progress."""
        return self._running

    async def shutdown_asyncgens(self) -> None:
        """Close every asynchronous generator that is still suspended."""
        for generator in self._generators.live():
            await generator.aclose()

    # -- failures that are never retrieved -----------------------------------------------

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Pass a failure to the handler that was set, or collect it for ``unhandled``."""
        if self._ended:
            return
        if self._handler is not None:
            self._handler(self, context)
        else:
            self.default_exception_handler(context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Collect a failure for ``unhandled``."""
        self._failures.add(context)

    def set_exception_handler(self, handler: Handler | None) -> None:
        """Pass failures to ``handler``; None collects them for ``unhandled``."""
        self._handler = handler

    def get_exception_handler(self) -> Handler | None:
        """Return the handler that was set."""
        return self._handler

    def unhandled(self) -> tuple[Unhandled, ...]:
        """Return the failures that were never retrieved since the last call."""
        return self._failures.take(self._tasks, self._ready)

    def raise_unhandled(self) -> None:
        """Raise ``UnhandledFailure`` for the first failure of ``unhandled``, if there is one."""
        for first in self.unhandled():
            raise UnhandledFailure(str(first)) from first.failure

    # -- the end -------------------------------------------------------------------------

    def abandon(self) -> None:
        """End the lifetime: nothing of it runs again, and nothing of it is printed.

        Clean-up code of suspended coroutines runs now, up to its first ``await`` that
        suspends; its calls of this loop have no effect, and the ports must be off already.
        """
        if self._running:
            raise HarnessError("a lifetime cannot be ended from inside its own event loop")
        self._ended = True
        tasks, self._tasks = self._live_tasks(), []
        generators = self._generators.end()
        if tasks or generators:
            running = _get_running_loop()
            _set_running_loop(self)
            try:
                with SANDBOX.interruptible(), SANDBOX:
                    abandon(tasks, generators)
            finally:
                _set_running_loop(running)
        self._ready.clear()
        self._timers.clear()
        self._failures.clear()

    def close(self) -> None:
        """End the lifetime as ``abandon`` does; do nothing if it has ended."""
        if not self._ended:
            self.abandon()

    def __del__(self) -> None:
        # A world that was never ended, because a test failed, is as silent as one that was.
        if not (self._ended or self._running):
            self.abandon()

    def is_closed(self) -> bool:
        """Return whether the lifetime has ended."""
        return self._ended

    def _live_tasks(self) -> list[asyncio.Task[Any]]:
        return [task for task in self._tasks if not task.done()]

    def _check_alive(self) -> None:
        if self._ended:
            raise HarnessError(f"{_ENDED}; boot the world again")
        if self._power.off:
            raise PowerOff(_ENDED)


async def _result_of(awaited: Any) -> Any:
    return await awaited
