"""A reproducer: one file that repeats a violation, without Hypothesis and its database.

It names its target, persistence model and property by short tags, never by dotted paths,
so that it survives renames. It is JSON that a person can read.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from xxhash import xxh3_64

from powercut.fuzz.action import Action, Json
from sim.choices import Chosen
from sim.errors import HarnessError

FORMAT: Final = 1
FAILURES: Final = Path(".powercut") / "failures"
_PACKAGES: Final = ("powercut", "hypothesis", "faker", "apsw", "immutables", "xxhash")


class BadReproducer(HarnessError):
    """A reproducer file cannot be used.

    Cause: it is missing, cut off, made by a newer powercut, or not a reproducer. Cure: the
    message says which, with the value that was found.
    """


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One action, every choice that performing it asked for, and how it ended."""

    action: Action
    chosen: tuple[Chosen, ...]
    crash_points: tuple[str, ...] = ()
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Reproducer:
    """Everything that repeats one failing run.

    ``target`` is the tag of the machine, ``model`` the name of the persistence model,
    ``broken`` the short name of the violated property. ``trace`` is the digest of the
    whole run. ``faults`` are the fault plans that were on at some time, as they print.
    """

    target: str
    model: str
    broken: str
    statement: str
    steps: tuple[RecordedStep, ...]
    faults: tuple[str, ...]
    trace: str
    versions: Mapping[str, str]

    @property
    def fingerprint(self) -> str:
        """Eight hex digits that name this failure: what was done, and what broke."""
        done = [[step.action.plain(), step.chosen] for step in self.steps]
        told = json.dumps([self.target, self.model, self.broken, done], sort_keys=True)
        return xxh3_64(told.encode()).hexdigest()[:8]

    def plain(self) -> dict[str, Json]:
        """Return the reproducer as JSON data."""
        return {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "target": self.target,
            "model": self.model,
            "property": self.broken,
            "statement": self.statement,
            "steps": [
                {
                    "action": step.action.plain(),
                    "choices": [list(chosen) for chosen in step.chosen],
                    "crash_points": list(step.crash_points),
                    "outcome": step.outcome,
                }
                for step in self.steps
            ],
            "faults": list(self.faults),
            "trace": self.trace,
            "versions": dict(self.versions),
        }


def versions() -> dict[str, str]:
    """Return the versions of everything that could matter to a replay."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def write_reproducer(reproducer: Reproducer, folder: Path) -> Path:
    """Write it as ``<fingerprint>.json`` in ``folder``, whole or not at all; return the path.

    Raises ``HarnessError`` if the folder cannot be written.
    """
    path = folder / f"{reproducer.fingerprint}.json"
    temporary = folder / f"{reproducer.fingerprint}.json.tmp"
    text = json.dumps(reproducer.plain(), indent=1) + "\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as refused:
        raise HarnessError(f"cannot write the reproducer {path}: {refused.strerror}") from None
    return path


def read_reproducer(path: Path) -> Reproducer:
    """Read a reproducer; raises ``BadReproducer`` in one sentence for one that is none."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except OSError as refused:
        raise BadReproducer(f"cannot read reproducer {path}: {refused.strerror}") from None
    except ValueError:
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
        raise BadReproducer(f"{path} is a malformed reproducer: {_said(wrong)}") from None


def _of_plain(plain: dict[str, object]) -> Reproducer:
    versions_then = plain["versions"]
    if not isinstance(versions_then, dict):
        raise TypeError("versions is no object")
    return Reproducer(
        target=_text(plain, "target"),
        model=_text(plain, "model"),
        broken=_text(plain, "property"),
        statement=_text(plain, "statement"),
        steps=tuple(_step(step) for step in _list(plain, "steps")),
        faults=tuple(str(fault) for fault in _list(plain, "faults")),
        trace=_text(plain, "trace"),
        versions={str(name): str(value) for name, value in versions_then.items()},
    )


def _step(plain: object) -> RecordedStep:
    if not isinstance(plain, dict):
        raise TypeError(f"a step is no object: {plain!r}")
    return RecordedStep(
        Action.of_plain(plain["action"]),
        tuple(_chosen(chosen) for chosen in _list(plain, "choices")),
        tuple(str(point) for point in _list(plain, "crash_points")),
        _text(plain, "outcome"),
    )


def _chosen(plain: object) -> Chosen:
    match plain:
        case [str(label), int(low), int(high), int(value)] if low <= value <= high:
            return Chosen(label, low, high, value)
    raise ValueError(f"not a choice: {plain!r}")


def _text(plain: Mapping[str, object], name: str) -> str:
    value = plain[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} is no text: {value!r}")
    return value


def _list(plain: Mapping[str, object], name: str) -> Sequence[object]:
    value = plain[name]
    if not isinstance(value, list):
        raise TypeError(f"{name} is no list: {value!r}")
    return value


def _said(wrong: Exception) -> str:
    return f"it has no {wrong}" if isinstance(wrong, KeyError) else str(wrong)
