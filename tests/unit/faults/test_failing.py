"""Calls that fail: the right errno, at the right call, and nothing changed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest

from sim.disk.calls.process import Process
from tests.unit.faults.faulty_disk import faulty_disk

Call = Callable[[Process], object]


def _with_descriptor(call: Callable[[Process, int], object]) -> Call:
    def with_descriptor(process: Process) -> None:
        descriptor = process.open("/f", os.O_RDWR)
        try:
            call(process, descriptor)
        finally:
            process.close(descriptor)

    return with_descriptor


_CALLS: dict[str, Call] = {
    "create": lambda process: process.close(process.open("/new", os.O_CREAT, 0o644)),
    "write": _with_descriptor(lambda process, descriptor: process.write(descriptor, b"x")),
    "resize": lambda process: process.truncate("/f", 1),
    "link": lambda process: process.link("/f", "/g"),
    "unlink": lambda process: process.unlink("/f"),
    "rename": lambda process: process.replace("/f", "/g"),
    "attributes": lambda process: process.chmod("/f", 0o600),
    "fsync": _with_descriptor(lambda process, descriptor: process.fsync(descriptor)),
    "read": _with_descriptor(lambda process, descriptor: process.read(descriptor, 9)),
    "open": lambda process: process.close(process.open("/f", os.O_RDONLY)),
    "close": lambda process: process.close(process.open("/f", os.O_RDONLY)),
}


def _errno_of(calls: str) -> str:
    return "EINTR" if calls in {"read", "open", "close"} else "EROFS"


@pytest.mark.parametrize("calls", _CALLS)
def test_a_call_of_its_kind_fails_once_and_changes_nothing(calls: str) -> None:
    faulty = faulty_disk(f"{calls} * #1 {_errno_of(calls)}", {"/f": b"content"})
    untouched = faulty.disk.snapshot().digest()
    with pytest.raises(OSError, match=r"Read-only|Interrupted") as raised:
        _CALLS[calls](faulty.process)
    assert errno.errorcode[raised.value.errno or 0] == _errno_of(calls)
    assert faulty.disk.snapshot().digest() == untouched
    assert faulty.disk.operations == 0
    _CALLS[calls](faulty.process)
    assert faulty.faults.fired == (1,)


@pytest.mark.parametrize("calls", _CALLS)
def test_a_rule_for_the_second_call_spares_the_first(calls: str) -> None:
    faulty = faulty_disk(f"{calls} * #2 {_errno_of(calls)}", {"/f": b"content"})
    _CALLS[calls](faulty.process)
    assert faulty.faults.fired == (0,)


@pytest.mark.parametrize("calls", _CALLS)
def test_a_rule_spares_other_calls_and_other_paths(calls: str) -> None:
    for other, call in _CALLS.items():
        plan = f"{calls} * {_errno_of(calls)}; {other} /elsewhere* {_errno_of(other)}"
        faulty = faulty_disk(plan, {"/f": b"content"})
        if calls != other and (calls, other) not in _IMPLIED:
            call(faulty.process)
            assert faulty.faults.fired == (0, 0)


# A call through a descriptor opens and closes one.
_IMPLIED = {
    (implied, other)
    for implied in ("open", "close")
    for other in ("create", "write", "fsync", "read", "open", "close")
}


def test_a_sticky_error_repeats_at_every_later_call() -> None:
    faulty = faulty_disk("read * #2+ EIO", {"/f": b"content"})
    assert faulty.read("/f") == b"content"
    for _ in range(3):
        with pytest.raises(OSError, match="Input/output error"):
            faulty.read("/f")
    assert faulty.faults.fired == (3,)
    faulty.faults.lift()
    assert faulty.read("/f") == b"content"


def test_an_interrupted_write_has_written_nothing_and_can_be_repeated() -> None:
    faulty = faulty_disk("write * #1 EINTR")
    descriptor = faulty.opened("/f")
    with pytest.raises(InterruptedError):
        faulty.process.write(descriptor, b"abc")
    assert faulty.process.write(descriptor, b"abc") == 3
    assert faulty.read("/f") == b"abc"


def test_a_file_system_is_read_only_from_an_operation_on() -> None:
    faulty = faulty_disk("change * from 3 EROFS")
    descriptor = faulty.opened("/f")
    faulty.process.write(descriptor, b"abc")
    for call in (
        lambda: faulty.process.write(descriptor, b"x"),
        lambda: faulty.process.fsync(descriptor),
        lambda: faulty.process.unlink("/f"),
        lambda: faulty.opened("/g"),
    ):
        with pytest.raises(OSError, match="Read-only") as raised:
            call()
        assert raised.value.errno == errno.EROFS
    assert faulty.read("/f") == b"abc"
    assert faulty.disk.operations == 2


def test_a_rename_matches_by_either_name() -> None:
    faulty = faulty_disk("rename /new #1 EIO; rename /old #1 EIO", {"/old": b""})
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output"):
            faulty.process.replace("/old", "/new")
    assert faulty.faults.fired == (1, 1)
    faulty.process.replace("/old", "/new")


def test_sync_of_everything_cannot_fail() -> None:
    faulty = faulty_disk("fsync * EIO:ext4; change * EROFS", {"/f": b""})
    faulty.process.sync()
    assert faulty.faults.fired == (0, 0)


def test_descriptors_run_out_above_their_number() -> None:
    faulty = faulty_disk("open * above 2 EMFILE", {"/f": b""})
    first = faulty.opened("/f")
    faulty.opened("/g")
    with pytest.raises(OSError, match="Too many open files") as raised:
        faulty.opened("/h")
    assert raised.value.errno == errno.EMFILE
    assert "/h" not in dict(faulty.disk.snapshot().tree())
    faulty.process.close(first)
    faulty.opened("/h")
    assert faulty.faults.fired == (1,)


def test_a_close_that_fails_closes_the_descriptor_nevertheless() -> None:
    faulty = faulty_disk("close * #1 EIO", {"/f": b""})
    descriptor = faulty.opened("/f")
    with pytest.raises(OSError, match="Input/output"):
        faulty.process.close(descriptor)
    with pytest.raises(OSError, match="Bad file descriptor"):
        faulty.process.close(descriptor)


def test_an_error_names_the_path_that_the_program_used() -> None:
    faulty = faulty_disk("read * #1 EIO", {"/f": b"x"})
    with pytest.raises(OSError, match="Input/output") as raised:
        faulty.read("/f")
    assert (raised.value.errno, raised.value.filename) == (errno.EIO, "/f")
