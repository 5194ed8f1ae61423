"""The bodies and the setups of the litmus tests: a few calls each."""

from __future__ import annotations

from tests.litmus.body import Calls


def nothing(_: Calls) -> None:
    pass


def f_a2(disk: Calls) -> None:
    disk.write("f", "A2")


def create(disk: Calls) -> None:
    disk.write("f", "B2")


def create_fsync(disk: Calls) -> None:
    disk.write("f", "B2")
    disk.fsync("f")


def create_fsync_directory(disk: Calls) -> None:
    disk.write("f", "B2")
    disk.fsync("f")
    disk.fsync()


def only_directory(disk: Calls) -> None:
    disk.write("f", "B2")
    disk.fsync()


def overwrite(disk: Calls) -> None:
    disk.write("f", "B2")


def overwrite_second_byte(disk: Calls) -> None:
    disk.write("f", "A1,B1")


def overwrite_fdatasync(disk: Calls) -> None:
    disk.write("f", "B2")
    disk.fdatasync("f")


def f_a514(disk: Calls) -> None:
    disk.write("f", "A514")


def overwrite_two_sectors(disk: Calls) -> None:
    disk.write("f", "B4", at=510)


def f_a4098(disk: Calls) -> None:
    disk.write("f", "A4098")


def overwrite_two_blocks(disk: Calls) -> None:
    disk.write("f", "B4", at=4094)


def f_a8192(disk: Calls) -> None:
    disk.write("f", "A8192")


def overwrite_two_pages(disk: Calls) -> None:
    disk.write("f", "B8192")


def overwrite_two_pages_directly(disk: Calls) -> None:
    disk.write_direct("f", "B8192")


def append_two_pages_directly(disk: Calls) -> None:
    disk.write_direct("f", "B8192", at=4096)


def f_g_a1(disk: Calls) -> None:
    disk.write("f", "A1")
    disk.write("g", "A1")


def overwrite_two_files(disk: Calls) -> None:
    disk.write("f", "B1")
    disk.write("g", "B1")


def f_a1(disk: Calls) -> None:
    disk.write("f", "A1")


def overwrite_twice(disk: Calls) -> None:
    disk.write("f", "B1")
    disk.write("f", "C1")


def append(disk: Calls) -> None:
    disk.append("f", "B2")


def f_a4096(disk: Calls) -> None:
    disk.write("f", "A4096")


def append_1(disk: Calls) -> None:
    disk.append("f", "B1")


def f_a4095(disk: Calls) -> None:
    disk.write("f", "A4095")


def append_twice(disk: Calls) -> None:
    disk.append("f", "B1")
    disk.append("f", "C1")


def replace(disk: Calls) -> None:
    disk.write("t", "B2")
    disk.rename("t", "f")


def replace_fsync(disk: Calls) -> None:
    disk.write("t", "B2")
    disk.fsync("t")
    disk.rename("t", "f")


def replace_fsync_both(disk: Calls) -> None:
    replace_fsync(disk)
    disk.fsync()


def create_two(disk: Calls) -> None:
    disk.create("f", "g")


def d_e(disk: Calls) -> None:
    disk.mkdir("d", "e")


def create_in_two_directories(disk: Calls) -> None:
    disk.create("d/f", "e/g")


def create_in_two_directories_fsync_second(disk: Calls) -> None:
    disk.create("d/f", "e/g")
    disk.fsync("e/g")


def unlink_create(disk: Calls) -> None:
    disk.unlink("f")
    disk.create("g")


def unlink_fsync_directory(disk: Calls) -> None:
    disk.unlink("f")
    disk.fsync()


def f_o(disk: Calls) -> None:
    disk.write("f", "A1")
    disk.write("o", "A1")


def rename_append_other_fsync(disk: Calls) -> None:
    disk.rename("f", "g")
    disk.append("o", "B1")
    disk.fsync("o")


def truncate_create(disk: Calls) -> None:
    disk.truncate("f", 1)
    disk.create("g")


def rewrite(disk: Calls) -> None:
    disk.truncate("f", 0)
    disk.write("f", "B1")


def new_directory(disk: Calls) -> None:
    disk.mkdir("d")
    disk.create("d/f")
    disk.fsync("d/f")


def new_directory_synced(disk: Calls) -> None:
    disk.mkdir("d")
    disk.create("d/f")
    disk.fsync("d")
    disk.fsync()


def hard_link(disk: Calls) -> None:
    disk.link("f", "g")
    disk.unlink("f")


def append_then_create(disk: Calls) -> None:
    disk.append("f", "B1")
    disk.create("g")


def move_into_new_directory(disk: Calls) -> None:
    disk.mkdir("d")
    disk.rename("f", "d/f")


def move_into_new_directory_and_fsync(disk: Calls) -> None:
    move_into_new_directory(disk)
    disk.create("o")
    disk.fsync("o")


def f_and_d_f(disk: Calls) -> None:
    disk.mkdir("d")
    disk.write("f", "A1")
    disk.write("d/f", "B1")


def there_and_back(disk: Calls) -> None:
    disk.rename("f", "d/f")
    disk.rename("d/f", "f")
    disk.fsync()


def overwrite_and_leave_a_gap(disk: Calls) -> None:
    disk.write("f", "B1")
    disk.write("f", "C1", at=4096)


def write_into_a_gap(disk: Calls) -> None:
    disk.write("f", "B1", at=8192)
    disk.write("f", "C1", at=4096)


def allocate_and_sync_a_page(disk: Calls) -> None:
    disk.allocate("f", 0, 8192)
    disk.write_synced("f", "B1")
