"""Places: lines of the program under test, found on the stack of a call.

The program is everything outside the engine and outside the standard library: an operation
that ``pathlib`` carries out belongs to the line that called ``pathlib``.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Collection
from types import CodeType, FrameType, TracebackType
from typing import Final, NamedTuple

from sim.errors import HarnessError

_FOLDERS: Final = (
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
    os.path.dirname(
        os.path.dirname(os.path.abspath(str(sys.modules[HarnessError.__module__].__file__)))
    ),
)
"""The folders around ``powercut`` and ``sim``: equal in a checkout, not in an installed wheel."""

ENGINE: Final = tuple(
    os.path.join(folder, name) + os.sep
    for folder in dict.fromkeys(_FOLDERS)
    for name in ("sim", "faults", "oracles", "powercut")
)
"""The folders of the engine's packages."""

_PATHS: Final = sysconfig.get_paths()
_PACKAGES: Final = tuple({_PATHS[name] + os.sep for name in ("purelib", "platlib")})
_LIBRARY: Final = tuple({_PATHS[name] + os.sep for name in ("stdlib", "platstdlib")})


class Place(NamedTuple):
    """A line of the program.

    ``file`` is a path relative to the current directory or to the folder that the package is
    installed in; ``function`` includes the name of its class.
    """

    file: str
    function: str
    line: int

    @property
    def where(self) -> str:
        """File and line, as in ``app.py:31``."""
        return f"{self.file}:{self.line}"

    def __str__(self) -> str:
        return f"{self.where} {self.function}"


class Stack:
    """Finds the innermost place of the program on the stack; remembers each line of code.

    ``adapters`` are source files that are no part of the program.
    """

    def __init__(self, adapters: Collection[str] = ()) -> None:
        # The program may change its directory, also to one that is not of this machine.
        self._folders = (*_PACKAGES, *_current_folder())
        self._places: dict[tuple[CodeType, int], Place] = {}
        self._is_program: dict[str, bool] = dict.fromkeys(adapters, False)

    def place(self, frame: FrameType | None) -> Place | None:
        """Return the innermost place of the program from ``frame`` outwards, or None."""
        known = self._is_program
        while frame is not None:
            file = frame.f_code.co_filename
            belongs = known.get(file)
            if belongs is None:
                belongs = known[file] = is_program(file)
            if belongs:
                return self._place_of(frame.f_code, frame.f_lineno)
            frame = frame.f_back
        return None

    def raised_at(self, trace: TracebackType | None) -> Place | None:
        """Return the innermost place of the program in a traceback, or None."""
        found = None
        while trace is not None:
            code = trace.tb_frame.f_code
            if is_program(code.co_filename) and not _is_generated(code):
                found = self._place_of(code, trace.tb_lineno)
            trace = trace.tb_next
        return found

    def defined_at(self, function: Callable[..., object]) -> Place | None:
        """Return the first line of a function or method, None if it is not written in Python."""
        code = code_of(function)
        return None if code is None else self._place_of(code, code.co_firstlineno)

    def _place_of(self, code: CodeType, line: int) -> Place:
        found = self._places.get((code, line))
        if found is None:
            found = Place(self._short(code.co_filename), code.co_qualname, line)
            self._places[code, line] = found
        return found

    def _short(self, file: str) -> str:
        """Return the path of a file as a report prints it, without the folders of this machine."""
        for folder in self._folders:
            if file.startswith(folder):
                return file[len(folder) :]
        return file


def raised_at(trace: TracebackType | None) -> str:
    """Return the innermost place of the program in a traceback, as the end of a sentence."""
    return _end_of_sentence(Stack().raised_at(trace))


def running_at(frame: FrameType | None) -> str:
    """Return the innermost place of the program on the stack, as the end of a sentence."""
    return _end_of_sentence(Stack().place(frame))


def _end_of_sentence(place: Place | None) -> str:
    return "" if place is None else f", at {place.where} in {place.function}"


def defined_at(function: Callable[..., object]) -> str:
    """Return the first line of a function or class, as the end of a sentence."""
    if isinstance(function, type):
        function = getattr(function, "__init__", function)
    place = Stack().defined_at(function)
    return "" if place is None else f"; see {place.where}, {place.function}"


def is_program(file: str) -> bool:
    """Return whether a source file is part of the program, and not of engine or Python."""
    if file.startswith(_PACKAGES):
        return not file.startswith(ENGINE)
    return not file.startswith(("<frozen ", *ENGINE, *_LIBRARY))


def _is_generated(code: CodeType) -> bool:
    """Return whether Python has generated this function, for a named tuple or a dataclass."""
    is_of_class = code.co_name == "<lambda>" or code.co_qualname.startswith("__create_fn__.")
    return code.co_filename == "<string>" and is_of_class


def code_of(function: Callable[..., object]) -> CodeType | None:
    """Return the code of a function or method, None if it is not written in Python."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, CodeType) else None


def _current_folder() -> tuple[str, ...]:
    try:
        return (os.getcwd() + os.sep,)
    except OSError:
        return ()
