"""The real current directory of an interposed process, which C libraries see."""

from __future__ import annotations

import ctypes
import errno
import os

import pytest

from powercut.interpose.interposed import interposed
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from tests.meta.source_tree import run_python

C_LIBRARY = ctypes.CDLL(None, use_errno=True)
PROGRAM = """\
from powercut.interpose.interposed import interposed
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
with interposed(Process(Disk())):
    import os
    try:
        os.missing
    except AttributeError as error:
        print(error)
"""


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("open", (b"name", os.O_CREAT | os.O_RDWR, 0o600)),
        ("mkdir", (b"name", 0o700)),
        ("symlink", (b"target", b"name")),
    ],
)
def test_a_c_library_can_make_nothing_there(call: str, arguments: tuple[object, ...]) -> None:
    with interposed(Process(Disk()), sandbox=False):
        assert C_LIBRARY[call](*arguments) == -1
        assert ctypes.get_errno() == errno.ENOENT


def test_it_exists_while_a_program_without_a_script_runs() -> None:
    """CPython 3.13 asks for it when a module lacks an attribute (its issue 130932)."""
    with interposed(Process(Disk()), sandbox=False):
        assert os.path.isdir(os.readlink("/proc/self/cwd"))
    finished = run_python("-c", PROGRAM)
    assert finished.stdout == "module 'os' has no attribute 'missing'\n", finished.stderr
