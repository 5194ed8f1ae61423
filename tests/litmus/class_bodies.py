"""The bodies and the setups of the litmus tests that show the classes of docs/disk.md."""

from __future__ import annotations

from tests.litmus.bodies import hard_link, replace
from tests.litmus.body import Calls


def replace_fsync_directory(disk: Calls) -> None:
    replace(disk)
    disk.fsync()


def spool(disk: Calls) -> None:
    disk.mkdir("tmp", "new")
    disk.write("tmp/m", "A1")


def deliver_fsync_new(disk: Calls) -> None:
    disk.rename("tmp/m", "new/m")
    disk.fsync("new")


def deliver_fsync_old(disk: Calls) -> None:
    disk.rename("tmp/m", "new/m")
    disk.fsync("tmp")


def deliver_fsync_file(disk: Calls) -> None:
    disk.rename("tmp/m", "new/m")
    disk.fsync("new/m")


def deliver(disk: Calls) -> None:
    disk.rename("tmp/m", "new/m")


def move_directory(disk: Calls) -> None:
    disk.rename("tmp", "new/tmp")


def move_two_directories(disk: Calls) -> None:
    disk.rename("d", "x")
    disk.rename("e", "y")


def move_two_directories_fsync_file(disk: Calls) -> None:
    disk.rename("d", "x")
    disk.mkdir("t")
    disk.rename("t", "e")
    disk.write("e/f", "B1")
    disk.fsync("e/f")


def one_directory(disk: Calls) -> None:
    disk.mkdir("d")


def four_directories(disk: Calls) -> None:
    disk.mkdir("d", "e", "x", "y")


def move_two_directories_fsync_second(disk: Calls) -> None:
    disk.rename("d", "x/d")
    disk.rename("e", "y/e")
    disk.fsync("y")


def move_directory_fsync_old(disk: Calls) -> None:
    disk.rename("tmp", "new/tmp")
    disk.fsync()


def move_directory_fsync_new(disk: Calls) -> None:
    disk.rename("tmp", "new/tmp")
    disk.fsync("new")


def replace_logged_name(disk: Calls) -> None:
    disk.write("f", "A1")
    disk.fsync("f")
    disk.write("t", "B1")
    disk.rename("t", "f")


def replace_logged_name_by_synced(disk: Calls) -> None:
    disk.write("f", "A1")
    disk.fsync("f")
    disk.write("t", "B1")
    disk.fsync("t")
    disk.rename("t", "f")


def replace_logged_name_synced(disk: Calls) -> None:
    disk.write("f", "A1")
    disk.fsync("f")
    disk.fsync()
    disk.write("t", "B1")
    disk.rename("t", "f")


def replace_twice(disk: Calls) -> None:
    """Replace a file twice in the right way, without a barrier on the directory."""
    for text in ("B1", "C1"):
        disk.write("t", text)
        disk.fsync("t")
        disk.rename("t", "f")


def replace_and_clean_up(disk: Calls) -> None:
    disk.write("t", "B1")
    disk.fsync("t")
    disk.rename("t", "f")
    disk.unlink("o")


def replace_twice_last_unsynced(disk: Calls) -> None:
    disk.write("t", "B1")
    disk.fsync("t")
    disk.rename("t", "f")
    disk.write("u", "C1")
    disk.rename("u", "f")


def leave_new_directory(disk: Calls) -> None:
    disk.mkdir("e")
    disk.write("e/g", "A1")
    disk.rename("e/g", "f")
    disk.fsync("f")


def leave_new_directory_by_link(disk: Calls) -> None:
    disk.mkdir("e")
    disk.write("e/g", "A1")
    disk.link("e/g", "f")
    disk.unlink("e/g")
    disk.fsync("f")


def successor_moves_on(disk: Calls) -> None:
    disk.rename("t", "f")
    disk.fsync("f")
    disk.rename("f", "h")
    disk.fsync("h")


def log_and_checkpoint(disk: Calls) -> None:
    disk.write("log", "A1")
    disk.write("cp", "A2")


def rotate_and_checkpoint(disk: Calls) -> None:
    disk.rename("log", "old")
    disk.write("t", "B2")
    disk.fsync("t")
    disk.rename("t", "cp")
    disk.fsync("cp")


def sync_link_unlink(disk: Calls) -> None:
    disk.append("o", "B1")
    disk.fsync("o")
    hard_link(disk)


def link_unlink_sync(disk: Calls) -> None:
    hard_link(disk)
    disk.append("o", "B1")
    disk.fsync("o")


def sync_all_link_unlink(disk: Calls) -> None:
    disk.append("o", "B1")
    disk.fsync("o")
    disk.sync()
    hard_link(disk)


def overtaking_unlink(disk: Calls) -> None:
    disk.link("f", "g")
    disk.fsync("g")
    disk.link("o", "p")
    disk.unlink("g")


def g_a1(disk: Calls) -> None:
    disk.write("g", "A1")


def rename_and_replace(disk: Calls) -> None:
    disk.rename("g", "f")
    disk.write("h", "B1")
    disk.rename("h", "f")
    disk.fsync("f")


def rename_rewrite_fsync_directory(disk: Calls) -> None:
    disk.rename("f", "g")
    disk.truncate("g", 0)
    disk.append("g", "B1")
    disk.fsync()


def append_and_extend(disk: Calls) -> None:
    disk.append("f", "B1")
    disk.truncate("f", 4)


def append_and_set_its_size(disk: Calls) -> None:
    disk.append("f", "B1")
    disk.truncate("f", 3)


def rename_fsync_unchanged(disk: Calls) -> None:
    disk.rename("f", "g")
    disk.fsync("o")


def rename_chmod_fsync(disk: Calls) -> None:
    disk.rename("f", "g")
    disk.chmod("o", 0o600)
    disk.fsync("o")


def rename_fdatasync(disk: Calls) -> None:
    disk.rename("f", "g")
    disk.fdatasync("g")


def replace_what_moved_away(disk: Calls) -> None:
    disk.rename("f", "h")
    disk.rename("t", "f")
    disk.unlink("h")
    disk.fsync("f")


def rename_fdatasync_after_truncation(disk: Calls) -> None:
    disk.rename("f", "g")
    disk.truncate("o", 1)
    disk.fdatasync("o")


def rename_fsync_after_truncation(disk: Calls) -> None:
    disk.rename("f", "g")
    disk.truncate("o", 1)
    disk.fsync("o")


def rename_fsync(disk: Calls) -> None:
    disk.rename("f", "g")
    disk.fsync("g")


def create_rename_fdatasync(disk: Calls) -> None:
    disk.write("f", "B1")
    disk.rename("f", "g")
    disk.fdatasync("g")


def create_fdatasync(disk: Calls) -> None:
    disk.write("f", "B1")
    disk.fdatasync("f")


def truncate_in_a_block(disk: Calls) -> None:
    disk.truncate("f", 1)


def truncate_two_sectors(disk: Calls) -> None:
    disk.truncate("f", 511)


def cut_and_overwrite(disk: Calls) -> None:
    disk.truncate("f", 4096)
    disk.write("f", "B1")


def cut_and_append(disk: Calls) -> None:
    disk.truncate("f", 1)
    disk.append("f", "B2")


def cut_block_and_append(disk: Calls) -> None:
    disk.truncate("f", 4096)
    disk.append("f", "B2")


def overwrite_and_sync_another_page(disk: Calls) -> None:
    disk.write("f", "B1")
    disk.write_synced("f", "C1", at=4096)


def extend_and_sync_another_page(disk: Calls) -> None:
    disk.write("f", "B1", at=4096)
    disk.write_synced("f", "C1")


def allocate_within_and_sync_another_page(disk: Calls) -> None:
    disk.append("f", "B2")
    disk.allocate("f", 0, 4097)
    disk.write_synced("f", "C1")


def overwrite_and_cut(disk: Calls) -> None:
    disk.write("f", "B1")
    disk.truncate("f", 1)


def cut_and_sync_another_page(disk: Calls) -> None:
    disk.truncate("f", 1)
    disk.write_synced("f", "C1", at=4096)


def cut_and_extend(disk: Calls) -> None:
    disk.truncate("f", 1)
    disk.truncate("f", 3)


def remove_another_and_cut(disk: Calls) -> None:
    disk.append("f", "B1")
    disk.fsync("f")
    disk.unlink("d/f")
    disk.truncate("f", 1)


def remove_another_cut_rename(disk: Calls) -> None:
    remove_another_and_cut(disk)
    disk.rename("f", "t")
    disk.fsync()


def rename_allocate_write(disk: Calls) -> None:
    disk.rename("o", "p")
    disk.allocate("f", 0, 1)
    disk.write("f", "B2")


def allocate(disk: Calls) -> None:
    disk.allocate("f", 2, 2)


def sparse_and_allocate(disk: Calls) -> None:
    disk.write("f", "B1", at=5)
    disk.allocate("f", 2, 1)


def replace_by_allocated(disk: Calls) -> None:
    disk.write("t", "B2")
    disk.allocate("t", 0, 1)
    disk.rename("t", "f")


def two_names_and_t(disk: Calls) -> None:
    disk.write("f", "A1")
    disk.link("f", "g")
    disk.write("t", "B1")


def commit_then_replace_one_of_two_names(disk: Calls) -> None:
    disk.append("t", "C1")
    disk.fsync("t")
    disk.sync()
    disk.rename("t", "f")
    disk.fsync("g")


def replace_one_of_two_names(disk: Calls) -> None:
    disk.rename("t", "f")


def replace_one_of_two_names_and_fsync(disk: Calls) -> None:
    replace_one_of_two_names(disk)
    disk.create("o")
    disk.fsync("o")


def replace_by_two_blocks(disk: Calls) -> None:
    disk.write("t", "B2", at=4095)
    disk.rename("t", "f")


def replace_and_move_on(disk: Calls) -> None:
    disk.rename("t", "f")
    disk.rename("f", "h")
    disk.fsync("h")


def f_and_t(disk: Calls) -> None:
    disk.write("f", "A1")
    disk.write("t", "B1")


def unlink_create_same_name(disk: Calls) -> None:
    disk.unlink("f")
    disk.write("f", "B1")
    disk.fsync("f")
