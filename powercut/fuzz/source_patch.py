"""Source patches: a known bug planted in a second copy of a program's modules.

``patched`` imports the program again while it is in force: the modules of the given packages
are loaded from their source files, with the patches applied to the text, and replace the
loaded modules in ``sys.modules`` until it ends. Code that was imported before keeps the
original modules, so only modules that are imported inside see a patch, and nothing has to be
undone object by object. The files on disk are only read.

A patch applies only if its old text occurs exactly once. A change of the program that makes
a patch meaningless is therefore an error, not a bug that silently disappears.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from textwrap import dedent
from types import CodeType, ModuleType
from typing import Final

from faults.crash_point import CrashPoint
from oracles.marks import Marks
from sim.errors import HarnessError

_ENGINE: Final = frozenset(
    name.partition(".")[0] for name in (__name__, CrashPoint.__module__, Marks.__module__)
) | frozenset((HarnessError.__module__.partition(".")[0],))


@dataclass(frozen=True, slots=True)
class SourcePatch:
    """Replaces one block of whole lines in the source text of ``module``.

    ``old`` and ``new`` are blocks of lines. The indentation common to the lines of a block,
    and empty lines around it, are ignored: ``new`` is indented like the lines it replaces.
    An empty ``new`` removes the lines.
    """

    module: str
    old: str
    new: str

    def apply(self, source: str) -> str:
        """Return ``source`` with the patch; ``HarnessError`` unless it fits exactly once."""
        lines, old = source.split("\n"), _lines(self.old)
        indents = [
            (start, indent)
            for start in range(len(lines) - len(old) + 1)
            if (indent := _indent_of(lines[start : start + len(old)], old)) is not None
        ]
        if not old or len(indents) != 1:
            raise HarnessError(
                f"a source patch of {self.module} fits {len(indents) if old else 0} times instead "
                f"of once; adapt its old text, which begins {next(iter(old), '')!r}"
            )
        ((start, indent),) = indents
        new = [indent + line if line else "" for line in _lines(self.new)]
        return "\n".join((*lines[:start], *new, *lines[start + len(old) :]))


@contextmanager
def patched(patches: Sequence[SourcePatch], packages: Collection[str] = ()) -> Iterator[None]:
    """Import programs anew, patched, for as long as this is in force.

    Affects the top-level packages of the patched modules, and ``packages``: those whose
    modules refer to them, such as the one that holds a target. Raises ``HarnessError`` in
    one sentence for a patch that does not apply, a module without source, and a module of
    the engine, which cannot be patched while it runs.
    """
    programs = {patch.module.partition(".")[0] for patch in patches} | set(packages)
    if engine := sorted(programs & _ENGINE):
        raise HarnessError(f"{engine[0]} is part of the engine and cannot be patched")
    finder = _PatchingFinder(patches)
    originals = _unload(programs)
    sys.meta_path.insert(0, finder)
    try:
        for module in finder.patches:
            _import(module)
        yield
    finally:
        sys.meta_path.remove(finder)
        _unload(programs)
        sys.modules.update(originals)


class _PatchingFinder(MetaPathFinder):
    """Finds the patched modules before any other finder does."""

    def __init__(self, patches: Sequence[SourcePatch]) -> None:
        self.patches: defaultdict[str, list[SourcePatch]] = defaultdict(list)
        for patch in patches:
            self.patches[patch.module].append(patch)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec whose loader compiles the patched source."""
        if fullname not in self.patches:
            return None
        following = sys.meta_path[sys.meta_path.index(self) + 1 :]
        specs = (finder.find_spec(fullname, path, target) for finder in following)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None:
            return None
        source = None
        if isinstance(spec.loader, InspectLoader):
            source = spec.loader.get_source(fullname)
        if source is None:
            raise HarnessError(f"module {fullname!r} has no source and cannot be patched")
        for patch in self.patches[fullname]:
            source = patch.apply(source)
        spec.loader = _PatchedLoader(source, _compiled(fullname, source, spec.origin))
        return spec


class _PatchedLoader(InspectLoader):
    """Loads one module from its patched source."""

    def __init__(self, source: str, code: CodeType) -> None:
        self._source = source
        self._code = code

    def get_source(self, fullname: str) -> str:
        """Return the patched source, for a patch that is applied on top of this one."""
        del fullname
        return self._source

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the patched source."""
        del fullname
        return self._code


def _lines(block: str) -> list[str]:
    text = dedent(block).strip("\n")
    return [line.rstrip() for line in text.split("\n")] if text.strip() else []


def _indent_of(lines: Sequence[str], old: Sequence[str]) -> str | None:
    """Return the indentation at which ``lines`` are ``old``; None if they are not."""
    if not old or not lines[0].endswith(old[0]):
        return None
    indent = lines[0].removesuffix(old[0])
    if indent.strip():
        return None
    expected = [indent + line if line else "" for line in old]
    return indent if list(lines) == expected else None


def _compiled(module: str, source: str, origin: str | None) -> CodeType:
    try:
        return compile(source, origin or module, "exec", dont_inherit=True)
    except SyntaxError as wrong:
        raise HarnessError(f"a source patch leaves {module} malformed: {wrong}") from None


def _import(module: str) -> None:
    try:
        import_module(module)
    except ModuleNotFoundError as missing:
        raise HarnessError(f"a source patch names an unknown module: {missing}") from None


def _unload(packages: Collection[str]) -> dict[str, ModuleType]:
    """Remove the modules of these top-level packages; return them by their names."""
    names = [name for name in sys.modules if name.partition(".")[0] in packages]
    return {name: sys.modules.pop(name) for name in names}
