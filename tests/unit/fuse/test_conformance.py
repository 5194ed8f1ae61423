"""The mount behaves like a directory of Linux: the conformance suite runs in it.

The suite compares the simulated process with a real directory, which is in ``TMPDIR``. Here that
directory is on the mount, so its real half tests the front.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.meta.source_tree import ROOT
from tests.unit.fuse.recorded import needs_mounts, recorded

pytestmark = needs_mounts

DIFFERENCES = {
    "test_the_root_can_be_neither_removed_nor_moved": "the root is on another file system: EXDEV",
    "test_a_chown_that_changes_nothing_needs_the_owner_only_where_it_clears_setuid": (
        "the kernel leaves it to the server to clear setuid, and then does not check the owner"
    ),
}
"""Tests of the suite that fail on a mount, each with the reason."""


def test_the_conformance_suite_passes_in_the_mount(tmp_path: Path) -> None:
    selected = " and ".join(["real", "not machine", *(f"not {name}" for name in DIFFERENCES)])
    recording = recorded(
        tmp_path,
        f"TMPDIR=$PWD; export TMPDIR; cd {ROOT}; exec {sys.executable} -m pytest -vv -n 0 "
        f'-p no:cacheprovider -k "{selected}" tests/conformance',
    )
    lines = [text for _, text in recording.acknowledgements]
    passed = [line for line in lines if " PASSED " in line]
    assert recording.exit_status == 0, "\n".join(lines)
    assert len(passed) > 200
