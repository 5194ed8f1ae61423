"""Checks that take no process: they run interposed, each in a process of its own.

A check that imports modules would import them anew each time. So the process from which several
checks are forked imports them first. It does so only if that neither uses the disk nor leaves a
thread or a descriptor behind, which a first try in a process of its own shows.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn

from oracles.history import Known
from oracles.violation import UnreadableAfterCrash, Violation
from powercut.explorer.check_time import CheckTime
from powercut.explorer.check_violation import NOT_ENDED, violation_of
from powercut.explorer.lazy.boot import LazyDisk
from powercut.explorer.limits import Limits
from powercut.explorer.running_check import running_check
from powercut.explorer.ticker import Stopped
from powercut.explorer.unmodified import takes_one
from powercut.interpose.apart import NotReturned, run_apart
from powercut.interpose.installation import install
from powercut.interpose.interposed import interposed, strictly
from powercut.interpose.refusal import sentence_on
from powercut.place import Place
from powercut.place_recorder import PlaceRecorder
from powercut.user_function import refuse_verdict
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from sim.errors import HarnessError, NeedsWholeImage, UnsupportedOperation

_OUTPUTS: Final = (1, 2)


class InterposedCheck:
    """Runs ``check`` interposed below ``root``, in a process of its own for each call.

    ``check`` takes ``known``, or a process and ``known``. The operations of the check, which
    are a recovery, are carried over to the disk of the caller. ``limits.timeout`` is the time of
    one call in seconds. The output of the check is dropped, unless ``prints`` is True. A call that
    does not end in its time, or ends its process, is a recovery that fails.
    """

    def __init__(
        self, check: Callable[..., None], root: str, limits: Limits, *, prints: bool = False
    ) -> None:
        install()
        self._check = check
        self._root = root
        self._seconds = limits.timeout
        self._time = CheckTime(limits.timeout)
        self._strict = limits.strict
        self._prints = prints
        self._is_alone = takes_one(check, "known")
        self._modules: Sequence[str] = ()
        self._owner = self._imported_in = os.getpid()

    @property
    def endless(self) -> int:
        """The number of crash images on which it has not ended, in this process and its forks."""
        return self._time.endless

    def __call__(self, process: Process, known: Known) -> None:
        """Check a disk; raises the violation, or the ``HarnessError``, that the check raises."""
        if self._modules and self._imported_in != os.getpid():
            self._import()
        try:
            _, _, failure = self._run(process, known)
        except NotReturned as ended:
            raise self._violation(ended, process.disk) from None
        if failure is not None:
            _raise(*failure)

    def _violation(self, ended: NotReturned, disk: Disk) -> Violation:
        """Return a call that has not returned as a violation.

        Raises ``NeedsWholeImage`` if the disk was not built: what the call has read is lost.
        """
        is_whole = not isinstance(disk, LazyDisk)
        if ended.is_endless:
            self._time.overrun(counts=is_whole)
        if not is_whole:
            raise NeedsWholeImage("a result of the check, which has not returned")
        statement = NOT_ENDED if ended.is_endless else ended.statement
        return UnreadableAfterCrash(statement, **({"at": ended.at} if ended.at else {}))

    def recover(self, process: Process, known: Known) -> Mapping[int, Place]:
        """Check a disk, and return the lines of the operations of the check."""
        try:
            _, places, _ = self._run(process, known, with_places=True)
        except NotReturned as ended:
            self._violation(ended, process.disk)
            return {}
        return places

    def try_undamaged(self, process: Process, known: Known, *, learns: bool) -> None:
        """Check a disk that no crash has damaged; raises ``HarnessError`` if that does not return.

        If it ``learns``, the modules that the check imports are imported in the processes from
        which several checks are forked.
        """
        modules: Sequence[str] = ()
        try:
            with running_check():
                modules, _, _ = self._run(process, known)
        except NotReturned as ended:
            raise HarnessError(f"on the undamaged disk, without any crash, {ended}") from None
        except Stopped:
            return
        if not modules or not learns:
            return

        def attempt() -> bytes:
            self._modules = modules
            return pickle.dumps(self._import())

        with suppress(HarnessError):
            if pickle.loads(run_apart(attempt, self._seconds, "an import of the check")):
                self._modules = modules

    def _run(
        self, process: Process, known: Known, *, with_places: bool = False
    ) -> tuple[list[str], dict[int, Place], tuple[Any, ...] | None]:
        """Return the modules that the check imported, its lines if wanted, and how it failed."""
        before = frozenset(sys.modules)

        def run() -> bytes:
            disk = process.disk
            disk.now_ns = time.time_ns
            recorder = PlaceRecorder(disk) if with_places else None
            if recorder is not None:
                recorder.follow_executors()
            failure: object = None
            if not self._prints:
                _drop_output()
            try:
                with strictly(process, self._root, strict=self._strict):
                    arguments = (known,) if self._is_alone else (process, known)
                    refuse_verdict("the check", self._check(*arguments))
            except BaseException as error:
                failure = _plain(error)
            modules = [name for name in sys.modules if name not in before]
            places = {} if recorder is None else recorder.places
            return pickle.dumps((disk.report(), modules, places, failure))

        begun = time.monotonic()
        result = run_apart(run, self._time.seconds, "the check")
        self._time.ended(time.monotonic() - begun)
        report, modules, places, failure = pickle.loads(result)
        process.disk.accept(report)
        return modules, places, failure

    def _import(self) -> bool:
        """Import the modules of the check; return whether that left nothing behind."""
        assert os.getpid() != self._owner, "the program of the user would see these imports"
        self._imported_in = os.getpid()
        process, threads = Process(Disk()), threading.active_count()
        with interposed(process, self._root):
            begun = process.disk.operations
            for name in self._modules:
                with suppress(Exception):
                    importlib.import_module(name)
            untouched = process.disk.operations == begun and not process.open_descriptors
        return untouched and threading.active_count() == threads


def _drop_output() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for output in _OUTPUTS:
        os.dup2(nowhere, output)
    # A test runner has streams of its own.
    sys.stdout = sys.stderr = os.fdopen(nowhere, "w")


def _plain(error: BaseException) -> tuple[str, str, str, dict[str, object]]:
    """Return an exception as plain values: module and name of its class, text, evidence.

    It is a ``HarnessError`` or a violation.
    """
    if isinstance(error, HarnessError):
        text = sentence_on(error) if isinstance(error, UnsupportedOperation) else str(error)
        return HarnessError.__module__, HarnessError.__qualname__, text, {}
    violation = violation_of(error)
    kind = type(violation)
    evidence = {name: _sendable(value) for name, value in violation.evidence.items()}
    return kind.__module__, kind.__qualname__, violation.statement, evidence


def _raise(module: str, name: str, text: str, evidence: dict[str, object]) -> NoReturn:
    if (module, name) == (HarnessError.__module__, HarnessError.__qualname__):
        raise HarnessError(text)
    for kind in _violations(Violation):
        if (kind.__module__, kind.__qualname__) == (module, name):
            violation = kind.__new__(kind)
            Violation.__init__(violation, text, **evidence)
            raise violation
    raise Violation(text, **evidence)


def _violations(kind: type[Violation]) -> Iterator[type[Violation]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _violations(each)


class _Shown:
    """A value of evidence that cannot be sent, by its ``repr``."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _sendable(value: object) -> object:
    try:
        pickle.dumps(value)
    except Exception:
        return _Shown(repr(value))
    return value
