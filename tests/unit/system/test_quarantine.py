"""Damaged bytes are kept, durably, once."""

from __future__ import annotations

from system.storage.quarantine import move_aside, put_aside
from tests.unit.system.faulty_files import FaultyHost


def test_bytes_are_put_aside_under_the_next_number(here: FaultyHost) -> None:
    here.write("f.quarantine.1", b"older damage")

    assert put_aside(here.files, "f", b"damage", here.ids) == "f.quarantine.2"
    assert here.read("f.quarantine.2") == b"damage"
    assert here.files.calls[-2:] == ["replace f.quarantine.2", "sync_dir "]


def test_the_same_bytes_are_put_aside_once_and_are_durable_all_the_same(here: FaultyHost) -> None:
    here.write("f.quarantine.1", b"damage")

    assert put_aside(here.files, "f", b"damage", here.ids) == "f.quarantine.1"
    assert here.names() == ["f.quarantine.1"]
    assert here.files.calls[-1] == "sync_dir "


def test_a_directory_with_the_name_of_a_copy_is_left(here: FaultyHost) -> None:
    here.files.mkdir("f.quarantine.1")

    assert put_aside(here.files, "f", b"damage", here.ids) == "f.quarantine.2"


def test_a_file_is_moved_aside_under_the_next_number(here: FaultyHost) -> None:
    here.write("f", b"damage")
    here.write("f.quarantine.1", b"older damage")

    assert move_aside(here.files, "f") == "f.quarantine.2"
    assert here.names() == ["f.quarantine.1", "f.quarantine.2"]
    assert here.read("f.quarantine.2") == b"damage"
    assert here.files.calls[-1] == "sync_dir "
