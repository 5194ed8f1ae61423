"""An event log on a device that fails one write; needs root, FUSE and loop devices.

On ext4 of Linux 6.18, what a program writes again over a failed append is lost, although its
barrier succeeds, unless the page cache has dropped the place before.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from powercut.fuse.mount import path_of
from system.errors import LogStopped
from system.host import RealFileSystem, reading_host
from system.storage.event_log import EventLog
from system.storage.framing import Framing
from tests.litmus.failing_images import (
    FAILS_ONCE,
    after_power_cut,
    file_system_on_failing_images,
)
from tests.unit.system.logs import PATH, SESSION, both_framings, say, texts

HOST = reading_host("")
LINE = 5000 * FAILS_ONCE[0]


@pytest.mark.parametrize("name", ["ext4", "xfs", "btrfs"])
@both_framings
def test_lines_that_are_written_after_a_failed_write_survive_a_power_cut(
    name: str, framing: Framing
) -> None:
    with file_system_on_failing_images(name) as system:
        system.devices.create("run")
        with system.mounted("run") as mounted:
            system.devices.start_log("run")
            log = opened(path_of(mounted), framing)
            say(log, "before")
            with pytest.raises(LogStopped, match="Input/output error"):
                say(log, LINE)
            log.close()
            log = opened(path_of(mounted), framing)
            say(log, "after")
            found = texts(log)
            length = system.devices.log_length()
            log.close()
        with after_power_cut(system, length) as mounted:
            log = opened(path_of(mounted), framing)
            assert (texts(log), log.report.lost_nothing) == (found, True)
            log.close()
    assert [text for text in found if text != LINE] == ["before", "after"]


def opened(root: str, framing: Framing) -> EventLog:
    host = replace(HOST, files=RealFileSystem(root))
    return EventLog.open(host, PATH, SESSION, framing)
