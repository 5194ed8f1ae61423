"""Reproducers: files that repeat a violation, without Hypothesis and its database.

A reproducer is the run log of a failing run as JSON that a person can read. Target, model
and property are named by short tags, not by import paths, so that it survives renames.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Final

from xxhash import xxh3_64

from faults.crash_point import CrashPoint
from faults.fault_plan import FaultPlan
from powercut.fuzz.action import CRASH_AND_RECOVER, DISTURBANCES, Action, Json
from powercut.fuzz.crash_runner import planned
from powercut.fuzz.run_cause import RunCause
from powercut.fuzz.run_log import Crash, RecordedStep, RunLog
from powercut.fuzz.target_run import TargetRun
from sim.choices import Chosen
from sim.errors import HarnessError
from sim.trace import Trace

FORMAT: Final = 1
FAILURES: Final = Path(".powercut") / "failures"
_PACKAGES: Final = ("powercut", "hypothesis", "faker", "apsw", "immutables", "xxhash")
_CHOICE: Final = re.compile(r"(.+) (-?\d+) of (-?\d+)\.\.(-?\d+)")


class BadReproducer(HarnessError):
    """A reproducer file cannot be used.

    Cause: it is missing, cut off, made by a newer powercut, or not a reproducer. Remedy: the
    message names the cause, with the value that was found.
    """


@dataclass(frozen=True, slots=True)
class Reproducer:
    """A failing run in the form of a file.

    ``trace`` is the digest of every detail of the run, ``versions`` those of Python and of
    all packages that may matter.
    """

    log: RunLog
    trace: str
    versions: Mapping[str, str]

    @property
    def fingerprint(self) -> str:
        """Eight hex digits that identify the failure: the steps, and the violated property."""
        log = self.log
        steps = [[step.action.plain(), step.chosen] for step in log.steps]
        text = json.dumps([log.target, log.model, log.broken, steps], sort_keys=True)
        return xxh3_64(text.encode()).hexdigest()[:8]

    def plain(self) -> dict[str, Json]:
        """Return the reproducer as JSON data."""
        log = self.log
        return {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "target": log.target,
            "model": log.model,
            "property": log.broken,
            "statement": log.statement,
            "steps": [_plain_step(step) for step in log.steps],
            "trace": self.trace,
            "versions": dict(self.versions),
        }


def _plain_step(step: RecordedStep) -> dict[str, Json]:
    return {
        "action": step.action.plain(),
        "choices": [f"{label} {value} of {low}..{high}" for label, low, high, value in step.chosen],
        "crashes": [
            {
                "during": crash.during,
                "operation": crash.operation,
                "path": crash.path,
                "point": str(crash.point),
            }
            for crash in step.crashes
        ],
        "outcome": step.outcome,
    }


@dataclass(frozen=True, slots=True)
class Finding:
    """A failed run, and the reproducer file that repeats it.

    ``unwritten`` says why the file could not be written; empty if it was. ``cause`` is None until
    it is searched. ``printed`` are the lines that the run prints.
    """

    run: TargetRun
    reproducer: Reproducer
    path: Path
    unwritten: str = ""
    cause: RunCause | None = None
    printed: Sequence[str] = ()

    @property
    def replay(self) -> str:
        """The command that repeats it, or a few words if there is no file that it could read."""
        return "reproducer not kept" if self.unwritten else f"powercut replay {self.path}"

    def replay_lines(self) -> Iterator[str]:
        """Yield the command that repeats it; the reproducer itself if it could not be written."""
        if self.unwritten:
            yield from self._unwritten_lines("replay")
        else:
            yield f"  replay  {self.replay}"

    def unreduced_lines(self) -> Iterator[str]:
        """Yield the file that repeats it until a smaller one takes its place."""
        if self.unwritten:
            yield from self._unwritten_lines("kept  ")
        else:
            yield f"  kept    {self.path} until it is reduced"

    def _unwritten_lines(self, heading: str) -> Iterator[str]:
        yield f"  {heading}  not kept: {self.unwritten}; save the next line as that file"
        yield json.dumps(self.reproducer.plain())


def keep(run: TargetRun, folder: Path) -> Finding:
    """Write the reproducer of a failed run to ``folder``; a disk that is full loses no finding."""
    reproducer = record(run)
    path = folder / f"{reproducer.fingerprint}.json"
    try:
        write_reproducer(reproducer, folder)
    except HarnessError as refused:
        return Finding(run, reproducer, path, str(refused))
    return Finding(run, reproducer, path)


def record(run: TargetRun) -> Reproducer:
    """Return the reproducer of a run that has failed, by repeating it once with a trace."""
    assert run.failure is not None
    trace = Trace()
    run.fresh(trace).repeat(run.log)
    return Reproducer(run.log, trace.digest(), versions())


def versions() -> dict[str, str]:
    """Return the versions of Python and of all packages that may matter to a replay."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def write_reproducer(
    reproducer: Reproducer, folder: Path, more: Mapping[str, Json] = MappingProxyType({})
) -> Path:
    """Write ``<fingerprint>.json`` in ``folder`` atomically, and return its path.

    ``more`` are members that replays ignore. Raises ``HarnessError`` if the folder cannot be
    written.
    """
    path = folder / f"{reproducer.fingerprint}.json"
    text = json.dumps({**reproducer.plain(), **more}, indent=1) + "\n"
    try:
        write_durably(path, text.encode("ascii"))
    except OSError as refused:
        raise HarnessError(f"cannot write the reproducer {path}: {refused.strerror}") from None
    return path


def write_durably(path: Path, data: bytes) -> None:
    """Create or replace a file so that it survives a power cut; raises ``OSError``.

    A failure leaves the old file. A symbolic link keeps its place, and a pipe or a device gets
    the bytes themselves.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    temporary = path.with_name(f"{path.name}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_reproducer(path: Path) -> Reproducer:
    """Read a reproducer; raises ``BadReproducer`` in one sentence for a file that is none."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except OSError as refused:
        raise BadReproducer(f"cannot read reproducer {path}: {refused.strerror}") from None
    except (ValueError, RecursionError):
        raise BadReproducer(f"{path} is not a reproducer: it is not JSON, or cut off") from None
    found = plain.get("format") if isinstance(plain, dict) else None
    if not isinstance(found, int) or isinstance(found, bool):
        raise BadReproducer(f"{path} is not a reproducer: it has no format number")
    if found > FORMAT:
        raise BadReproducer(
            f"{path} has format={found}, this powercut reads up to {FORMAT}; "
            "replay it with the powercut that wrote it, or a newer one"
        )
    try:
        return _of_plain(plain)
    except (KeyError, TypeError, ValueError) as wrong:
        raise BadReproducer(f"{path} is a malformed reproducer: {_reason(wrong)}") from None


def _of_plain(plain: dict[str, object]) -> Reproducer:
    recorded_versions = plain["versions"]
    if not isinstance(recorded_versions, dict):
        raise TypeError("versions is not an object")
    log = RunLog(
        target=_text(plain, "target"),
        model=_text(plain, "model"),
        steps=[_step(number, step) for number, step in enumerate(_list(plain, "steps"), 1)],
        broken=_text(plain, "property"),
        statement=_text(plain, "statement"),
    )
    named = {str(name): str(value) for name, value in recorded_versions.items()}
    return Reproducer(log, _text(plain, "trace"), named)


def _step(number: int, plain: object) -> RecordedStep:
    try:
        members = _object(plain, "a step")
        return RecordedStep(
            action=_performable(Action.of_plain(members["action"])),
            chosen=[_chosen(choice) for choice in _list(members, "choices")],
            crashes=[_crash(crash) for crash in _list(members, "crashes")],
            outcome=_text(members, "outcome"),
        )
    except (KeyError, TypeError, ValueError, HarnessError) as wrong:
        raise ValueError(f"step {number}: {_reason(wrong)}") from None


def _performable(action: Action) -> Action:
    """Return ``action`` if its wrapped action, fault plan and planned crashes can be read."""
    if action.wrapped is not None and action.wrapped.name in DISTURBANCES:
        raise ValueError(f"{action.name} of {action.wrapped.name}, which is no action of a target")
    if action.fault_plan is not None:
        FaultPlan.parse(action.fault_plan)
    if action.name == CRASH_AND_RECOVER:
        planned(action.arguments)
    return action


def _chosen(plain: object) -> Chosen:
    match = _CHOICE.fullmatch(plain) if isinstance(plain, str) else None
    if match is not None:
        label, *numbers = match.groups()
        value, low, high = map(int, numbers)
        if low <= value <= high:
            return Chosen(label, low, high, value)
    raise ValueError(f"not a choice: {plain!r}")


def _crash(plain: object) -> Crash:
    members = _object(plain, "a crash")
    return Crash(
        during=_text(members, "during"),
        operation=_text(members, "operation"),
        path=_text(members, "path"),
        point=CrashPoint.parse(_text(members, "point")),
    )


def _object(plain: object, name: str) -> Mapping[str, object]:
    if not isinstance(plain, dict):
        raise TypeError(f"{name} is not an object: {plain!r}")
    return plain


def _text(plain: Mapping[str, object], name: str) -> str:
    value = plain[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} is not a text: {value!r}")
    return value


def _list(plain: Mapping[str, object], name: str) -> Sequence[object]:
    value = plain[name]
    if not isinstance(value, list):
        raise TypeError(f"{name} is not a list: {value!r}")
    return value


def _reason(wrong: Exception) -> str:
    return f"it has no {wrong}" if isinstance(wrong, KeyError) else str(wrong)
