"""A recovery unit that reads what the check has changed is executed within it."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from oracles.history import History, Known
from powercut.explorer.explore import explore
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.recovery_unit import recovery_unit
from sim.disk.calls.process import Process

LAZY = Limits(engine=Engine.LAZY)


def _files(process: Process, ack: History) -> None:
    """Make the files /a and /b durable, and the directory /d, which contains a directory."""
    for name in ("/a", "/b"):
        descriptor = process.open(name, os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, name.encode())
    process.mkdir("/d")
    process.mkdir("/d/e")
    process.sync()
    ack("files")
    process.mkdir("/end")


def _links_of(process: Process, path: str) -> int:
    return process.stat(path).st_nlink


def _content_of(process: Process, path: str) -> bytes | None:
    if not process.access(path, os.F_OK):
        return None
    return process.read(process.open(path, os.O_RDONLY), 99)


def _is_there(process: Process, path: str) -> bool:
    return process.access(path, os.F_OK)


def _mtime_of(process: Process, path: str) -> int:
    return process.stat(path).st_mtime_ns


def _mode_of(process: Process, path: str) -> int:
    return process.stat(path).st_mode & 0o777


def _link(process: Process) -> None:
    process.link("/a", "/other")
    assert recovery_unit(process, _links_of, "/a") == 2


def _unlink_one_of_two(process: Process) -> None:
    if not process.access("/end", os.F_OK):
        return
    process.link("/a", "/c")
    process.unlink("/c")
    assert recovery_unit(process, _links_of, "/a") == 1


def _replace(process: Process) -> None:
    process.rename("/a", "/b")
    assert recovery_unit(process, _content_of, "/b") == b"/a"


def _rename(process: Process) -> None:
    process.rename("/a", "/c")
    assert not recovery_unit(process, _is_there, "/a")


def _rename_to_a_new_name(process: Process) -> None:
    process.rename("/a", "/c")
    assert recovery_unit(process, _is_there, "/c")


def _names_in(process: Process, path: str) -> list[str]:
    return process.listdir(path)


def _rename_out_of(process: Process) -> None:
    process.rename("/d/e", "/e")
    assert recovery_unit(process, _names_in, "/d") == []


def _rmdir(process: Process) -> None:
    process.rmdir("/d/e")
    assert recovery_unit(process, _links_of, "/d") == 2


def _make_in(process: Process) -> None:
    before = process.stat("/d").st_mtime_ns
    process.disk.now_ns = lambda: before + 1_000_000
    process.mkdir("/d/new")
    assert recovery_unit(process, _mtime_of, "/d") != before


def _chmod(process: Process) -> None:
    process.chmod("/a", 0o600)
    assert recovery_unit(process, _mode_of, "/a") == 0o600


def _replace_of_two_links(process: Process) -> None:
    process.rename("/a", "/two")
    assert recovery_unit(process, _links_of, "/one") == 1


@pytest.mark.parametrize(
    "change",
    [
        _link,
        _unlink_one_of_two,
        _replace,
        _rename,
        _rmdir,
        _make_in,
        _chmod,
        _rename_to_a_new_name,
        _rename_out_of,
    ],
)
def test_a_unit_sees_what_the_check_has_changed(change: Callable[[Process], None]) -> None:
    def check(process: Process, known: Known) -> None:
        if known.acknowledged:
            change(process)

    found = explore(_files, check, "ext4", LAZY)
    assert (found.is_lazy, found.safe, len(found.within)) == (True, True, 1)


def test_a_unit_sees_that_a_rename_has_taken_a_link() -> None:
    def linked(process: Process, ack: History) -> None:
        process.close(process.open("/one", os.O_CREAT | os.O_WRONLY))
        process.link("/one", "/two")
        process.close(process.open("/a", os.O_CREAT | os.O_WRONLY))
        process.sync()
        ack("linked")

    def check(process: Process, known: Known) -> None:
        if known.acknowledged:
            _replace_of_two_links(process)

    found = explore(linked, check, "ext4", LAZY)
    assert (found.is_lazy, found.safe, len(found.within)) == (True, True, 1)
