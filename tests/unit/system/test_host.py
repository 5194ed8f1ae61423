"""The real host implements the ports on this machine."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import threading
from functools import partial
from pathlib import Path

import apsw
import pytest

from system.errors import BadRootPath
from system.host import MOST_ROOT_PATH_BYTES, RealFileSystem, RealIds, reading_host, real_host, run
from system.ports import FileKind, Host, OpenMode
from system.workers import THREADS


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return real_host(str(tmp_path))


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The directories that ``os.fsync`` has made durable."""
    paths: list[Path] = []
    monkeypatch.setattr(
        os, "fsync", lambda fd: paths.append(Path(os.readlink(f"/proc/self/fd/{fd}")))
    )
    return paths


def test_a_missing_root_is_made_durably_with_its_ancestors(
    tmp_path: Path, synced: list[Path]
) -> None:
    root = tmp_path / "a" / "b"

    real_host(str(root))

    assert root.is_dir()
    assert synced == [*reversed(tmp_path.parents), tmp_path, root.parent]


def test_an_existing_root_may_still_need_a_barrier(tmp_path: Path, synced: list[Path]) -> None:
    real_host(str(tmp_path))

    assert synced == [tmp_path.parent]


def test_a_root_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    host = real_host("data")
    monkeypatch.chdir("/")

    host.files.mkdir("x")

    assert (tmp_path / "data" / "x").is_dir()


def test_a_root_in_a_directory_that_may_not_be_read_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: str, flags: int) -> int:
        raise PermissionError(path)

    monkeypatch.setattr(os, "open", refused)
    host = real_host(str(tmp_path))

    assert host.files.kind("") is FileKind.DIRECTORY


def test_a_root_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(OSError, match="File exists"):
        real_host(str(tmp_path / "file" / "below"))


def test_open_modes_do_what_they_say(host: Host) -> None:
    with pytest.raises(FileNotFoundError):
        host.files.open("f", OpenMode.WRITE)
    created = host.files.open("f", OpenMode.CREATE)
    with pytest.raises(FileExistsError):
        host.files.open("f", OpenMode.CREATE)

    assert created.pwrite(b"0123456789", 0) == 10
    created.truncate(4)
    appending = host.files.open("f", OpenMode.APPEND)
    assert appending.append(b"xy") == 2
    written = host.files.open("f", OpenMode.WRITE)
    assert written.pwrite(b"_", 1) == 1
    reading = host.files.open("f", OpenMode.READ)
    assert (reading.pread(100, 1), reading.size()) == (b"_23xy", 6)
    with pytest.raises(OSError, match="Bad file descriptor"):
        reading.pwrite(b"x", 0)
    for file in (created, appending, written):
        file.fsync()
        file.fdatasync()
        file.close()
    reading.close()


@pytest.mark.parametrize("call", ["fsync", "fdatasync"])
def test_a_barrier_on_a_file_is_the_call_of_that_name(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    synced: list[str] = []
    file = host.files.open("x", OpenMode.CREATE)
    monkeypatch.setattr(os, call, lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))

    getattr(file, call)()

    assert synced == [str(tmp_path / "x")]
    file.close()


def test_a_lock_keeps_others_out_until_it_is_closed(host: Host) -> None:
    host.files.open("runtime.lock", OpenMode.CREATE).close()
    first = host.files.open("runtime.lock", OpenMode.WRITE)
    second = host.files.open("runtime.lock", OpenMode.WRITE)
    first.lock()

    with pytest.raises(BlockingIOError):
        second.lock()

    first.close()
    second.lock()
    second.close()


def test_a_closed_file_does_nothing_to_the_next_one_with_its_descriptor(
    host: Host, tmp_path: Path
) -> None:
    closed = host.files.open("one", OpenMode.CREATE)
    before = os.dup(0)
    closed.close()
    other = os.open(tmp_path / "two", os.O_CREAT | os.O_RDWR)
    assert other < before, "it has the descriptor of the closed file"
    for call in (partial(closed.pwrite, b"x", 0), partial(closed.append, b"x"), closed.close):
        with pytest.raises(OSError, match="Bad file descriptor"):
            call()
    assert os.fstat(other).st_size == 0
    os.close(other)
    os.close(before)


def test_names_are_moved_listed_and_removed(host: Host) -> None:
    host.files.mkdir("d")
    for name in ("d/b", "d/a", "d/c"):
        host.files.open(name, OpenMode.CREATE).close()

    host.files.replace("d/c", "d/a")
    host.files.sync_dir("d")
    assert host.files.listdir("d") == ["a", "b"]

    host.files.unlink("d/a")
    host.files.unlink("d/b")
    host.files.rmdir("d")
    assert host.files.listdir("") == []


def test_kinds_of_files_are_distinguished(host: Host, tmp_path: Path) -> None:
    host.files.mkdir("directory")
    host.files.open("file", OpenMode.CREATE).close()
    os.mkfifo(tmp_path / "pipe")
    for target, name in (("directory", "link"), ("nothing", "dangling"), ("loop", "loop")):
        os.symlink(target, tmp_path / name)

    kinds = {name: host.files.kind(name) for name in ["", "nothing", *os.listdir(tmp_path)]}

    assert kinds == {
        "": FileKind.DIRECTORY,
        "nothing": None,
        "directory": FileKind.DIRECTORY,
        "file": FileKind.FILE,
        "pipe": FileKind.OTHER,
        "link": FileKind.DIRECTORY,
        "dangling": FileKind.OTHER,
        "loop": FileKind.OTHER,
    }


def test_without_a_root_a_path_is_taken_as_it_is(host: Host, tmp_path: Path) -> None:
    RealFileSystem("").mkdir(str(tmp_path / "x"))

    assert host.files.kind("x") is FileKind.DIRECTORY


def test_clocks_run_forward(host: Host) -> None:
    assert host.clock.wall_ns() > 1_700_000_000 * 10**9
    before = host.clock.monotonic_ns()
    assert host.clock.monotonic_ns() >= before


def test_ids_are_hex_and_differ(host: Host) -> None:
    assert re.fullmatch("[0-9a-f]{32}", host.ids.uuid_hex())
    assert host.ids.uuid_hex() != host.ids.uuid_hex()
    assert [len(host.ids.random_hex(digits)) for digits in (1, 7, 8)] == [1, 7, 8]
    assert re.fullmatch("[0-9a-f]{16}", host.ids.random_hex(16))


def test_no_id_is_given_twice_by_several_threads() -> None:
    ids, given = RealIds(), list[str]()
    threads = [
        threading.Thread(target=lambda: given.extend(ids.random_hex(15) for _ in range(2000)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(given) == len(set(given)) == 8000


def test_a_child_process_gives_other_ids_than_its_parent() -> None:
    ids = RealIds()
    ids.uuid_hex()
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writing, ids.uuid_hex().encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 32).decode() != ids.uuid_hex()
    os.close(reading)
    os.close(writing)


def test_a_database_is_in_wal_mode_fully_synchronous_and_exclusive(host: Host) -> None:
    connection = host.database.open("state.db")

    found = [connection.execute(f"PRAGMA {name}").fetchone() for name in
             ("journal_mode", "synchronous", "locking_mode")]  # fmt: skip
    connection.execute("CREATE TABLE t (x); INSERT INTO t VALUES (7)").fetchall()

    assert found == [("wal",), (2,), ("exclusive",)]
    # The shared-memory file would be there if WAL had been entered before exclusive mode.
    assert sorted(host.files.listdir("")) == ["state.db", "state.db-wal"]
    connection.close()


def root_of(tmp_path: Path, size_bytes: int) -> Path:
    """A path of so many bytes, whose names are short enough."""
    parents = tmp_path / ("x" * 100) / ("y" * 100)
    left = size_bytes - len(str(parents)) - 1
    return parents / ("z" * (left // 2)) / ("z" * (left - left // 2 - 1))


def test_the_longest_path_of_a_root_is_the_longest_that_sqlite_opens(tmp_path: Path) -> None:
    longest, longer = (root_of(tmp_path, MOST_ROOT_PATH_BYTES + more) for more in (0, 1))
    assert len(str(longest)) == 495
    real_host(str(longest)).database.open("state.db").close()
    with pytest.raises(
        BadRootPath, match=r"the path has bytes=496, SQLite takes at most 495; name"
    ):
        real_host(str(longer))
    assert not longer.exists()
    longer.mkdir(parents=True)
    with pytest.raises(apsw.CantOpenError):
        apsw.Connection(str(longer / "state.db"))
    with pytest.raises(BadRootPath, match="bytes=496"):
        reading_host(str(longer)).database.open("state.db")


def test_a_path_counts_with_its_links_resolved(tmp_path: Path) -> None:
    longer = root_of(tmp_path, MOST_ROOT_PATH_BYTES + 1)
    longer.mkdir(parents=True)
    (tmp_path / "link").symlink_to(longer)
    with pytest.raises(BadRootPath, match="bytes=496"):
        real_host(str(tmp_path / "link"))


def test_a_path_that_is_not_utf_8_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(BadRootPath, match="the path is not UTF-8, as SQLite requires it; name"):
        real_host(str(tmp_path / "odd\udcff"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("times", [1, 2])
def test_a_caller_that_is_cancelled_hears_of_it_when_its_call_has_ended(
    host: Host, times: int
) -> None:
    begun, go_on, log = threading.Event(), threading.Event(), list[str]()

    def work() -> None:
        begun.set()
        assert go_on.wait(10)
        log.append("written")

    async def main() -> None:
        task = asyncio.create_task(host.workers.run(work))
        assert await asyncio.to_thread(begun.wait, 10)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0.01)
        assert not task.done()
        go_on.set()
        await asyncio.wait([task])
        assert task.cancelled()

    run(main())
    assert log == ["written"]


def test_a_call_that_had_not_begun_when_its_caller_was_cancelled_is_dropped(host: Host) -> None:
    go_on, log = threading.Event(), list[str]()

    async def main() -> None:
        busy = [asyncio.create_task(host.workers.run(go_on.wait)) for _ in range(THREADS)]
        await asyncio.sleep(0.01)
        last = asyncio.create_task(host.workers.run(lambda: log.append("written")))
        await asyncio.sleep(0.01)
        last.cancel()
        await asyncio.wait([last])
        go_on.set()
        await asyncio.gather(*busy)

    run(main())
    assert log == []


def test_a_fifo_in_place_of_a_file_is_refused_and_keeps_nobody_waiting(
    host: Host, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "f")
    for mode in (OpenMode.READ, OpenMode.WRITE, OpenMode.APPEND):
        with pytest.raises(OSError, match=r"it is not a regular file|No such device"):
            host.files.open("f", mode)


def test_a_file_whose_size_the_disk_refuses_leaves_no_descriptor_open(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(b"")
    refused: list[int] = []

    def fstat(descriptor: int) -> os.stat_result:
        refused.append(descriptor)
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", fstat)
        with pytest.raises(OSError, match="Input/output"):
            host.files.open("f", OpenMode.READ)

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(refused[0])


def test_more_calls_than_threads_all_end_and_each_caller_gets_its_own_outcome(host: Host) -> None:
    def fail() -> None:
        raise LookupError("7")

    async def main() -> list[object]:
        calls = [host.workers.run(partial(int, n)) for n in range(20 * THREADS)]
        return await asyncio.gather(*calls, host.workers.run(fail), return_exceptions=True)

    for _ in range(2):
        *results, failure = run(main())
        assert results == list(range(20 * THREADS))
        assert isinstance(failure, LookupError)


def test_run_ends_tasks_that_a_cancelled_task_starts() -> None:
    cancelled: list[str] = []

    async def work(name: str, *following: str) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.append(name)
            if following:
                started.append(asyncio.create_task(work(*following)))
            raise

    started: list[asyncio.Task[None]] = []

    async def main() -> str:
        started.append(asyncio.create_task(work("first", "second", "third")))
        await asyncio.sleep(0)
        return "done"

    assert run(main()) == "done"
    assert cancelled == ["first", "second", "third"]
    assert all(task.done() for task in started)
