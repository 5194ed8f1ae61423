"""A virtual environment with the built wheel in it, and only the dependencies that it names."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.meta.source_tree import run_python


def build_wheel(directory: Path) -> Path:
    """Build the wheel offline with the installed backend."""
    script = f"from hatchling.build import build_wheel; build_wheel({str(directory)!r})"
    finished = run_python("-c", script)
    assert finished.returncode == 0, finished.stderr
    (path,) = directory.glob("*.whl")
    return path


class CleanEnvironment:
    """An environment made in ``directory`` from ``wheel``, if there is one; nothing is downloaded.

    The third-party packages are linked from the environment of the tests: those that the
    wheel requires, and those of ``extras`` and ``tools``.
    """

    def __init__(
        self,
        directory: Path,
        wheel: Path | None,
        extras: tuple[str, ...] = (),
        tools: tuple[str, ...] = (),
    ) -> None:
        venv.create(directory, with_pip=False)
        self.python = directory / "bin" / "python"
        self.site = Path(
            sysconfig.get_path("purelib", vars={"base": str(directory), "platbase": str(directory)})
        )
        self.linked: dict[str, None] = {}
        required = self._install(wheel, extras) if wheel is not None else []
        for name in (*required, *tools):
            self._link(name)

    def run(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run its interpreter in ``cwd`` with no variable that would add to its path."""
        return subprocess.run(
            [str(self.python), *arguments],
            cwd=cwd,
            env={"PATH": str(self.python.parent), "HOME": str(cwd), "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    def _install(self, wheel: Path, extras: tuple[str, ...]) -> list[str]:
        """Install the wheel alone; return the names of the packages that it requires."""
        pip = [sys.executable, "-m", "pip", "--quiet", "--python", str(self.python), "install"]
        options = ["--no-deps", "--no-index", "--disable-pip-version-check"]
        subprocess.run([*pip, *options, str(wheel)], check=True, capture_output=True)
        (metadata,) = self.site.glob("powercut-*.dist-info")
        return list(_required(Distribution.at(metadata).requires or [], ("", *extras)))

    def _link(self, name: str) -> None:
        if name in self.linked:
            return
        self.linked[name] = None
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or () if ".." not in file.parts}:
            target = self.site / top
            if top != "__pycache__" and not target.exists():
                target.symlink_to(Path(str(found.locate_file(top))).resolve())
        for needed in _required(found.requires or [], ("",)):
            self._link(needed)


def _required(lines: list[str], extras: tuple[str, ...]) -> Iterator[str]:
    for requirement in map(Requirement, lines):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
            yield requirement.name
