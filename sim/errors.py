"""The errors of the simulated machine.

Three kinds reach the code that runs on it: a true ``OSError`` with the errno Linux
would give, the two ``BaseException``s that end a lifetime, and ``HarnessError`` for a
mistake in the use of the harness itself.
"""

from __future__ import annotations

from collections.abc import Sequence


class HarnessError(Exception):
    """The harness was used wrongly, or is itself wrong.

    Cause: an argument that makes no sense, or a promise of the harness that broke.
    Cure: the message names the value; if it was yours, correct it, else report it.
    """


class UnsupportedOperation(HarnessError):
    """The program asked for something that the simulated disk does not model.

    Cause: a call such as a writable ``mmap`` whose crash behaviour would be a guess.
    Cure: use the modelled call that the message names, or run that part on a real disk.
    """


class SimulatedCrash(BaseException):
    """The process died here; raised once, out of the operation that met the crash point.

    It is a ``BaseException`` so that ``except Exception`` in the system under test
    cannot swallow its own death.
    """


class PowerOff(BaseException):
    """A call through the handle of a process that is already dead; nothing was changed."""


class EscapedSimulation(HarnessError):
    """Code inside a simulated world touched the real one: a clock, chance, thread, socket, file.

    Cause: the call that the message names, at the line that it names.
    Cure: go through a port of the host. If the caller is a tool that only watches, report it.
    """


class Stuck(Exception):
    """Nothing in the world can ever run again, and what was awaited has not come.

    Cause: a deadlock, or somebody who never answers, awaited without a timeout.
    Cure: ``waiting`` says where each task stands; ``str`` is one line for each.
    """

    def __init__(self, reason: str, waiting: Sequence[object]) -> None:
        super().__init__("\n  ".join([reason, *map(str, waiting)]))
        self.waiting = tuple(waiting)


class Livelock(Stuck):
    """The world goes round and round: far too many steps in one run, and no end of it.

    Cause: tasks that wake one another, or retry without a pause. Cure: as for ``Stuck``.
    """


class UnhandledFailure(Exception):
    """A task or callback failed, and nobody ever asked for the exception; it is the cause."""
