"""Loop devices: an error names the remedy."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from powercut.calibrate.loop_device import attach


def test_a_free_device_without_a_node_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container has the nodes that its host had when it was started."""
    image = tmp_path / "image"
    image.touch()
    real = os.open

    def opened(path: str, flags: int) -> int:
        return real("/dev/null" if path == "/dev/loop-control" else path, flags)

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(fcntl, "ioctl", lambda *_arguments: 987654)
    with pytest.raises(FileNotFoundError, match="create it: mknod /dev/loop987654 b 7 987654"):
        attach(str(image))
