"""If a program changes several files in place, the report has a remedy for each."""

from __future__ import annotations

import os

from oracles.history import History, Known
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS
from tests.unit.explorer.test_in_place import REMEDY, begin, lines_of


def of_file(name: str) -> str:
    """Return the remedy for another file than /f."""
    return f"          {REMEDY.replace('/f', name)}"


def test_each_file_that_is_changed_in_place_has_a_remedy() -> None:
    def workload(process: Process, ack: History) -> None:
        for name in "fghij":
            begin(process, ack, f"/{name}", b"old")
        for name in "fghij":
            descriptor = process.open(f"/{name}", os.O_WRONLY | os.O_TRUNC)
            process.write(descriptor, b"new")
            process.fsync(descriptor)
            ack({f"/{name}": b"new"})

    more = "          and likewise for 2 more files"
    assert lines_of(workload) == [f"repair    {REMEDY}", of_file("/g"), of_file("/h"), more]


def test_a_file_that_is_written_while_another_one_is_empty_is_not_to_blame() -> None:
    """The log is changed while /f is empty, and then while all is right."""

    def workload(process: Process, ack: History) -> None:
        begin(process, ack, "/f", b"old")
        log = begin(process, ack, "/log", b"1")
        descriptor = process.open("/f", os.O_WRONLY | os.O_TRUNC)
        for number in (b"2", b"3"):
            process.write(log, number)
        process.write(descriptor, b"new")
        for number in (b"4", b"5"):
            process.write(log, number)
        process.sync()
        ack({"/f": b"new"})

    def check(process: Process, known: Known) -> None:
        if known.acknowledged:
            with process.open_file("/f", "rb") as file:
                assert file.read() in {b"old", b"new"}

    assert lines_of(workload, check=check) == [f"repair    {REMEDY}"]


def test_files_that_are_replaced_one_after_the_other_do_not_change_together() -> None:
    def workload(process: Process, ack: History) -> None:
        for name in ("/f", "/g"):
            with process.open_file("/new", "wb") as file:
                file.write(b"new")
                file.flush()
                process.fsync(file.fileno())
            process.rename("/new", name)
            process.sync()
        ack({"/f": b"new", "/g": b"new"})

    (line,) = lines_of(workload)
    assert line == (
        "repair    the files do not change together: write them to a new directory, fsync them and "
        "it, and rename a symbolic link to it over the one through which they are read"
    )


def test_files_that_change_by_the_rename_of_a_link_change_together() -> None:
    def workload(process: Process, ack: History) -> None:
        for value in (b"old", b"new"):
            folder = f"/{value.decode()}"
            process.mkdir(folder)
            for name in "fg":
                with process.open_file(f"{folder}/{name}", "wb") as file:
                    file.write(value)
            process.sync()
            process.symlink(folder, "/link")
            process.rename("/link", "/now")
            process.sync()
            ack({"/now/f": value, "/now/g": value})

    assert lines_of(workload, MODELS["posix"]) == []
