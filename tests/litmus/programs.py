"""Random programs: up to seven calls on four files in three directories."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from sim.disk.calls.process import Process
from sim.disk.crash.persistence import POSIX, PersistenceModel
from sim.disk.disk import Disk
from tests.litmus.body import Calls, prepared

FILES = ("f", "g", "d/f", "e/g")
DIRECTORIES = ("", "d", "e")

Program = list[tuple[Any, ...]]

_write = st.tuples(
    st.just("write"),
    st.sampled_from(FILES),
    st.sampled_from(("A1", "B2", "C3")),
    st.sampled_from((0, 1, 511, 4095)),
)
_write_synced = st.tuples(
    st.just("write_synced"),
    st.sampled_from(FILES),
    st.sampled_from(("A1", "B2")),
    st.sampled_from((0, 1, 4095, 4096)),
)
_write_direct = st.tuples(
    st.just("write_direct"),
    st.sampled_from(FILES),
    st.sampled_from(("A1", "B2")),
    st.sampled_from((0, 511, 4095)),
)
_append = st.tuples(st.just("append"), st.sampled_from(FILES), st.sampled_from(("B1", "C2")))
_truncate = st.tuples(
    st.just("truncate"), st.sampled_from(FILES), st.sampled_from((0, 1, 2, 512, 4096))
)
_allocate = st.tuples(
    st.just("allocate"),
    st.sampled_from(FILES),
    st.sampled_from((0, 2)),
    st.sampled_from((1, 3, 4096)),
)
_rename = st.tuples(st.just("rename"), st.sampled_from(FILES), st.sampled_from(FILES))
_rename_directory = st.tuples(
    st.just("rename"), st.sampled_from(("d", "e", "h")), st.sampled_from(("d", "e", "h", "e/h"))
)
_link = st.tuples(st.just("link"), st.sampled_from(FILES), st.sampled_from(FILES))
_unlink = st.tuples(st.just("unlink"), st.sampled_from(FILES))
_mkdir = st.tuples(st.just("mkdir"), st.sampled_from(("e", "h", "d/e")))
_rmdir = st.tuples(st.just("rmdir"), st.sampled_from(("e", "d/e")))
_chmod = st.tuples(st.just("chmod"), st.sampled_from(FILES), st.sampled_from((0o600, 0o640)))
_fsync = st.tuples(st.just("fsync"), st.sampled_from((*FILES, *DIRECTORIES)))
_fdatasync = st.tuples(st.just("fdatasync"), st.sampled_from((*FILES, *DIRECTORIES)))
_sync = st.just(("sync",))

CALLS: st.SearchStrategy[tuple[Any, ...]] = (
    _write | _write_synced | _write_direct | _append | _truncate | _allocate | _rename
    | _rename_directory | _link | _unlink | _mkdir | _rmdir | _chmod | _fsync | _fdatasync | _sync
)  # fmt: skip
PROGRAMS = st.lists(CALLS, min_size=1, max_size=7)


def _setup(disk: Calls) -> None:
    disk.mkdir("d")
    disk.write("f", "A3")
    disk.write("d/f", "A2")


SETUP = prepared(_setup)


def run(program: Program, process: Process) -> None:
    """Run a program; a call that the file system refuses must leave no operation."""
    disk, calls = process.disk, Calls(process)
    for name, *arguments in program:
        before = disk.operations
        try:
            getattr(calls, name)(*arguments)
        except OSError:
            assert disk.operations == before, (name, arguments)


def disk_after(program: Program, model: PersistenceModel = POSIX) -> Disk:
    """Return a disk that began as ``SETUP``, after a program; its journal has only the program."""
    disk = Disk(SETUP, model)
    run(program, Process(disk))
    return disk
