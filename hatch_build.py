"""Build hook of the wheel: every package of ours becomes a part of ``powercut``.

The checkout has flat packages (``sim``, ``faults``, ``oracles``); two wheels that both ship
``sim`` would overwrite each other. The hook copies the packages under ``powercut/`` and prefixes
their names where they are imported. Editable installs stay flat.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

MOVED = ("sim", "faults", "oracles")
LEFT_OUT = ("oracles/durable", "oracles/recording", "oracles/runtime")
"""The oracle of the runtime stays in the checkout, as the runtime does."""

_NAME = re.compile(rf"^(\s*from |.*?import_module\(\"|\s+\"\w+\": \")({'|'.join(MOVED)})(?=[.\" ])")


class RelocatingHook(BuildHookInterface[Any]):
    """Fills the wheel with ``powercut`` and, below it, the packages in ``MOVED``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Copy the packages to a folder of their own and hand that to the builder."""
        if version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        root, copy = Path(self.root), Path(self._folder.name)
        left_out = {str(root / name) for name in LEFT_OUT}

        def ignore(folder: str, names: list[str]) -> list[str]:
            return [
                name
                for name in names
                if name == "__pycache__" or str(Path(folder, name)) in left_out
            ]

        shutil.copytree(root / "powercut", copy, dirs_exist_ok=True, ignore=ignore)
        for package in MOVED:
            shutil.copytree(root / package, copy / package, ignore=ignore)
        for path in sorted(copy.rglob("*.py")):
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            path.write_text(
                "".join(_NAME.sub(r"\1powercut.\2", line) for line in lines), encoding="utf-8"
            )
        build_data["force_include"][str(copy)] = "powercut"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the copies."""
        del version, build_data, artifact_path
        if hasattr(self, "_folder"):
            self._folder.cleanup()
