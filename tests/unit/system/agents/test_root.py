"""The root: what makes a directory one, its lock, the epochs of its boots."""

from __future__ import annotations

import errno

import pytest

from system.errors import NewerFormat, NotARoot, RootInUse, StorageFull
from system.host import RealIds
from system.ports import File, OpenMode
from system.root import Root
from system.storage.codec import seal
from tests.unit.system.faulty_files import FaultyFiles, FaultyHost

MARKER = seal({"format": 1, "made_by": "powercut"}) + b"\n"


def opened(here: FaultyHost) -> Root:
    return Root.open(here.host.files, here.host.ids)


def slot(epoch: int) -> bytes:
    return (seal({"epoch": epoch}) + b"\n").ljust(512)


def test_an_empty_directory_becomes_a_root(here: FaultyHost) -> None:
    root = opened(here)

    assert (root.epoch, root.swept) == (1, ())
    assert here.names() == ["root.json", "runtime.lock"]
    assert here.read("root.json") == MARKER
    assert here.read("runtime.lock") == slot(1)


def test_the_marker_is_durable_before_anything_else_is_written(here: FaultyHost) -> None:
    opened(here)

    barriers = [call for call in here.files.calls if "sync" in call or "replace" in call]
    assert barriers[:3] == ["fsync root.json.tmp.00000001", "replace root.json", "sync_dir "]
    assert barriers[-1] == "fsync runtime.lock"


def test_the_epochs_are_written_in_two_slots_in_turn(here: FaultyHost) -> None:
    for _ in range(3):
        opened(here).close()

    assert here.read("runtime.lock") == slot(3) + slot(2)


@pytest.mark.parametrize("torn", [b"", b"\0" * 512, slot(3)[:20], slot(3)[:-1] + b"x"])
def test_a_torn_slot_leaves_the_other_one(here: FaultyHost, torn: bytes) -> None:
    here.write("root.json", MARKER)
    here.write("runtime.lock", torn[:512].ljust(512) + slot(2))

    root = opened(here)

    # A slot is whole when its seal holds; what stands behind that is padding.
    whole = torn.startswith(slot(3)[:30])
    assert root.epoch == (4 if whole else 3)


def test_a_slot_without_numbers_counts_as_torn(here: FaultyHost) -> None:
    here.write("root.json", MARKER)
    here.write("runtime.lock", seal({"epoch": "9"}) + b"\n")

    assert opened(here).epoch == 1


def test_a_root_that_is_closed_can_be_opened_again(here: FaultyHost) -> None:
    root = opened(here)
    with pytest.raises(RootInUse, match="another runtime holds it"):
        opened(here)
    root.close()

    assert opened(here).epoch == 2


def test_a_root_in_use_is_left_as_it_is(here: FaultyHost) -> None:
    root = opened(here)
    here.write("root.json.tmp.00000009", b"somebody is writing this")
    before = here.read("runtime.lock")

    with pytest.raises(RootInUse):
        opened(here)

    assert here.files.calls[-1] == "close runtime.lock"
    assert here.read("runtime.lock") == before
    assert "root.json.tmp.00000009" in here.names()
    root.close()


@pytest.mark.parametrize("left", [["runtime.lock"], ["root.json.tmp.0000000a", "runtime.lock"]])
def test_what_an_interrupted_first_boot_leaves_becomes_a_root(
    here: FaultyHost, left: list[str]
) -> None:
    for name in left:
        here.write(name, b"")

    root = opened(here)

    assert list(root.swept) == left[:-1]
    assert here.names() == ["root.json", "runtime.lock"]


@pytest.mark.parametrize("strange", ["notes.txt", "agents", "root.json.tmp.zz", ".hidden"])
def test_a_directory_with_anything_else_is_no_root_and_stays_as_it_is(
    here: FaultyHost, strange: str
) -> None:
    here.write(strange, b"mine")

    with pytest.raises(NotARoot, match="name an empty directory, or a root of this runtime"):
        opened(here)

    assert here.names() == [strange]


@pytest.mark.parametrize(
    ("marker", "reason"),
    [
        (b"", "root.json: it cannot be read: it does not end with a crc"),
        (b"{}", "root.json: it cannot be read: it does not end with a crc"),
        (seal({"made_by": "powercut"}), "root.json: it names no format"),
        (seal({"format": 2, "root_id": 7}), "root.json: it names no root_id"),
    ],
)
def test_a_marker_that_says_nothing_is_refused(
    here: FaultyHost, marker: bytes, reason: str
) -> None:
    here.write("root.json", marker)

    with pytest.raises(NotARoot) as refused:
        opened(here)

    assert str(refused.value).startswith(reason)
    assert refused.value.path == "root.json"
    assert here.names() == ["root.json"]


def test_a_root_of_a_newer_format_is_refused_and_left_as_it_is(here: FaultyHost) -> None:
    here.write("root.json", seal({"format": 3}) + b"\n")

    with pytest.raises(NewerFormat, match="it has format=3, known is format=2"):
        opened(here)

    assert here.names() == ["root.json"]


def test_somebody_else_may_be_faster_with_the_lock(here: FaultyHost) -> None:
    here.files.fail("open-create", "runtime.lock", errno.EEXIST)
    with pytest.raises(FileNotFoundError):
        opened(here)

    assert opened(here).epoch == 1


class OvertakenFiles(FaultyFiles):
    """Files with which another process opens and closes a root just before the lock is taken."""

    def open(self, path: str, mode: OpenMode) -> File:
        if path == "runtime.lock" and mode is OpenMode.WRITE:
            root = Root.open(self.files, RealIds())
            root.adopt(self.files, RealIds(), "f" * 32)
            root.close()
        return super().open(path, mode)


@pytest.mark.parametrize("is_root", [False, True])
def test_a_root_that_gets_its_database_before_the_lock_is_taken_keeps_it(
    here: FaultyHost, is_root: bool
) -> None:
    if is_root:
        opened(here).close()
    given: list[tuple[str | None, bool]] = []

    Root.open(
        OvertakenFiles(here.host.files), here.host.ids,
        lambda root_id, names: given.append((root_id, "root.json" in names)),
    )  # fmt: skip

    assert given == [("f" * 32, True)]
    assert b"f" * 32 in here.read("root.json")


def test_a_full_disk_is_reported_and_the_lock_is_released(here: FaultyHost) -> None:
    here.files.fail("pwrite", "runtime.lock", errno.ENOSPC)
    with pytest.raises(StorageFull):
        opened(here)

    assert opened(here).epoch == 1
