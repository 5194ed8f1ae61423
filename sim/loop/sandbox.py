"""The sandbox around a simulated world: code inside that uses the real one is stopped.

The one file that patches. While the sandbox is active, in the thread that entered it:

- **names** are replaced: the clocks of ``time``, ``datetime.now`` and its kind, the module
  functions of ``random``, an unseeded ``random.Random``, ``os.urandom``, ``uuid``,
  ``secrets``, ``os.stat`` and its kind, ``os._exit``; in their own modules, and in every
  module outside of the standard library that has imported them under a name of its own;
- **audit events** (PEP 578) are refused: opening and changing files, sockets, threads,
  processes. CPython raises them however the call was reached. The hook cannot be removed;
  it does nothing while the sandbox is inactive.

Allowed callers are tools that observe from inside (Hypothesis, coverage, pytest, a debugger),
and the parts of Python that read source code or date a log record. The innermost caller
outside of the standard library decides.

Left out: calls made by C extensions, and an original stored anywhere but in a module's
global name (a default argument, a list, a closure) before the sandbox was first active.
"""

from __future__ import annotations

import _thread
import datetime as dt
import os
import random
import secrets
import sys
import sysconfig
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from operator import ior
from sys import _getframe
from types import FrameType, ModuleType, TracebackType
from typing import Any, Final

from sim.errors import EscapedSimulation
from sim.loop.guarded_names import (
    CHANCE,
    CLOCKS,
    DISPLAYS,
    ENDS,
    EVENTS,
    ROUTED,
    SECRETS,
    SYSTEM,
    THREADS,
    TOOLS,
    WATCHERS,
)

_PYTHON: Final = sys.stdlib_module_names
_LIBRARIES: Final = tuple(sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib"))
_ENDING_CALLS: Final = tuple(f"os.{name}" for name in ENDS)
_CALL_OF_A_LIBRARY: Final = (
    "call the library when your module is loaded, or pass it seeds and times that are drawn from "
    "the choices of propose"
)
_PASSING: Final[set[str]] = set()


class Sandbox:
    """A reusable, nestable context manager; leaving it raises an escape that was swallowed.

    ``thread`` is the identifier of the thread that entered it, 0 while it is inactive.
    ``is_routed`` is True while the functions on files and random numbers are replaced by those of a
    simulated machine, and so may be called. ``is_preparing`` is True while only clocks and random
    numbers are refused.
    """

    __slots__ = (
        "_depth", "_escape", "_hooked", "_namespaces", "_originals", "_replacements",
        "_surveyed", "_unraisablehook", "is_preparing", "is_routed", "thread",
    )  # fmt: skip

    def __init__(self) -> None:
        self._depth = 0
        self.thread = 0
        self.is_preparing = self.is_routed = False
        self._escape: EscapedSimulation | None = None
        self._surveyed = 0, ""
        self._hooked = False
        self._unraisablehook = sys.unraisablehook
        # Three columns: a namespace, and by name its originals and their replacements.
        self._namespaces: list[dict[str, Any]] = []
        self._originals: list[dict[str, Any]] = []
        self._replacements: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth > 1:
            return
        if (len(sys.modules), next(reversed(sys.modules))) != self._surveyed:
            self._survey()
        self._escape = None
        self.thread = _thread.get_ident()
        self._unraisablehook, sys.unraisablehook = sys.unraisablehook, self._report_ignored
        _put(self._replacements, self._namespaces)
        type.__setattr__(random.Random, "seed", _seed)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._depth > 0
        self._depth -= 1
        if self._depth:
            return
        self._restore()
        escape, self._escape = self._escape, None
        if escape is not None and escape is not failure:
            raise escape

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """After an interrupt of the block, leave the sandbox as often as the block entered it.

        A signal may raise ``KeyboardInterrupt`` while the sandbox is entered or left, and then a
        ``with`` statement does not leave it.
        """
        depth = self._depth
        try:
            yield
        except KeyboardInterrupt:
            self._depth = depth
            if not depth:
                self.is_preparing = self.is_routed = False
                self._escape = None
                self._restore()
            raise

    def _restore(self) -> None:
        self.thread = 0
        if sys.unraisablehook == self._report_ignored:
            sys.unraisablehook = self._unraisablehook
        _put(self._originals, self._namespaces)
        type.__setattr__(random.Random, "seed", _REAL_SEED)

    def _report_ignored(self, ignored: sys.UnraisableHookArgs) -> None:
        """Let Python report an exception that it ignores: to do so, it reads the source."""
        with self.suspended():
            self._unraisablehook(ignored)

    def check(self, call: str) -> None:
        """Raise ``EscapedSimulation`` if the sandbox is active and the caller not allowed."""
        ends = call in _ENDING_CALLS
        if self.is_routed and call in ROUTED:
            return
        if self.is_preparing and not ends and not call.startswith(CHANCE):
            return
        if self.thread and self.thread == _thread.get_ident():
            place, is_library = _escaping(_getframe(2))
            if place:
                remedy = "use the process, the event loop, the clock or the ids of its Boot"
                if ends:
                    remedy = "it would end powercut as well; raise an exception, or return"
                elif self.is_routed:
                    remedy = "pass the value to it"
                elif self.is_preparing:
                    remedy = "draw it from the choices that propose is given"
                    if is_library:
                        remedy = _CALL_OF_A_LIBRARY
                escape = EscapedSimulation(
                    f"{call} was called inside a simulated world, at {place}; {remedy}"
                )
                if self._escape is None:
                    self._escape = escape
                raise escape

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Enter it for code that prepares a run or a step, and may use the real files."""
        outer, self.is_preparing = self.is_preparing, True
        try:
            with self:
                yield
        finally:
            self.is_preparing = outer

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Allow everything in the block, which belongs to the engine."""
        thread, self.thread = self.thread, 0
        try:
            yield
        finally:
            self.thread = thread

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Put every original back for the block, and look for them again after it."""
        thread, self.thread = self.thread, 0
        if self._depth:
            _put(self._originals, self._namespaces)
        try:
            yield
        finally:
            if self._depth:
                self._survey()
                _put(self._replacements, self._namespaces)
            self.thread = thread

    def follow(self, pairs: Iterable[tuple[object, Any]]) -> None:
        """Guard functions that took the place of guarded ones: pairs of old and new.

        The modules of the new functions only pass calls on, so a search for the caller skips
        them.
        """
        for old, new in pairs:
            function = getattr(new, "__func__", None)
            if function is not None:
                _PASSING.add(function.__globals__["__name__"])
            known = _REPLACEMENTS.get(id(old))
            if known is not None and known[0] is old:
                name = getattr(new, "__name__", "")
                home = getattr(old, "__module__", "") or ""
                home = "os" if home == "posix" else home
                _REPLACEMENTS[id(new)] = new, _guarded(f"{home}.{name}", new)
        self._surveyed = 0, ""

    def _survey(self) -> None:
        """Find every name to replace, in the modules that are loaded so far."""
        if not self._hooked:
            sys.addaudithook(_audit)
            self._hooked = True
        homes = {id(vars(module)) for module, _ in _HOMES}
        self._namespaces, self._originals, self._replacements = [], [], []
        for module in dict.fromkeys(module for module, _ in _HOMES):
            self._replace(vars(module), [name for home, name in _HOMES if home is module])
        # Programs put objects of any type there.
        loaded: list[tuple[str, object]] = list(sys.modules.items())
        for title, entry in loaded:
            top = title.partition(".")[0]
            if not isinstance(entry, ModuleType) or top in _PYTHON or top in TOOLS:
                continue
            namespace = vars(entry)
            if id(namespace) in homes or title == __name__:
                continue
            known = [name for name, value in namespace.items() if id(value) in _REPLACEMENTS]
            self._replace(namespace, known)
        self._surveyed = len(sys.modules), next(reversed(sys.modules))

    def _replace(self, namespace: dict[str, Any], names: list[str]) -> None:
        """Register the names that exist in ``namespace`` for replacement."""
        originals = {name: namespace[name] for name in names if name in namespace}
        if originals:
            replacements = {name: _REPLACEMENTS[id(value)][1] for name, value in originals.items()}
            self._namespaces.append(namespace)
            self._originals.append(originals)
            self._replacements.append(replacements)


def _put(names: list[dict[str, Any]], namespaces: list[dict[str, Any]]) -> None:
    """Update each namespace by its names, without a Python loop: it runs twice a lifetime."""
    deque(map(ior, namespaces, names), maxlen=0)


SANDBOX: Final = Sandbox()
"""The sandbox of this process."""


# A plain function: there are many events, and a method costs four times as much.
def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse an audit event from inside."""
    if SANDBOX.thread and event in EVENTS:
        shown = f"({arguments[0]!r})" if arguments and event == "open" else ""
        SANDBOX.check(f"{event}{shown}")


def _escaping(frame: FrameType | None) -> tuple[str, bool]:
    """Return file, line and function of the caller, empty if it is allowed.

    If it is in an installed library, which is returned too, the line that called it is added.
    """
    library = ""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        top = name.partition(".")[0]
        if top in TOOLS or (top in WATCHERS and not library):
            break
        if top not in _PYTHON and name not in _PASSING:
            place = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}"
            if not place.startswith(_LIBRARIES):
                return (f"{library}, called at {place}", True) if library else (place, False)
            library = library or place
        frame = frame.f_back
    return library, bool(library)


def _guarded(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*arguments: Any, **options: Any) -> Any:
        SANDBOX.check(name)
        return original(*arguments, **options)

    return guarded


def _guarded_display(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """Guard a function that reads the clock only when it is given no time."""

    def guarded(seconds: float | None = None) -> Any:
        if seconds is None:
            SANDBOX.check(name)
        return original(seconds)

    return guarded


def _seed(self: random.Random, a: Any = None, version: int = 2) -> None:
    if a is None:
        SANDBOX.check("random.Random without a seed")
    _REAL_SEED(self, a, version)


_REAL_SEED: Final = random.Random.seed


class _DateClass(type):
    """Replaces ``date`` or ``datetime``; its instances are real, and it equals the real class."""

    real: type

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        return cls.real(*arguments, **options)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.real)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.real)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.real

    def __hash__(cls) -> int:
        return hash(cls.real)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.real, name)


def _guarded_class(real: type, clock_methods: tuple[str, ...]) -> type:
    members = {
        name: staticmethod(
            _guarded(f"{real.__module__}.{real.__name__}.{name}", getattr(real, name))
        )
        for name in clock_methods
    }
    guarded = _DateClass(real.__name__, (), {**members, "__module__": real.__module__})
    guarded.real = real
    return guarded


def _homes() -> list[tuple[ModuleType, str]]:
    """Return the module and the name of each function or class that is replaced."""
    inside = vars(random)["_inst"]
    return [
        *((time, name) for name in (*CLOCKS, *DISPLAYS)),
        *((os, name) for name in (*SYSTEM, *ENDS)),
        *((secrets, name) for name in SECRETS),
        *((uuid, name) for name in ("uuid1", "uuid4")),
        # Before 3.12 the start of a thread is not audited.
        *((_thread, name) for name in THREADS),
        *((threading, f"_{name}") for name in THREADS),
        (random, "_urandom"),
        *(
            (random, name)
            for name, value in vars(random).items()
            if getattr(value, "__self__", None) is inside
        ),
        (dt, "datetime"),
        (dt, "date"),
    ]


def _replacement(module: ModuleType, name: str, original: Any) -> Any:
    if module is dt:
        clock_methods = ("now", "today", "utcnow") if name == "datetime" else ("today",)
        return _guarded_class(original, clock_methods)
    guard = _guarded_display if name in DISPLAYS else _guarded
    return guard(f"{module.__name__}.{name}", original)


_HOMES: Final = _homes()

# Keyed by the identity of the original, which a module may have imported under any name. The
# originals are kept alive, so that no identity is reused; nothing depends on their order.
_REPLACEMENTS: Final[dict[int, tuple[Any, Any]]] = {
    id(original): (original, _replacement(module, name, original))
    # A function with several homes is named by the first.
    for module, name in reversed(_HOMES)
    if (original := getattr(module, name, None)) is not None
}
