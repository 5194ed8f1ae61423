"""A sample of images: what ``powercut try`` says about fsyncs that were not tried on the others."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.unit.fuse.recorded import needs_mounts, powercut_in

pytestmark = needs_mounts

PAGES = """
import os
file = os.open("pages", os.O_RDWR)
for number in range(1, 31):
    os.pwrite(file, bytes([number]) * 4096, number % 8 * 4096)
print("saved", flush=True)
"""
CHECK = """
with open("pages", "rb") as file:
    pages = [file.read(4096) for _ in range(8)]
assert all(len(set(page)) == 1 for page in pages)
"""


@pytest.mark.parametrize("most_checks", [20, 32])
def test_a_page_that_a_sample_has_torn_only_later_is_not_repaired_by_an_fsync(
    tmp_path: Path, most_checks: int
) -> None:
    (tmp_path / "pages.py").write_text(PAGES, encoding="ascii")
    (tmp_path / "check.py").write_text(CHECK, encoding="ascii")
    python = f"{sys.executable} {tmp_path}"
    options = ("--setup", "head -c 32768 /dev/zero > pages", "--model", "ext4")
    result = powercut_in(
        tmp_path, "try", "-n", str(most_checks), *options, "--check", f"{python}/check.py",
        "--", sys.executable, f"{tmp_path}/pages.py",
    )  # fmt: skip
    assert result.returncode == 1, result.stderr
    assert "  cause     no fsync helps: none fits between the lost call and" in result.stdout
    assert "the changes of /pages are not atomic" in result.stdout


def test_other_states_are_not_said_to_pass_with_an_fsync(tmp_path: Path) -> None:
    script = "for each in 1 2 3 4 5 6 7 8 9 10 11 12 13; do echo $each >> f; done; echo saved"
    check = 'touch f; ! grep -q saved "$POWERCUT_ACKS" || test $(wc -l < f) = 13'
    options = ("-n", "12", "--model", "ext4", "--check", check)
    result = powercut_in(tmp_path, "try", *options, "--", "sh", "-c", script)
    assert result.returncode == 1, result.stderr
    expected = (
        r"with that fsync, \d+ failing states? (is|are) impossible; "
        r"others were not checked with it \(sampled\)"
    )
    assert re.search(expected, result.stdout)
