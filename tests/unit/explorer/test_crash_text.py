"""The text of a power cut: lost pieces with their paths at the crash, neighbours as one."""

from __future__ import annotations

import os
from collections.abc import Callable

from powercut.crash_text import lost_lines, names_at
from powercut.place import Place
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import POSIX, PersistenceModel
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk


def process_on(model: PersistenceModel = POSIX) -> Process:
    return Process(Disk(model=model))


def created(process: Process, path: str, data: bytes = b"") -> int:
    descriptor = process.open(path, os.O_CREAT | os.O_RDWR)
    if data:
        process.write(descriptor, data)
    return descriptor


def lines(process: Process, lose: Callable[[str], bool], torn: bool = False) -> list[str]:
    """Lose the pieces whose text satisfies ``lose``, or tear the first one of them."""
    disk = process.disk
    micros = disk.unsynced().micros
    chosen = tuple(index for index, micro in enumerate(micros) if lose(str(micro)))
    survivors = SurvivorSet(torn=((chosen[0], 1),)) if torn else SurvivorSet(chosen)
    places = {number: Place("app.py", "save", 10 + number) for number in range(1, 20)}
    names = names_at(disk.journal, disk.operations)
    return list(lost_lines(micros, survivors, names, places))


def test_neighbouring_sectors_of_several_writes_are_one_range() -> None:
    process = process_on()
    descriptor = created(process, "/f")
    process.sync()
    process.pwrite(descriptor, b"a" * 1000, 0)
    process.pwrite(descriptor, b"b" * 500, 1000)
    process.pwrite(descriptor, b"c" * 10, 4096)
    assert lines(process, lambda text: "data" in text or "size" in text) == [
        "lost   data of /f, bytes 0 to 1500, app.py:13 and app.py:14",
        "lost   data of /f, bytes 4096 to 4106, app.py:15",
    ]


def test_a_file_whose_creation_is_lost_is_one_line() -> None:
    process = process_on()
    created(process, "/f", b"x" * 2000)
    assert lines(process, lambda _: True) == ["lost   file /f, app.py:11"]


def test_a_size_alone_is_named_with_its_bytes() -> None:
    for size, text in (1, "1 byte"), (2, "2 bytes"), (2000, "2000 bytes"):
        process = process_on()
        created(process, "/f", b"x" * size)
        assert lines(process, lambda text: "size" in text) == [
            f"lost   size of /f, {text}, app.py:12"
        ]


def test_a_torn_write_says_how_much_survived() -> None:
    process = process_on()
    process.pwrite(created(process, "/f"), b"x" * 100, 512)
    assert lines(process, lambda text: "data" in text, torn=True) == [
        "lost   data of /f, bytes 512 to 612, torn: 1 of 100 bytes survived, app.py:12"
    ]


def test_nothing_lost_is_said() -> None:
    process = process_on()
    process.mkdir("/d")
    assert lines(process, lambda _: False) == ["lost   nothing of 2 unsynced"]


def test_equal_lines_in_succession_are_one() -> None:
    process = process_on()
    process.mkdir("/d")
    process.sync()
    process.chmod("/d", 0o700)
    process.chmod("/d", 0o755)
    unsynced = process.disk.unsynced().micros
    survivors = SurvivorSet(tuple(range(len(unsynced))))
    assert len(unsynced) == 2
    names = names_at(process.disk.journal, process.disk.operations)
    assert list(lost_lines(unsynced, survivors, names)) == ["lost   attributes of /d"]


def test_at_most_five_lines_are_printed() -> None:
    process = process_on()
    for name in "abcdefgh":
        process.mkdir(f"/{name}")
    found = lines(process, lambda text: "create" in text)
    assert len(found) == 5
    assert found[3:] == ["lost   directory /d, app.py:14", "lost   and 4 more pieces"]


def test_names_are_those_of_the_crash_and_the_last_ones_of_files_without_a_name() -> None:
    process = process_on()
    for number in range(2):
        created(process, f"/t{number}")
        process.rename(f"/t{number}", "/f")
    process.mkdir("/d")
    process.rename("/f", "/d/g")
    process.unlink("/d/g")
    journal = process.disk.journal
    first, second = sorted(names_at(journal, 4))[1:]
    assert [names_at(journal, done)[first] for done in (1, 2, 4)] == ["/t0", "/f", "/f"]
    assert [names_at(journal, done)[second] for done in (3, 4, 6, 7)] == [
        "/t1", "/f", "/d/g", "/d/g",
    ]  # fmt: skip


def test_a_removed_file_has_an_absolute_path_where_the_program_passed_a_relative_one() -> None:
    process = process_on()
    process.mkdir("/d")
    process.chdir("/d")
    created(process, "f")
    process.rename("f", "g")
    process.unlink("g")
    process.mkdir("e")
    process.chdir("e")
    created(process, "f")
    process.unlink("f")
    journal = process.disk.journal
    assert [[*names_at(journal, done).values()][2:] for done in (2, 3, 4, 7)] == [
        ["/d/f"], ["/d/g"], ["/d/g"], ["/d/g", "/d/e", "/d/e/f"],
    ]  # fmt: skip


def test_an_unnamed_file_has_the_absolute_path_of_its_directory() -> None:
    process = process_on()
    process.mkdir("/d")
    process.chdir("/d")
    process.open(".", os.O_TMPFILE | os.O_WRONLY)
    assert [*names_at(process.disk.journal, 2).values()][2:] == ["an unnamed file in /d"]
