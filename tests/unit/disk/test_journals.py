"""Journals leave the disk that wrote them: under other models, in files, from elsewhere."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from sim.disk.cache.operation import (
    Allocate,
    Create,
    DropPages,
    Link,
    Operation,
    Rename,
    Resize,
    SetAttributes,
    Sync,
    SyncFailure,
    Unlink,
    Write,
)
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.journal import Journal
from sim.disk.crash.journal_file import load_journal, save_journal
from sim.disk.crash.persistence import MODELS, SCC
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk
from sim.errors import HarnessError
from tests.litmus.programs import PROGRAMS, SETUP, Program, run

FILE, DIRECTORY, LINK = 0o100644, 0o040755, 0o120777
NOW = 1_700_000_000_000_000_000


def disk_after(program: Program, disk: Disk) -> Disk:
    run(program, Process(disk))
    return disk


def everything(image: Image) -> list[tuple[object, ...]]:
    """Return all that a program can observe of an image, times and link counts included."""
    return [
        (
            path, inode.number, inode.mode, inode.uid, inode.gid, inode.links, inode.parent,
            inode.size, inode.read(0, inode.size), inode.link_text,
            inode.atime_ns, inode.mtime_ns, inode.ctime_ns,
        )
        for path, inode in image.tree()
    ]  # fmt: skip


def busy_disk() -> Disk:
    """Return a disk with every kind of operation in its journal, and names that are awkward."""
    process = Process(Disk(SETUP))
    descriptor = process.open("/new", os.O_CREAT | os.O_RDWR)
    process.write(descriptor, bytes(range(256)) * 20)
    process.ftruncate(descriptor, 5000)
    process.fdatasync(descriptor)
    process.link("/new", b"/d/\xff\xfe")
    process.symlink("d/\N{SNOWMAN}", "/link")
    process.rename("/new", "/d/other")
    process.mkdir("/e")
    process.chmod("/d", 0o700)
    process.utime("/d", ns=(-1, 2))
    process.unlink("/f")
    process.open("/d", os.O_TMPFILE | os.O_RDWR)
    process.write(process.open("/d/other", os.O_WRONLY | os.O_DSYNC), b"synced")
    process.sync()
    return process.disk


# -- other models ----------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS.values(), ids=str)
@settings(max_examples=20)
@given(program=PROGRAMS)
def test_reading_a_journal_under_a_model_equals_running_under_it(
    model: Any, program: Program
) -> None:
    ran = disk_after(program, Disk(SETUP, model))
    read = Disk.from_journal(disk_after(program, Disk(SETUP, SCC)).journal, model)
    assert everything(read.snapshot()) == everything(ran.snapshot())
    assert read.snapshot().unsynced == ran.snapshot().unsynced
    assert (read.next_inode, read.operations) == (ran.next_inode, ran.operations)
    states = (StateSpace(disk.unsynced()).all() for disk in (read, ran))
    assert [[state.key, state.survivors] for state in next(states)] == [
        [state.key, state.survivors] for state in next(states)
    ]


def test_a_disk_from_a_journal_runs_on() -> None:
    disk = Disk.from_journal(busy_disk().journal)
    process = Process(disk)
    process.close(process.open("/d/more", os.O_CREAT | os.O_WRONLY))
    numbers = [inode.number for _, inode in disk.snapshot().tree() if inode.is_file]
    assert max(numbers) == process.stat("/d/more").st_ino
    assert disk.operations == len(busy_disk().journal) + 1


def test_a_journal_that_starts_after_a_kill_is_refused(tmp_path: Path) -> None:
    first = Disk(SETUP)
    first.write(first.inode(SETUP.cached[1].entries["f"]), 0, b"x", "/f")
    killed = Disk(first.snapshot())
    for refused in (Disk.from_journal, lambda journal: save_journal(journal, tmp_path / "j")):
        with pytest.raises(HarnessError, match="starts after a kill"):
            refused(killed.journal)
    assert not (tmp_path / "j").exists()


# -- files -----------------------------------------------------------------------------------


def test_every_operation_survives_a_file(tmp_path: Path) -> None:
    disk, path = busy_disk(), tmp_path / "journal"
    save_journal(disk.journal, path)
    loaded = load_journal(path)
    assert list(loaded) == list(disk.journal)
    assert everything(loaded.image) == everything(disk.image)
    assert everything(Disk.from_journal(loaded).snapshot()) == everything(disk.snapshot())
    again = tmp_path / "again"
    save_journal(loaded, again)
    assert again.read_bytes() == path.read_bytes()


def test_an_image_with_a_symbolic_link_survives_a_file(tmp_path: Path) -> None:
    process = Process(Disk(SETUP))
    process.symlink("d/\N{SNOWMAN}", "/link")
    process.sync()
    disk = Disk(process.disk.unmounted())
    save_journal(disk.journal, tmp_path / "journal")
    loaded = load_journal(tmp_path / "journal")
    assert everything(loaded.image) == everything(disk.image)
    assert Process(Disk(loaded.image)).readlink("/link") == "d/\N{SNOWMAN}"


@settings(max_examples=30)
@given(first=PROGRAMS, second=PROGRAMS)
def test_journals_of_random_programs_survive_a_file(
    first: Program, second: Program, tmp_path_factory: Any
) -> None:
    disk = disk_after(first, Disk(SETUP))
    survivors = SurvivorSet.of_mask(0, len(disk.unsynced().micros))
    disk = disk_after(second, Disk(disk.power_cut(survivors)))
    path = tmp_path_factory.mktemp("journals") / "journal"
    save_journal(disk.journal, path)
    loaded = load_journal(path)
    assert list(loaded) == list(disk.journal)
    assert loaded.image.digest() == disk.image.digest()
    assert Disk.from_journal(loaded).snapshot().digest() == disk.snapshot().digest()


def test_the_format_is_fixed(tmp_path: Path) -> None:
    disk = Disk(now_ns=lambda: NOW)
    file = disk.create(disk.root, "f", FILE, "/f")
    disk.write(file, 0, b"hello", "/f")
    disk.write(file, 0, b"h", "/f", direct=True)
    disk.sync(file.number, "/f")
    save_journal(disk.journal, tmp_path / "journal")
    assert (tmp_path / "journal").read_text() == (
        '{"format":"powercut journal","inodes":1,"next_inode":2,"operations":4,"version":1}\n'
        f"[1,16877,0,0,0,{NOW},{NOW},{NOW},{{}}]\n"
        f'["create","/f",2,33188,0,0,"",1,"f",{NOW}]\n'
        f'["write","/f",2,0,"aGVsbG8=",0,{NOW},false]\n'
        f'["write","/f",2,0,"aA==",5,{NOW},true]\n'
        '["sync","/f",2,false,0,0]\n'
    )


HEADER = '{"format":"powercut journal","inodes":1,"next_inode":9,"operations":0,"version":1}'
ROOT = f"[1,16877,0,0,0,0,0,0,{json.dumps({'f': 2})}]"


def header(**changed: object) -> str:
    return json.dumps(json.loads(HEADER) | changed)


def two(second: str, root: str = ROOT, **changed: object) -> str:
    return "\n".join([header(inodes=2, **changed), root, second, ""])


def one(operation: str) -> str:
    root = ROOT.replace('{"f": 2}', "{}")
    return "\n".join([header(operations=1), root, operation, ""])


BAD_FILES = {
    "": "line 1 is not JSON",
    "\xff": "line 1 is not JSON",
    "[" * 100_000: "line 1 is not JSON",
    "[]\n": "not a powercut journal",
    '{"format":"tar"}\n': "not a powercut journal",
    header(version=2) + "\n": "version 2 of its format, and this powercut reads version 1",
    header(inodes=-1) + "\n": "inodes=-1 is not a number from 0 to",
    header(inodes=1) + "\n": "announces 2 lines, each with a line end; the file has 1",
    header(inodes=0) + "\n": "no root directory, which is inode 1",
    two("[2,33188,0,0,0,0,0,0,{}]").rstrip(): "announces 3 lines",
    two("nonsense"): "line 3 is not JSON",
    two("[2,33188]"): "line 3 is not an inode",
    two('[2,"x",0,0,0,0,0,0,{}]'): "line 3: mode='x' is not a number from 0 to",
    two("[2,33188,0,0,-1,0,0,0,{}]"): "line 3: size=-1 is not a number from 0 to",
    two(f"[2,33188,0,0,{1 << 44},0,0,0,{{}}]"): "line 3: size=17592186044416 is not a number from",
    two(f"[2,33188,0,0,0,0,0,{1 << 70}.5,{{}}]"): "line 3: ctime_ns=1.1805916207174113e+21 is not",
    two("[2,33188,4294967296,0,0,0,0,0,{}]"): "line 3: uid=4294967296 and gid=0 are not numbers",
    two(f"[2,{1 << 40 | 33188},0,0,0,0,0,0,{{}}]"): "is more than a type and permission bits",
    two("[2,33188,0,0,0,0,0,0,{}]", next_inode=1 << 63): "next_inode=9223372036854775808 is not",
    two("[2,33188,0,0,0,0,0,0,[]]"): "the content does not go with mode 0o100644",
    two("[2,4516,0,0,0,0,0,0,{}]"): "the content does not go with mode 0o10644",
    two('[2,33188,0,0,9,0,0,0,{"0":"?"}]'): "block 0='?' is not base64",
    two('[2,33188,0,0,9,0,0,0,{"x":"eA=="}]'): "block x cannot have 1 bytes",
    two('[2,33188,0,0,0,0,0,0,{"0":"eA=="}]'): "block 0 goes beyond the size of 0 bytes",
    two("[1,16877,0,0,0,0,0,0,{}]"): "inode 1 is there twice",
    two("[3,33188,0,0,0,0,0,0,{}]"): "'f' means inode 2, which does not exist",
    two("[2,33188,0,0,0,0,0,0,{}]", ROOT.replace("f", "..")): "no directory entry can have",
    two("[2,33188,0,0,0,0,0,0,{}]", ROOT.replace('"f": 2', "")): "no path leads to inode 2",
    two("[2,33188,0,0,0,0,0,0,{}]", next_inode=2): "next_inode=2 is not above every inode",
    two('[2,16877,0,0,0,0,0,0,{"g":2}]'): "'g' means inode 2, which has two names",
    one("{}"): "line 3 is not an operation",
    one('["format"]'): "line 3 is not an operation",
    one('["sync","/f",2]'): "line 3: sync has 5 fields, not 2",
    one('["sync","/f",2,0,0,0]'): "line 3: data_only=0 is not of type bool",
    one('["sync","/f",true,false,0,0]'): "line 3: inode=True is not of type int",
    one('["failed_sync","/f",2,false,"zfs",0,0]'): "policy='zfs' is not of type SyncFailure",
    one('["write","/f",2,0,"%",0,0,false]'): "line 3: data='%' is not base64",
}


@pytest.mark.parametrize("number", range(len(BAD_FILES)))
def test_a_malformed_file_is_refused_in_one_sentence(number: int, tmp_path: Path) -> None:
    text, reason = list(BAD_FILES.items())[number]
    path = tmp_path / "journal"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(HarnessError, match=re.escape(reason)) as caught:
        load_journal(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_every_prefix_of_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    save_journal(busy_disk().journal, path)
    data = path.read_bytes()
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        with pytest.raises(HarnessError):
            load_journal(path)


# -- from elsewhere --------------------------------------------------------------------------

# SETUP has the files /f (3 bytes) and /d/f, and the directory /d.
F, D = SETUP.cached[1].entries["f"], SETUP.cached[1].entries["d"]

IMPOSSIBLE: list[tuple[Operation, str]] = [
    (Create("", F, FILE, 0, 0, "", 1, "g", 0), f"Create: inode {F} exists already"),
    (Create("", 0, FILE, 0, 0, "", 1, "g", 0), "an inode cannot have the number 0"),
    (Create("", 1 << 63, FILE, 0, 0, "", 1, "g", 0), "an inode cannot have the number 92233"),
    (Create("", 99, FILE, -1, 0, "", 1, "g", 0), "uid=-1 and gid=0 are not numbers from 0 to"),
    (Create("", 99, 1 << 70 | FILE, 0, 0, "", 1, "g", 0), "is more than a type and permission"),
    (Create("", 99, FILE, 0, 0, "", 1, "g" * 256, 0), "cannot be the name"),
    (SetAttributes("", F, FILE, 0, 1 << 32, 0, 0, 0), "uid=0 and gid=4294967296 are not"),
    (Create("", 99, FILE, 0, 0, "", 1, "f", 0), f"'f' in directory 1 means inode {F}, not 0"),
    (Create("", 99, FILE, 0, 0, "", F, "g", 0), f"there is no directory {F}"),
    (Create("", 99, FILE, 0, 0, "", 1, "a/b", 0), "'a/b' cannot be the name"),
    (Create("", 99, 0o010644, 0, 0, "", 1, "g", 0), "mode 0o10644 is not of a file"),
    (Create("", 99, LINK, 0, 0, "", 1, "g", 0), "mode 0o120777 and link_text='' contradict"),
    (Write("", 99, 0, b"x", 0, 0), "there is no inode 99"),
    (Write("", D, 0, b"x", 0, 0), f"inode {D} is not a file"),
    (Write("", F, 0, b"x", 7, 0), f"inode {F} has 3 bytes, not 7"),
    (Write("", F, -1, b"x", 3, 0), "1 bytes at offset -1 are not a write"),
    (Write("", F, 0, b"", 3, 0), "0 bytes at offset 0 are not a write"),
    (Write("", F, 1 << 44, b"x", 3, 0), "a file cannot have 17592186044417 bytes"),
    (Resize("", F, -1, 3, 0), "a file cannot have -1 bytes"),
    (Resize("", F, 1 << 44, 3, 0), "a file cannot have 17592186044416 bytes"),
    (Allocate("", F, 1 << 44, 3, 0), "a file cannot have 17592186044416 bytes"),
    (Allocate("", F, 0, 3, 0), "a file cannot have 0 bytes"),
    (Sync("", F, False, 2, 1), "there are no bytes from 2 to 1"),
    (Sync("", F, False, -1, 1), "there are no bytes from -1 to 1"),
    (Sync("", F, False, 2, 1).failed(SyncFailure.EXT4), "there are no bytes from 2 to 1"),
    (DropPages("", F, 2, 1), "there are no bytes from 2 to 1"),
    (DropPages("", F, -1, 0), "there are no bytes from -1 to 0"),
    (Link("", D, 1, "g", 0), f"inode {D} is a directory"),
    (Link("", F, 1, "f", 0), f"'f' in directory 1 means inode {F}, not 0"),
    (Unlink("", F, 1, "g", 0), f"'g' in directory 1 means inode 0, not {F}"),
    (Unlink("", D, 1, "d", 0), f"directory {D} is not empty"),
    (Rename("", F, 1, "g", "", 1, "h", 0, 0, 0), f"'g' in directory 1 means inode 0, not {F}"),
    (Rename("", F, 1, "f", "", 1, "d", 0, 0, 0), f"'d' in directory 1 means inode {D}, not 0"),
    (Rename("", F, 1, "f", "", 1, "d", D, 0, 0), f"inode {F} cannot replace inode {D}"),
    (Rename("", D, 1, "d", "", D, "g", 0, 0, 0), f"directory {D} cannot move into itself"),
]


def test_a_name_in_a_directory_that_was_removed_is_refused() -> None:
    removed: list[Operation] = [
        Create("/e", 99, DIRECTORY, 0, 0, "", 1, "e", 0),
        Unlink("/e", 99, 1, "e", 0),
        Create("/e/g", 100, FILE, 0, 0, "", 99, "g", 0),
    ]
    with pytest.raises(HarnessError, match=r"operation 3 .* there is no directory 99"):
        Disk.from_journal(Journal(SETUP, removed))


def test_a_link_to_a_file_that_has_lost_its_names_is_refused() -> None:
    unlinked: list[Operation] = [Unlink("/f", F, 1, "f", 0), Link("/g", F, 1, "g", 0)]
    with pytest.raises(HarnessError, match=rf"operation 2 .* inode {F} has lost all its names"):
        Disk.from_journal(Journal(SETUP, unlinked))


def test_a_file_without_a_name_is_linked_and_not_again_after_it_has_lost_the_name() -> None:
    named: list[Operation] = [
        Create("/d", 99, FILE, 0, 0, "", D, "", 0),
        Link("/g", 99, 1, "g", 0),
        Link("/h", 99, 1, "h", 0),
    ]
    disk = Disk.from_journal(Journal(SETUP, named))
    assert disk.inode(99).links == 2
    unlinked: list[Operation] = [Unlink("/g", 99, 1, "g", 0), Unlink("/h", 99, 1, "h", 0)]
    journal = Journal(SETUP, [*named, *unlinked, Link("/g", 99, 1, "g", 0)])
    with pytest.raises(HarnessError, match=r"operation 6 .* inode 99 has lost all its names"):
        Disk.from_journal(journal)


@pytest.mark.parametrize(("operation", "reason"), IMPOSSIBLE, ids=lambda value: str(value)[:40])
def test_an_operation_that_cannot_happen_is_refused(operation: Operation, reason: str) -> None:
    journal = Journal(SETUP, [Resize("", F, 3, 3, 0), operation])
    with pytest.raises(HarnessError, match=r"^operation 2 of the journal, ") as caught:
        Disk.from_journal(journal)
    assert reason in str(caught.value)
