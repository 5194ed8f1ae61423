"""Direct writes: a recording keeps which writes of a program were under ``O_DIRECT``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from sim.disk.cache.operation import Write
from tests.unit.fuse.recorded import needs_mounts, powercut_in, recorded

pytestmark = needs_mounts

PROGRAM = """
import fcntl, mmap, os
page = mmap.mmap(-1, 4096)
page.write(b"b" * 4096)
fd = os.open("f", os.O_CREAT | os.O_RDWR | os.O_DIRECT)
flags = fcntl.fcntl(fd, fcntl.F_GETFL)
os.pwrite(fd, page, 0)
fcntl.fcntl(fd, fcntl.F_SETFL, flags & ~os.O_DIRECT)
os.pwrite(fd, page, 4096)
fcntl.fcntl(fd, fcntl.F_SETFL, flags)
os.pwrite(fd, page, 8192)
with mmap.mmap(fd, 4096) as stored:
    stored[:1] = b"c"
    stored.flush()
"""
SHOWN = """\
1  create of /f
2  direct write of /f, bytes 0 to 4096
3  write of /f, bytes 4096 to 8192
4  direct write of /f, bytes 8192 to 12288
5  write of /f, bytes 0 to 4096, stores to mapped memory
"""
IN_PLACE = """
import mmap, os
pages = mmap.mmap(-1, 8192)
pages.write(b"b" * 8192)
os.pwrite(os.open("f", os.O_RDWR | os.O_DIRECT | os.O_DSYNC), pages, 0)
"""


def _script(folder: Path, text: str) -> str:
    path = folder / "program.py"
    path.write_text(text, encoding="ascii")
    return f"{sys.executable} {path}"


def test_a_write_is_direct_if_the_flag_was_set_at_its_moment(tmp_path: Path) -> None:
    recording = recorded(tmp_path, _script(tmp_path, PROGRAM))
    writes = [each for each in recording.journal if isinstance(each, Write)]
    assert [each.direct for each in writes] == [True, False, True, False]
    assert powercut_in(tmp_path, "show", "it.recording").stdout.startswith(SHOWN)


def test_a_verdict_names_the_models_on_which_a_kill_tears_it(tmp_path: Path) -> None:
    result = powercut_in(
        tmp_path, "try", "--json", "-", "--setup", "printf %8192s > f", "--",
        *_script(tmp_path, IN_PLACE).split(),
    )  # fmt: skip
    (finding,) = json.loads(result.stdout)["findings"]
    assert finding["weakest"] == "at a kill on ext4-journal, btrfs and posix"
