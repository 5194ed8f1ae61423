"""Import strings: ``module:object``, as the registry and the command line take them."""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Final

from powercut.extras import missing_extra
from powercut.place import Stack
from sim.errors import HarnessError, described

_REFERENCE: Final = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")


def is_reference(name: str) -> bool:
    """Return whether ``name`` is meant as ``module:object``, well formed or not."""
    return ":" in name


def load(reference: str) -> object:
    """Import ``module:object`` and return the object.

    Raises ``HarnessError`` in one sentence if the string is malformed, if the module does not
    exist or fails while it is imported, and if it has no such object.
    """
    parts = _REFERENCE.fullmatch(reference)
    if parts is None:
        raise HarnessError(f"{reference!r} is not module:object, such as store:workload")
    module, name = parts.groups()
    try:
        _import(module)
    except SystemExit as left:
        raise HarnessError(f"module {module!r} exits when it is imported: {left.code}") from None
    except Exception as failure:
        if isinstance(failure, ModuleNotFoundError) and _is_within(module, failure.name):
            raise HarnessError(
                f"there is no module {failure.name!r} in {Path.cwd()}, nor installed; "
                + _remedy(module, name)
            ) from None
        needed = missing_extra(failure) if isinstance(failure, ModuleNotFoundError) else ""
        if needed:
            raise HarnessError(f"module {module!r} needs {needed}") from None
        named = " ".join(described(failure).split())
        place = Stack().raised_at(failure.__traceback__)
        at = f", at {place.where}" if place is not None else ""
        raise HarnessError(f"module {module!r} cannot be imported: {named}{at}") from failure
    try:
        found: object = getattr(sys.modules[module], name)
    except AttributeError:
        raise HarnessError(f"module {module!r} has no object {name!r}{_hidden(module)}") from None
    return found


def _import(module: str) -> None:
    """Import a module; it may change the current directory, where findings are written."""
    here = os.getcwd()
    try:
        import_module(module)
    finally:
        if os.getcwd() != here:
            os.chdir(here)


def _remedy(module: str, name: str) -> str:
    """Return how a module that does not exist is to be named or found."""
    stem = module.removesuffix(".py")
    if Path(f"{stem}.py").exists():
        return f"name the module, not its file: {stem}:{name}"
    package = module.partition(".")[0]
    if Path(f"{module.replace('.', '/')}.py").exists() and package in sys.modules:
        hiding = getattr(sys.modules[package], "__file__", None)
        return (
            f"{package} is {hiding}, which hides {package} of this directory: "
            f"add an empty file {package}/__init__.py"
        )
    return "change to its directory, or install it"


def _hidden(module: str) -> str:
    """Return the file here that an imported module of the same name hides, or nothing."""
    file, own = getattr(sys.modules[module], "__file__", None), Path(f"{module}.py")
    if not own.exists() or (file and own.samefile(file)):
        return ""
    found = file or "a part of Python"
    return f"; it is {found}, which hides {own} of this directory: give that file another name"


def _is_within(module: str, missing: str | None) -> bool:
    return missing is not None and f"{module}.".startswith(f"{missing}.")
