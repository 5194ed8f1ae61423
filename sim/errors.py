"""The errors of the simulated machine.

Three kinds reach the code that runs on it: a true ``OSError`` with the errno Linux
would give, the two ``BaseException``s that end a lifetime, and ``HarnessError`` for a
mistake in the use of the harness itself.
"""


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
