"""Records small shell programs; needs a machine that mounts through FUSE."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from powercut.fuse.disk_mount import MountWay, mount_way
from powercut.fuse.recording import Recording, load_recording
from tests.meta.source_tree import run_python

WAY = mount_way()
needs_mounts = pytest.mark.skipif(
    WAY not in {way.value for way in MountWay}, reason=f"no FUSE mounts here: {WAY}"
)


def powercut_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, which enters its own namespaces."""
    return run_python("-m", "powercut", *arguments, cwd=folder)


def recorded(folder: Path, script: str, *options: str) -> Recording:
    """Record a shell script, and return the saved recording."""
    result = powercut_in(folder, "record", "-o", "it.recording", *options, "--", "sh", "-c", script)
    assert result.returncode == 0, result.stderr
    return load_recording(folder / "it.recording")
