"""The watch over the steps of a campaign: one that does not end is a mistake with its place.

The campaign tests its deadline between two steps, and would wait for ever for an endless loop
or a deadlock of a target. A thread looks every second whether the steps go on. After 20 seconds
it interrupts the step as Ctrl-C would; code that catches every exception, or does not return to
Python, ends with its process.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from powercut.fuzz.target_mistake import TargetMistake
from powercut.place import Stack
from sim.loop.sandbox import SANDBOX

SECONDS: Final = 20
"""The time of one step, with its crashes, recoveries and checks; mostly it takes milliseconds."""

_INTERRUPTS: Final = 5
"""The interrupts, one a second, after which the process is ended."""

_TICK_SECONDS: Final = 1.0
_STATUS: Final = 2
_DEBUGGERS: Final = frozenset({"bdb", "pdb"})


class StepHangs(TargetMistake):
    """A step of a target does not end.

    Cause: an endless loop, or a lock that is never released. Cure: end the loop or the wait.
    """


class _StepInterrupt(KeyboardInterrupt):
    """Raised in a step that does not end; every layer lets a ``KeyboardInterrupt`` pass."""


class StepWatch:
    """Interrupts a step that does not end; ``steps`` is increased before each one."""

    def __init__(self) -> None:
        self.steps = 0
        self._sentence = ""

    @contextmanager
    def watching(self, tag: str) -> Iterator[None]:
        """Watch the steps of the target ``tag`` in the block; raise ``StepHangs`` after it.

        It does nothing outside of the main thread, which alone receives signals.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._sentence = ""
        over = threading.Event()
        watch = threading.Thread(target=self._watch, args=(tag, over), daemon=True)
        # By default this signal is ignored, so that one that comes late does no harm.
        before = signal.signal(signal.SIGURG, self._interrupt)
        watch.start()
        try:
            with SANDBOX.interruptible():
                yield
        except _StepInterrupt:
            pass
        finally:
            sentence, self._sentence = self._sentence, ""
            over.set()
            watch.join()
            signal.signal(signal.SIGURG, before)
        if sentence:
            raise StepHangs(sentence)

    def _watch(self, tag: str, over: threading.Event) -> None:
        """Count seconds without a new step. A stopped process, or a debugger, counts as none."""
        main = threading.main_thread().ident
        assert main is not None
        seen, ticks = self.steps, 0
        while not over.wait(_TICK_SECONDS):
            frame = vars(sys)["_current_frames"]().get(main)
            if seen != self.steps or _is_debugged(frame):
                seen, ticks = self.steps, 0
                continue
            ticks += 1
            late = ticks - SECONDS
            if late < 0:
                continue
            if not late:
                place = Stack().place(frame)
                at = "" if place is None else f"; it is at {place.where} in {place.function}"
                self._sentence = (
                    f"a step of target {tag!r} did not end within {SECONDS:g} s{at}; end the loop "
                    "or the wait"
                )
            if late == _INTERRUPTS:
                os.write(2, f"Error: {self._sentence}\n".encode(errors="replace"))
                os._exit(_STATUS)
            signal.pthread_kill(main, signal.SIGURG)

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self._sentence:
            raise _StepInterrupt


def _is_debugged(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__") in _DEBUGGERS:
            return True
        frame = frame.f_back
    return False


WATCH: Final = StepWatch()
"""The watch of this process."""
