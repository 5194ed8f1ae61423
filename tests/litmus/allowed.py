"""The litmus tests, with the allowed outcomes under every model.

The engine printed the outcomes. They were read against the rules of docs/disk.md, and
``test_allowed_outcomes.py`` compares them with the naive enumeration of that page.
"""

from __future__ import annotations

from typing import Final

from tests.litmus import bodies
from tests.litmus.allowed_content import CONTENT_CLASSES
from tests.litmus.allowed_names import NAME_CLASSES
from tests.litmus.litmus import Litmus

KILLED: Final = (
    Litmus("write of two pages", bodies.f_a8192, bodies.overwrite_two_pages, {
        "all": "f=A8192 | f=B4096,A4096 | f=B8192",
    }),
    Litmus("direct write of two pages", bodies.f_a8192, bodies.overwrite_two_pages_directly, {
        "scc ext4 ext4-ordered ext4-writeback xfs": "f=A8192 | f=B8192",
        "ext4-journal btrfs posix": "f=A8192 | f=B4096,A4096 | f=B8192",
    }),
    Litmus("direct append of two pages", bodies.f_a4096, bodies.append_two_pages_directly, {
        "scc ext4 ext4-ordered ext4-writeback xfs": "f=A4096 | f=A4096,B8192",
        "ext4-journal btrfs posix": "f=A4096 | f=A4096,B4096 | f=A4096,B8192",
    }),
)  # fmt: skip
"""The outcomes of a kill before, during or after the last call."""

CALLS: Final = (
    Litmus("create", bodies.nothing, bodies.create, {
        "scc ext4-journal xfs": "f=- | f=B2 | f=empty",
        "ext4 ext4-ordered btrfs": "f=- | f=02 | f=B2 | f=empty",
        "ext4-writeback": "f=- | f=02 | f=B2 | f=S2 | f=empty",
        "posix": "f=- | f=02 | f=B1,01 | f=B2 | f=S2 | f=empty",
    }),
    Litmus("create, fsync", bodies.nothing, bodies.create_fsync, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "f=B2",
        "posix": "f=- | f=B2",
    }),
    Litmus("create, fsync, fsync directory", bodies.nothing, bodies.create_fsync_directory, {
        "all": "f=B2",
    }),
    Litmus("create, fsync directory only", bodies.nothing, bodies.only_directory, {
        "scc ext4-journal xfs": "f=B2 | f=empty",
        "ext4 ext4-ordered btrfs": "f=02 | f=B2 | f=empty",
        "ext4-writeback": "f=02 | f=B2 | f=S2 | f=empty",
        "posix": "f=02 | f=B1,01 | f=B2 | f=S2 | f=empty",
    }),
    Litmus("overwrite", bodies.f_a2, bodies.overwrite, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "f=A2 | f=B2",
        "posix": "f=A2 | f=B1,A1 | f=B2",
    }),
    Litmus("overwrite, the first byte as it was", bodies.f_a2, bodies.overwrite_second_byte, {
        "all": "f=A1,B1 | f=A2",
    }),
    Litmus("overwrite, fdatasync", bodies.f_a2, bodies.overwrite_fdatasync, {
        "all": "f=B2",
    }),
    Litmus("overwrite across sectors", bodies.f_a514, bodies.overwrite_two_sectors, {
        "scc ext4-journal btrfs": "f=A510,B4 | f=A514",
        "ext4 ext4-ordered ext4-writeback xfs": "f=A510,B2,A2 | f=A510,B4 | f=A512,B2 | f=A514",
        "posix": (
            "f=A510,B1,A1,B1,A1 | f=A510,B1,A1,B2 | f=A510,B1,A3 | f=A510,B2,A2 | f=A510,B3,A1 | "
            "f=A510,B4 | f=A512,B1,A1 | f=A512,B2 | f=A514"
        ),
    }),
    Litmus("overwrite across blocks", bodies.f_a4098, bodies.overwrite_two_blocks, {
        "scc": "f=A4094,B4 | f=A4098",
        "ext4-journal": "f=A4094,B2,A2 | f=A4094,B4 | f=A4098",
        "ext4 ext4-ordered ext4-writeback xfs btrfs": (
            "f=A4094,B2,A2 | f=A4094,B4 | f=A4096,B2 | f=A4098"
        ),
    }),
    Litmus("overwrite two files", bodies.f_g_a1, bodies.overwrite_two_files, {
        "scc ext4-journal": "f=A1 g=A1 | f=B1 g=A1 | f=B1 g=B1",
        "ext4 ext4-ordered ext4-writeback xfs btrfs posix": (
            "f=A1 g=A1 | f=A1 g=B1 | f=B1 g=A1 | f=B1 g=B1"
        ),
    }),
    Litmus("overwrite twice", bodies.f_a1, bodies.overwrite_twice, {
        "all": "f=A1 | f=B1 | f=C1",
    }),
    Litmus("append inside a block", bodies.f_a2, bodies.append, {
        "scc ext4-journal xfs": "f=A2 | f=A2,B2",
        "ext4 ext4-ordered ext4-writeback btrfs": "f=A2 | f=A2,02 | f=A2,B2",
        "posix": "f=A2 | f=A2,02 | f=A2,B1,01 | f=A2,B2 | f=A2,S2",
    }),
    Litmus("append a block", bodies.f_a4096, bodies.append_1, {
        "scc ext4-journal xfs": "f=A4096 | f=A4096,B1",
        "ext4 ext4-ordered btrfs": "f=A4096 | f=A4096,01 | f=A4096,B1",
        "ext4-writeback posix": "f=A4096 | f=A4096,01 | f=A4096,B1 | f=A4096,S1",
    }),
    Litmus("append across blocks", bodies.f_a4095, bodies.append, {
        "scc": "f=A4095 | f=A4095,B2",
        "ext4-journal": "f=A4095 | f=A4095,B1 | f=A4095,B2",
        "ext4 ext4-ordered btrfs": (
            "f=A4095 | f=A4095,01 | f=A4095,01,B1 | f=A4095,02 | f=A4095,B1 | f=A4095,B1,01 | "
            "f=A4095,B2"
        ),
        "ext4-writeback": (
            "f=A4095 | f=A4095,01 | f=A4095,01,B1 | f=A4095,01,S1 | f=A4095,02 | f=A4095,B1 | "
            "f=A4095,B1,01 | f=A4095,B1,S1 | f=A4095,B2"
        ),
        "xfs": "f=A4095 | f=A4095,01,B1 | f=A4095,B1 | f=A4095,B2",
        "posix": (
            "f=A4095 | f=A4095,01 | f=A4095,01,B1 | f=A4095,01,S1 | f=A4095,02 | f=A4095,B1 | "
            "f=A4095,B1,01 | f=A4095,B1,S1 | f=A4095,B2 | f=A4095,S1 | f=A4095,S1,01 | "
            "f=A4095,S1,B1 | f=A4095,S2"
        ),
    }),
    Litmus("append twice", bodies.f_a1, bodies.append_twice, {
        "scc ext4-journal xfs": "f=A1 | f=A1,B1 | f=A1,B1,C1",
        "ext4 ext4-ordered ext4-writeback btrfs": (
            "f=A1 | f=A1,01 | f=A1,02 | f=A1,B1 | f=A1,B1,01 | f=A1,B1,C1"
        ),
        "posix": (
            "f=A1 | f=A1,01 | f=A1,01,S1 | f=A1,02 | f=A1,B1 | f=A1,B1,01 | f=A1,B1,C1 | "
            "f=A1,B1,S1 | f=A1,S1 | f=A1,S1,01 | f=A1,S2"
        ),
    }),
    Litmus("replace by rename", bodies.f_a2, bodies.replace, {
        "scc ext4-journal": "f=A2 t=- | f=A2 t=B2 | f=A2 t=empty | f=B2 t=-",
        "ext4": "f=02 t=- | f=A2 t=- | f=A2 t=02 | f=A2 t=B2 | f=A2 t=empty | f=B2 t=-",
        "ext4-ordered btrfs": (
            "f=02 t=- | f=A2 t=- | f=A2 t=02 | f=A2 t=B2 | f=A2 t=empty | f=B2 t=- | f=empty t=-"
        ),
        "ext4-writeback": (
            "f=02 t=- | f=A2 t=- | f=A2 t=02 | f=A2 t=B2 | f=A2 t=S2 | f=A2 t=empty | f=B2 t=- | "
            "f=S2 t=- | f=empty t=-"
        ),
        "xfs": "f=A2 t=- | f=A2 t=B2 | f=A2 t=empty | f=B2 t=- | f=empty t=-",
        "posix": (
            "f=02 t=- | f=A2 t=- | f=A2 t=02 | f=A2 t=B1,01 | f=A2 t=B2 | f=A2 t=S2 | "
            "f=A2 t=empty | f=B1,01 t=- | f=B2 t=- | f=S2 t=- | f=empty t=-"
        ),
    }),
    Litmus("replace by rename, fsync first", bodies.f_a2, bodies.replace_fsync, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "f=A2 t=B2 | f=B2 t=-",
        "posix": "f=A2 t=- | f=A2 t=B2 | f=B2 t=-",
    }),
    Litmus("replace by rename, fsync file and directory", bodies.f_a2, bodies.replace_fsync_both, {
        "all": "f=B2 t=-",
    }),
    Litmus("create by rename", bodies.nothing, bodies.replace, {
        "scc ext4-journal": "f=- t=- | f=- t=B2 | f=- t=empty | f=B2 t=-",
        "ext4 ext4-ordered btrfs": (
            "f=- t=- | f=- t=02 | f=- t=B2 | f=- t=empty | f=02 t=- | f=B2 t=- | f=empty t=-"
        ),
        "ext4-writeback": (
            "f=- t=- | f=- t=02 | f=- t=B2 | f=- t=S2 | f=- t=empty | f=02 t=- | f=B2 t=- | "
            "f=S2 t=- | f=empty t=-"
        ),
        "xfs": "f=- t=- | f=- t=B2 | f=- t=empty | f=B2 t=- | f=empty t=-",
        "posix": (
            "f=- t=- | f=- t=02 | f=- t=B1,01 | f=- t=B2 | f=- t=S2 | f=- t=empty | f=02 t=- | "
            "f=B1,01 t=- | f=B2 t=- | f=S2 t=- | f=empty t=-"
        ),
    }),
    Litmus("create by rename, fsync first", bodies.nothing, bodies.replace_fsync, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "f=- t=B2 | f=B2 t=-",
        "posix": "f=- t=- | f=- t=B2 | f=B2 t=-",
    }),
    Litmus("create two in one directory", bodies.nothing, bodies.create_two, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": (
            "f=- g=- | f=empty g=- | f=empty g=empty"
        ),
        "posix": "f=- g=- | f=- g=empty | f=empty g=- | f=empty g=empty",
    }),
    Litmus("create in two directories", bodies.d_e, bodies.create_in_two_directories, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": (
            "d/f=- e/g=- | d/f=empty e/g=- | d/f=empty e/g=empty"
        ),
        "posix": "d/f=- e/g=- | d/f=- e/g=empty | d/f=empty e/g=- | d/f=empty e/g=empty",
    }),
    Litmus(
        "create in two directories, fsync the second", bodies.d_e,
        bodies.create_in_two_directories_fsync_second, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "d/f=empty e/g=empty",
        "btrfs": "d/f=- e/g=empty | d/f=empty e/g=empty",
        "posix": "d/f=- e/g=- | d/f=- e/g=empty | d/f=empty e/g=- | d/f=empty e/g=empty",
    }),
    Litmus("unlink, create another", bodies.f_a1, bodies.unlink_create, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": (
            "f=- g=- | f=- g=empty | f=A1 g=-"
        ),
        "posix": "f=- g=- | f=- g=empty | f=A1 g=- | f=A1 g=empty",
    }),
    Litmus("unlink, fsync directory", bodies.f_a1, bodies.unlink_fsync_directory, {
        "all": "f=-",
    }),
    Litmus("rename, append to another, fsync it", bodies.f_o, bodies.rename_append_other_fsync, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "f=- g=A1 o=A1,B1",
        "btrfs posix": "f=- g=A1 o=A1,B1 | f=A1 g=- o=A1,B1",
    }),
    Litmus("truncate, create another", bodies.f_a2, bodies.truncate_create, {
        "scc ext4-journal btrfs": "f=A1 g=- | f=A1 g=empty | f=A2 g=-",
        "ext4 ext4-ordered ext4-writeback xfs": (
            "f=A1 g=- | f=A1 g=empty | f=A1,01 g=- | f=A2 g=-"
        ),
        "posix": (
            "f=A1 g=- | f=A1 g=empty | f=A1,01 g=- | f=A1,01 g=empty | f=A2 g=- | f=A2 g=empty"
        ),
    }),
    Litmus("truncate and write anew", bodies.f_a2, bodies.rewrite, {
        "scc ext4-journal xfs": "f=A2 | f=B1 | f=empty",
        "ext4 ext4-ordered": "f=01 | f=A2 | f=B1 | f=empty",
        "ext4-writeback": "f=01 | f=A2 | f=B1 | f=S1 | f=empty",
        "btrfs": "f=01 | f=A1 | f=A2 | f=B1 | f=B1,A1 | f=empty",
        "posix": "f=01 | f=A1 | f=A2 | f=B1 | f=B1,A1 | f=S1 | f=empty",
    }),
    Litmus("new directory, fsync of the file in it", bodies.nothing, bodies.new_directory, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "d/f=empty",
        "posix": "d/f=- | d/f=empty",
    }),
    Litmus("new directory, fsync it and its parent", bodies.nothing, bodies.new_directory_synced, {
        "all": "d/f=empty",
    }),
    Litmus("hard link, unlink the first name", bodies.f_a1, bodies.hard_link, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": (
            "f=- g=A1 | f=A1 g=- | f=A1 g=A1"
        ),
        "posix": "f=- g=- | f=- g=A1 | f=A1 g=- | f=A1 g=A1",
    }),
    Litmus("append, then create another", bodies.f_a4096, bodies.append_then_create, {
        "scc ext4-journal": "f=A4096 g=- | f=A4096,B1 g=- | f=A4096,B1 g=empty",
        "ext4 ext4-ordered btrfs": (
            "f=A4096 g=- | f=A4096 g=empty | f=A4096,01 g=- | f=A4096,01 g=empty | "
            "f=A4096,B1 g=- | f=A4096,B1 g=empty"
        ),
        "ext4-writeback posix": (
            "f=A4096 g=- | f=A4096 g=empty | f=A4096,01 g=- | f=A4096,01 g=empty | "
            "f=A4096,B1 g=- | f=A4096,B1 g=empty | f=A4096,S1 g=- | f=A4096,S1 g=empty"
        ),
        "xfs": "f=A4096 g=- | f=A4096 g=empty | f=A4096,B1 g=- | f=A4096,B1 g=empty",
    }),
    Litmus("move a file there and back, fsync", bodies.f_and_d_f, bodies.there_and_back, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "d/f=- f=A1",
        "btrfs posix": "d/f=- f=A1 | d/f=A1 f=A1",
    }),
    Litmus("move a file into a new directory", bodies.f_a1, bodies.move_into_new_directory, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "d/f=- f=A1 | d/f=A1 f=-",
        "posix": "d/f=- f=A1 | d/f=A1 f=- | d/f=A1 f=A1",
    }),
    Litmus(
        "move a file into a new directory, fsync another", bodies.f_a1,
        bodies.move_into_new_directory_and_fsync, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "d/f=A1 f=- o=empty",
        "btrfs": "d/f=- f=A1 o=empty | d/f=A1 f=- o=empty | d/f=A1 f=A1 o=empty",
    }),
    Litmus(
        "overwrite, write behind a gap (P2)", bodies.f_a1, bodies.overwrite_and_leave_a_gap, {
        "scc ext4-journal": "f=A1 | f=B1 | f=B1,04095,C1",
        "ext4 ext4-ordered btrfs": (
            "f=A1 | f=A1,04095 | f=A1,04095,C1 | f=A1,04096 | f=B1 | f=B1,04095 | "
            "f=B1,04095,C1 | f=B1,04096"
        ),
        "ext4-writeback posix": (
            "f=A1 | f=A1,04095 | f=A1,04095,C1 | f=A1,04095,S1 | f=A1,04096 | f=B1 | "
            "f=B1,04095 | f=B1,04095,C1 | f=B1,04095,S1 | f=B1,04096"
        ),
        "xfs": "f=A1 | f=A1,04095,C1 | f=B1 | f=B1,04095 | f=B1,04095,C1",
    }),
    Litmus("write behind a gap and into it (P2)", bodies.f_a1, bodies.write_into_a_gap, {
        "scc ext4-journal": "f=A1 | f=A1,08191,B1 | f=A1,04095,C1,04095,B1",
        "ext4 ext4-ordered btrfs": (
            "f=A1 | f=A1,04095 | f=A1,04095,C1,04095 | f=A1,04095,C1,04095,B1 | "
            "f=A1,04095,C1,04096 | f=A1,08191 | f=A1,08191,B1 | f=A1,08192"
        ),
        "ext4-writeback posix": (
            "f=A1 | f=A1,04095 | f=A1,04095,C1,04095 | f=A1,04095,C1,04095,B1 | "
            "f=A1,04095,C1,04095,S1 | f=A1,04095,C1,04096 | f=A1,08191 | f=A1,08191,B1 | "
            "f=A1,08191,S1 | f=A1,08192"
        ),
        "xfs": (
            "f=A1 | f=A1,04095 | f=A1,04095,C1,04095 | f=A1,04095,C1,04095,B1 | f=A1,08191,B1"
        ),
    }),
    Litmus("allocate, synchronous write", bodies.f_a1, bodies.allocate_and_sync_a_page, {
        "all": "f=B1,08191",
    }),
)  # fmt: skip

LITMUS: Final = (*CALLS, *CONTENT_CLASSES, *NAME_CLASSES)
