"""The errors of the simulated machine.

A program on it meets true ``OSError``s with the errno of Linux, two ``BaseException``s that
end a lifetime, and ``HarnessError`` for a mistake in the use of the harness.
"""

from __future__ import annotations

from collections.abc import Sequence
from traceback import walk_tb
from typing import Final

_ENGINE: Final = {"powercut", "hypothesis", __name__.partition(".")[0]}
"""The packages whose exceptions are never those of the system; this one is in powercut or not."""


class HarnessError(Exception):
    """The harness was used wrongly, or is itself wrong.

    Cause: an invalid argument, or a broken internal invariant.
    Cure: the message names the value; correct it if it is yours, else report it.
    """


class UnsupportedOperation(HarnessError):
    """The program made a call that the simulated machine does not model.

    Cause: a call such as a writable ``mmap``, whose crash behaviour would be a guess.
    Cure: use the modelled call that the message names, or run that part on a real disk.
    """


class SimulatedCrash(BaseException):
    """The process crashed here; raised once, by the operation at the crash point.

    A ``BaseException``, so that ``except Exception`` in the system under test does not
    swallow it.
    """


class PowerOff(BaseException):
    """A call by a process that has ended already; nothing was changed."""


class NeedsWholeImage(BaseException):
    """A boot asked for something that only a whole crash image has.

    The lazy engine raises it, and leaves the exploration to the one that builds images. It is
    a ``BaseException``, so that ``except Exception`` in the system under test does not swallow
    it.
    """


class EscapedSimulation(HarnessError):
    """Code in a simulated world used the real clock, chance, threads, sockets, files or terminal.

    Cause: the call and the line that the message names.
    Cure: use the interfaces of the ``Boot``. If the caller is a tool that only observes, report it.
    """


class Stuck(Exception):
    """No task can ever run again, and the awaited result has not come.

    Cause: a deadlock, or an answer that never comes and is awaited without a timeout.
    Cure: ``waiting`` has the place of each task; ``str`` prints one line for each.
    """

    def __init__(self, reason: str, waiting: Sequence[object]) -> None:
        super().__init__("\n  ".join([reason, *map(str, waiting)]))
        self.waiting = tuple(waiting)


class Livelock(Stuck):
    """One run of the event loop took more steps than any finite one needs.

    Cause: tasks that wake one another, or retry without a pause. Cure: as for ``Stuck``.
    """


class UnhandledFailure(Exception):
    """A task or callback failed, and its exception was never retrieved; it is the cause."""


def is_of_program(error: BaseException) -> bool:
    """Return whether the system under test has raised an exception, of any class.

    The others are those of the engine and of Hypothesis, ``KeyboardInterrupt``, ``GeneratorExit``,
    that of ``pytest.skip``, and the one that pytest-timeout raises in the code that is running.
    """
    if isinstance(error, Exception):
        return not isinstance(error, HarnessError)
    if isinstance(error, BaseExceptionGroup):
        return all(is_of_program(each) for each in error.exceptions)
    if isinstance(error, KeyboardInterrupt | GeneratorExit) or type(error).__name__ == "Skipped":
        return False
    frames = (frame for frame, _ in walk_tb(error.__traceback__))
    ends_test = any(frame.f_globals.get("__name__") == "pytest_timeout" for frame in frames)
    return not ends_test and type(error).__module__.partition(".")[0] not in _ENGINE


def described(error: BaseException) -> str:
    """Return the class and the text of an exception, as the last line of a traceback has them."""
    return f"{class_of(error)}: {text_of(error)}".removesuffix(": ")


def class_of(error: BaseException) -> str:
    """Return the name of the class of an exception, with its module as in a traceback.

    Several modules, such as ``struct`` and ``zlib``, have a class that is named ``error``. A class
    of the engine is known without its module.
    """
    kind = type(error)
    is_known = kind.__module__.partition(".")[0] in {"builtins", "__main__", *_ENGINE}
    return kind.__qualname__ if is_known else f"{kind.__module__}.{kind.__qualname__}"


def text_of(error: BaseException) -> str:
    """Return the text of an exception; its ``__str__`` may raise another one."""
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001 - the system may raise any
        return f"its text is not known, because __str__ raises {type(failure).__name__}"
