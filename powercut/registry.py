"""The registry: the targets, workloads and mutants of a project, by their tags.

The tables of ``[tool.powercut]`` name them (``powercut.config``). Tags are known without an
import; an entry is imported when it is asked for. ``module:object`` in place of a tag serves
one that is not registered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final, cast

from powercut.config import FILE, Config, find_config
from powercut.explorer.arguments import check_of, limits_of
from powercut.explorer.limits import Limits
from powercut.fuzz.mutant import MutantEntry
from powercut.fuzz.target import TargetEntry
from powercut.reference import is_reference, load
from sim.errors import HarnessError

_EXAMPLES: Final = {
    "target": "kv = 'crash_tests.kv:target'",
    "workload": "kv-save = 'crash_tests.kv:save'",
    "mutant": "kv-no-fsync = 'crash_tests.kv:no_fsync'",
}

_MOST_SHOWN: Final = 20
"""The number of tags above which a message names the nearest ones only."""


@dataclass(frozen=True, slots=True)
class WorkloadEntry:
    """One workload of ``powercut explore``.

    ``run`` is the function that is crashed. The other members come from its attributes of
    these names: ``check`` (None means "old or new"), ``limits``, ``about`` (its purpose in a
    few words) and ``sound`` (False for a demonstration, which is run only when it is named).
    """

    tag: str
    run: Callable[..., None]
    check: Callable[..., None] | None
    limits: Limits
    about: str
    sound: bool


class Registry:
    """The entries of one project."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @classmethod
    def here(cls) -> Registry:
        """Return the registry of the current directory, and make its modules importable.

        Raises ``HarnessError`` in one sentence for a malformed ``pyproject.toml``.
        """
        config = find_config(Path.cwd())
        config.extend_import_path()
        return cls(config)

    def target(self, name: str) -> TargetEntry:
        """Return the target of this tag or import string.

        Raises ``HarnessError`` in one sentence for an unknown tag, and for a target that
        cannot be imported or made or has no actions.
        """
        reference = self._reference("target", self.config.targets, name)
        with self._located("target", name):
            return TargetEntry.of(name, reference)

    def all_targets(self) -> tuple[TargetEntry, ...]:
        """Return the registered targets; ``HarnessError`` if there is none."""
        self._require("target", self.config.targets, "run")
        return tuple(self.target(tag) for tag in self.config.targets)

    def workload(self, name: str, check: str | None = None) -> WorkloadEntry:
        """Return the workload of this tag or import string.

        ``check`` is the import string of a check that replaces the workload's own. Raises
        ``HarnessError`` in one sentence for a function that cannot be imported or called.
        """
        reference = self._reference("workload", self.config.workloads, name)
        with self._located("workload", name):
            run = _callable(reference)
            own = check_of(run, name) if check is None else None
            limits = limits_of(run, name)
        if check is not None:
            own = _callable(check)
        about = getattr(run, "about", "") or (run.__doc__ or "").partition("\n")[0]
        return WorkloadEntry(
            name,
            run,
            own,
            limits,
            about,
            getattr(run, "sound", True),
        )

    def sound_workloads(self) -> tuple[WorkloadEntry, ...]:
        """Return the registered workloads without the demonstrations.

        Raises ``HarnessError`` if no workload is registered.
        """
        self._require("workload", self.config.workloads, "explore")
        entries = [self.workload(tag) for tag in self.config.workloads]
        return tuple(entry for entry in entries if entry.sound)

    def mutant(self, name: str) -> MutantEntry:
        """Return the mutant of this tag or import string.

        Raises ``HarnessError`` in one sentence for an unknown tag, for a mutant that cannot be
        imported or is malformed, and for an unknown target of it.
        """
        reference = self._reference("mutant", self.config.mutants, name)
        with self._located("mutant", name):
            entry = MutantEntry(name, reference)
            target = entry.mutant.target
            if callable(target) or not target:
                return entry
            of_target = self._reference("target", self.config.targets, target)
            return MutantEntry(name, reference, TargetEntry(target, of_target))

    def all_mutants(self) -> tuple[MutantEntry, ...]:
        """Return the registered mutants; ``HarnessError`` if there is none."""
        self._require("mutant", self.config.mutants, "mutants")
        return tuple(self.mutant(tag) for tag in self.config.mutants)

    def _reference(self, kind: str, table: Mapping[str, str], name: str) -> str:
        if name in table:
            return table[name]
        if is_reference(name):
            return name
        raise HarnessError(
            f"unknown {kind} {name!r}; {_known(name, table)}; register it under "
            f"[tool.powercut.{kind}s] in {self._file}, or name it as module:object"
        )

    def _require(self, kind: str, table: Mapping[str, str], command: str) -> None:
        if not table:
            raise HarnessError(
                f"no {kind} is registered; add a line such as {_EXAMPLES[kind]} under "
                f"[tool.powercut.{kind}s] to {self._file}, or name one: "
                f"powercut {command} module:object"
            )

    @property
    def _file(self) -> str:
        return str(self.config.file or FILE)

    @contextmanager
    def _located(self, kind: str, name: str) -> Iterator[None]:
        """Add to a mistake of a registered entry the place where it is registered."""
        try:
            yield
        except HarnessError as mistake:
            if is_reference(name):
                raise
            raise HarnessError(
                f"{kind} {name!r}: {mistake}; it is registered under "
                f"[tool.powercut.{kind}s] in {self._file}"
            ) from mistake


def _callable(reference: str) -> Callable[..., None]:
    found = load(reference)
    if not callable(found):
        raise HarnessError(f"{reference} is not callable: {found!r}")
    return cast("Callable[..., None]", found)


def _known(name: str, table: Mapping[str, str]) -> str:
    """Return the tags of a table as part of a sentence; of many, the nearest ones."""
    if not table:
        return "none is registered"
    if len(table) <= _MOST_SHOWN:
        return f"known are {', '.join(table)}"
    nearest = get_close_matches(name, table, n=3, cutoff=0)
    return f"of {len(table)} that are known, the nearest are {', '.join(nearest)}"
