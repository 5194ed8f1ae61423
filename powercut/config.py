"""The table ``[tool.powercut]`` of a project's ``pyproject.toml``.

The nearest ``pyproject.toml`` at or above a folder decides, whether it has the table or not::

    [tool.powercut]
    model = "ext4-ordered"      # the default of --model and of the pytest fixtures
    seconds = 120               # the default budget of `powercut run`
    seed = 7                    # the default of --seed

    [tool.powercut.targets]     # each tag names module:object
    kv = "crash_tests.kv:target"

    [tool.powercut.workloads]
    kv-save = "crash_tests.kv:save"

    [tool.powercut.mutants]
    kv-no-fsync = "crash_tests.kv:no_fsync"

Reading it imports nothing of the project.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from powercut.seconds import FORM, is_time
from sim.disk.crash.persistence import MODELS
from sim.errors import HarnessError

FILE: Final = "pyproject.toml"

_TAG: Final = re.compile(r"[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one project.

    ``file`` is the ``pyproject.toml`` they come from, or None if there is none. ``targets``,
    ``workloads`` and ``mutants`` map a tag to ``module:object``. ``model`` and ``seconds`` are
    None where the project does not set them. ``import_path`` are the folders from which its
    modules are imported.
    """

    file: Path | None = None
    targets: Mapping[str, str] = field(default_factory=dict)
    workloads: Mapping[str, str] = field(default_factory=dict)
    mutants: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None
    seconds: float | None = None
    seed: int = 0
    import_path: tuple[str, ...] = ()

    def extend_import_path(self) -> None:
        """Put the project's folders, then the current one, before all others on ``sys.path``."""
        wanted = list(dict.fromkeys((*self.import_path, str(Path.cwd()))))
        sys.path[:0] = [folder for folder in wanted if folder not in sys.path]


def find_config(folder: Path) -> Config:
    """Read the nearest ``pyproject.toml`` at or above ``folder``; the defaults if there is none.

    Raises ``HarnessError`` in one sentence for a file that is malformed.
    """
    absolute = folder.absolute()
    for parent in (absolute, *absolute.parents):
        if (parent / FILE).is_file():
            return read_config(parent / FILE)
    return Config()


def read_config(file: Path) -> Config:
    """Read one ``pyproject.toml``; raises ``HarnessError`` as ``find_config`` does."""
    try:
        with file.open("rb") as opened:
            document = tomllib.load(opened)
    except OSError as refused:
        raise HarnessError(f"cannot read {file}: {refused.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as wrong:
        raise HarnessError(f"{file} is not TOML: {wrong}; correct it") from None
    tool = _table(file, document, "tool")
    table = _table(file, tool, "powercut", "tool.")
    members = {
        name: _checked(file, "tool.powercut", name, value, _MEMBERS)
        for name, value in table.items()
    }
    return Config(file=file, import_path=_import_path(file, tool), **members)


def _table(file: Path, holder: Mapping[str, Any], name: str, above: str = "") -> Mapping[str, Any]:
    table = holder.get(name, {})
    if not isinstance(table, dict):
        raise HarnessError(f"{file}: {above}{name} is {table!r} and must be a table")
    return table


def _import_path(file: Path, tool: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the project's folder and the ``pythonpath`` of its pytest."""
    pytest = _table(file, tool, "pytest", "tool.")
    ini = pytest.get("ini_options", {})
    found = (ini if isinstance(ini, dict) and "pythonpath" in ini else pytest).get("pythonpath", ())
    names = found.split() if isinstance(found, str) else found
    if not isinstance(names, list | tuple):
        raise HarnessError(
            f"{file}: pythonpath of pytest is {found!r} and must be a list of folders, "
            "such as ['src']"
        )
    folder = file.parent
    return tuple(dict.fromkeys(str((folder / str(name)).resolve()) for name in (".", *names)))


_Check = Callable[[Any], object]


def _checked(
    file: Path, table: str, name: str, value: object, checks: Mapping[str, tuple[_Check, str]]
) -> Any:  # the type that the table of checks guarantees
    if name not in checks:
        raise HarnessError(
            f"{file}: [{table}] has an unknown key {name!r}; known are {', '.join(checks)}"
        )
    check, form = checks[name]
    if not check(value):
        raise HarnessError(f"{file}: {table}.{name} is {value!r} and must be {form}")
    if isinstance(value, dict):
        for tag, reference in value.items():
            _check_entry(file, f"{table}.{name}", tag, reference)
    return value


def _check_entry(file: Path, table: str, tag: str, reference: object) -> None:
    if not _TAG.fullmatch(tag):
        raise HarnessError(
            f"{file}: [{table}] has the tag {tag!r}; use letters, digits, '-', '_' and '.'"
        )
    if not isinstance(reference, str) or ":" not in reference:
        raise HarnessError(
            f"{file}: {table}.{tag} is {reference!r} and must be a string module:object, "
            "such as 'crash_tests.kv:target'"
        )


def _is_seed(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_TABLE: Final = (lambda value: isinstance(value, dict), "a table of tags, each module:object")
_MEMBERS: Final[Mapping[str, tuple[_Check, str]]] = MappingProxyType(
    {
        "model": (
            lambda value: isinstance(value, str) and value in MODELS,
            f"one of {', '.join(MODELS)}",
        ),
        "seconds": (is_time, FORM),
        "seed": (_is_seed, "a whole number from 0"),
        "targets": _TABLE,
        "workloads": _TABLE,
        "mutants": _TABLE,
    }
)
