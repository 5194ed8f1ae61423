"""Machines that cannot mount a disk."""

from __future__ import annotations

import os

import pytest

from powercut.fuse import disk_mount
from powercut.fuse.device import FUSE
from powercut.fuse.disk_mount import CannotMount, prepare_mounts


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/dev/no-such", "No such file or directory"),
        (os.devnull, "another file is in its place"),
    ],
)
def test_a_device_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, path: str, reason: str
) -> None:
    monkeypatch.setattr(disk_mount, "FUSE", FUSE._replace(path=path))
    with pytest.raises(CannotMount, match=rf"^{path} cannot be opened \(({reason})\): modprobe"):
        prepare_mounts()
