"""An event log on a device that fails one write; needs root, FUSE and loop devices.

On ext4 of Linux 6.18, what a program writes again over a failed append is lost, although its
barrier succeeds, unless the page cache has dropped the place before.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from powercut.calibrate import image_device
from powercut.calibrate.file_system import FILE_SYSTEMS
from powercut.calibrate.real_file_system import real_file_system
from powercut.calibrate.requirements import missing_requirements
from powercut.calibrate.write_log import Flush, Survivors
from powercut.fuse.mount import path_of
from system.errors import LogStopped
from system.host import RealFileSystem, reading_host
from system.storage.event_log import EventLog
from system.storage.framing import Framing
from tests.crash_tests import failing_images
from tests.unit.system.logs import PATH, SESSION, both_framings, say, texts

HOST = reading_host("")
LINE = failing_images.FAILS_ONCE.decode() + 5000 * "."


@pytest.mark.parametrize("name", ["ext4", "xfs", "btrfs"])
@both_framings
def test_lines_that_are_written_after_a_failed_write_survive_a_power_cut(
    name: str, framing: Framing, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = missing_requirements([FILE_SYSTEMS[name]])
    if missing:
        pytest.skip("; ".join(missing))
    monkeypatch.setattr(image_device, "serve", failing_images.serve)
    with real_file_system(FILE_SYSTEMS[name]) as system:
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
        requests = system.devices.end_log()[:length]
        last = max(number for number, each in enumerate(requests) if isinstance(each, Flush))
        system.devices.create_crash_image("crash", Survivors(last))
        with system.mounted("crash") as mounted:
            log = opened(path_of(mounted), framing)
            assert (texts(log), log.report.lost_nothing) == (found, True)
            log.close()
    assert [text for text in found if text != LINE] == ["before", "after"]


def opened(root: str, framing: Framing) -> EventLog:
    host = replace(HOST, files=RealFileSystem(root))
    return EventLog.open(host, PATH, SESSION, framing)
