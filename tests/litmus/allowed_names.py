"""The allowed outcomes of bodies about names: classes of docs/disk.md, and their neighbours.

The engine printed the outcomes. They were read against the rules of that page, and
``test_allowed_outcomes.py`` compares them with its naive enumeration.
"""

from __future__ import annotations

from typing import Final

from tests.litmus import bodies
from tests.litmus import class_bodies as classes
from tests.litmus.litmus import Litmus

NAME_CLASSES: Final = (
    Litmus("replace, fsync directory (B1)", bodies.f_a2, classes.replace_fsync_directory, {
        "scc ext4-journal": "f=B2 t=-",
        "ext4": "f=02 t=- | f=B2 t=-",
        "ext4-ordered btrfs": "f=02 t=- | f=B2 t=- | f=empty t=-",
        "ext4-writeback": "f=02 t=- | f=B2 t=- | f=S2 t=- | f=empty t=-",
        "xfs": "f=B2 t=- | f=empty t=-",
        "posix": "f=02 t=- | f=B1,01 t=- | f=B2 t=- | f=S2 t=- | f=empty t=-",
    }),
    Litmus("deliver between directories", classes.spool, classes.deliver, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": (
            "new/m=- tmp/m=A1 | new/m=A1 tmp/m=-"
        ),
        "posix": "new/m=- tmp/m=A1 | new/m=A1 tmp/m=- | new/m=A1 tmp/m=A1",
    }),
    Litmus("deliver, fsync the new directory (B2)", classes.spool, classes.deliver_fsync_new, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "new/m=A1 tmp/m=-",
        "btrfs posix": "new/m=A1 tmp/m=- | new/m=A1 tmp/m=A1",
    }),
    Litmus("deliver, fsync the old directory (B2)", classes.spool, classes.deliver_fsync_old, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "new/m=A1 tmp/m=-",
        "posix": "new/m=- tmp/m=A1 | new/m=A1 tmp/m=- | new/m=A1 tmp/m=A1",
    }),
    Litmus("deliver, fsync the file (B2)", classes.spool, classes.deliver_fsync_file, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "new/m=A1 tmp/m=-",
        "posix": "new/m=- tmp/m=A1 | new/m=A1 tmp/m=- | new/m=A1 tmp/m=A1",
    }),
    Litmus("move a directory", classes.spool, classes.move_directory, {
        "all": "tmp=- tmp/m=- | tmp=empty tmp/m=A1",
    }),
    Litmus("move two directories", bodies.d_e, classes.move_two_directories, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": (
            "d=- e=- | d=- e=empty | d=empty e=empty"
        ),
        "posix": "d=- e=- | d=- e=empty | d=empty e=- | d=empty e=empty",
    }),
    Litmus(
        "move a directory, then a new one, fsync a file in it (B21)", classes.one_directory,
        classes.move_two_directories_fsync_file, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "d=- e/f=B1 t=-",
        "btrfs": "d=- e/f=B1 t=- | d=empty e/f=B1 t=-",
        "posix": (
            "d=- e/f=- t=- | d=- e/f=- t=empty | d=- e/f=B1 t=- | d=empty e/f=- t=- | "
            "d=empty e/f=- t=empty | d=empty e/f=B1 t=-"
        ),
    }),
    Litmus(
        "move two directories, fsync where the second is", classes.four_directories,
        classes.move_two_directories_fsync_second, {
        "all": "d=- e=-",
    }),
    Litmus(
        "rotate a log, replace a checkpoint (B3)", classes.log_and_checkpoint,
        classes.rotate_and_checkpoint, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "cp=B2 log=- old=A1 t=-",
        "btrfs": "cp=B2 log=- old=A1 t=- | cp=B2 log=A1 old=- t=-",
        "posix": (
            "cp=A2 log=- old=A1 t=- | cp=A2 log=- old=A1 t=B2 | cp=A2 log=A1 old=- t=- | "
            "cp=A2 log=A1 old=- t=B2 | cp=B2 log=- old=A1 t=- | cp=B2 log=A1 old=- t=-"
        ),
    }),
    Litmus("replace a file, then remove another", bodies.f_o, classes.replace_and_clean_up, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": (
            "f=A1 o=A1 t=B1 | f=B1 o=- t=- | f=B1 o=A1 t=-"
        ),
        "posix": (
            "f=A1 o=- t=- | f=A1 o=- t=B1 | f=A1 o=A1 t=- | f=A1 o=A1 t=B1 | f=B1 o=- t=- | "
            "f=B1 o=A1 t=-"
        ),
    }),
    Litmus("sync another, link, unlink the first name", bodies.f_o, classes.sync_link_unlink, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": (
            "f=- g=A1 o=A1,B1 | f=A1 g=- o=A1,B1 | f=A1 g=A1 o=A1,B1"
        ),
        "btrfs posix": (
            "f=- g=- o=A1,B1 | f=- g=A1 o=A1,B1 | f=A1 g=- o=A1,B1 | f=A1 g=A1 o=A1,B1"
        ),
    }),
    Litmus("link, unlink the first name, sync another", bodies.f_o, classes.link_unlink_sync, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "f=- g=A1 o=A1,B1",
        "btrfs posix": (
            "f=- g=- o=A1,B1 | f=- g=A1 o=A1,B1 | f=A1 g=- o=A1,B1 | f=A1 g=A1 o=A1,B1"
        ),
    }),
    Litmus(
        "sync another, sync all, link, unlink the first name", bodies.f_o,
        classes.sync_all_link_unlink, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": (
            "f=- g=A1 o=A1,B1 | f=A1 g=- o=A1,B1 | f=A1 g=A1 o=A1,B1"
        ),
        "posix": (
            "f=- g=- o=A1,B1 | f=- g=A1 o=A1,B1 | f=A1 g=- o=A1,B1 | f=A1 g=A1 o=A1,B1"
        ),
    }),
    Litmus("link, sync, link another, unlink (B3)", bodies.f_o, classes.overtaking_unlink, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": (
            "f=A1 g=- o=A1 p=A1 | f=A1 g=A1 o=A1 p=- | f=A1 g=A1 o=A1 p=A1"
        ),
        "btrfs posix": (
            "f=A1 g=- o=A1 p=- | f=A1 g=- o=A1 p=A1 | f=A1 g=A1 o=A1 p=- | f=A1 g=A1 o=A1 p=A1"
        ),
    }),
    Litmus("rename, then replace by another file (B4)", classes.g_a1, classes.rename_and_replace, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "f=B1 g=- h=-",
        "btrfs": "f=B1 g=- h=- | f=B1 g=A1 h=-",
        "posix": (
            "f=- g=- h=- | f=- g=- h=B1 | f=- g=A1 h=- | f=- g=A1 h=B1 | f=A1 g=- h=- | "
            "f=A1 g=- h=B1 | f=B1 g=- h=- | f=B1 g=A1 h=-"
        ),
    }),
    Litmus("replace, move on, fsync (B4)", classes.f_and_t, classes.replace_and_move_on, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "f=- h=B1 t=-",
        "btrfs": "f=- h=B1 t=- | f=A1 h=B1 t=-",
        "posix": "f=- h=B1 t=- | f=A1 h=- t=B1 | f=A1 h=B1 t=- | f=A1 h=B1 t=B1 | f=B1 h=- t=-",
    }),
    Litmus("unlink, create anew, fsync", bodies.f_a1, classes.unlink_create_same_name, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "f=B1",
        "posix": "f=- | f=A1 | f=B1",
    }),
    Litmus("rename, fsync an unchanged file (J1)", bodies.f_o, classes.rename_fsync_unchanged, {
        "scc": "f=- g=A1 o=A1",
        "ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs posix": (
            "f=- g=A1 o=A1 | f=A1 g=- o=A1"
        ),
    }),
    Litmus("rename, chmod another, fsync it", bodies.f_o, classes.rename_chmod_fsync, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "f=- g=A1 o=A1",
        "btrfs posix": "f=- g=A1 o=A1 | f=A1 g=- o=A1",
    }),
    Litmus(
        "rename, truncate another to its size, fdatasync it (J3)", bodies.f_o,
        classes.rename_fdatasync_after_truncation, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs posix": (
            "f=- g=A1 o=A1 | f=A1 g=- o=A1"
        ),
    }),
    Litmus(
        "rename, truncate another to its size, fsync it", bodies.f_o,
        classes.rename_fsync_after_truncation, {
        "scc ext4-journal": "f=- g=A1 o=A1",
        "ext4 ext4-ordered ext4-writeback xfs btrfs posix": "f=- g=A1 o=A1 | f=A1 g=- o=A1",
    }),
    Litmus("rename, fdatasync (J2)", bodies.f_a1, classes.rename_fdatasync, {
        "scc xfs btrfs": "f=- g=A1",
        "ext4-journal ext4 ext4-ordered ext4-writeback posix": "f=- g=A1 | f=A1 g=-",
    }),
    Litmus("rename, fsync", bodies.f_a1, classes.rename_fsync, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "f=- g=A1",
        "posix": "f=- g=A1 | f=A1 g=-",
    }),
    Litmus("create, rename, fdatasync (J2)", bodies.nothing, classes.create_rename_fdatasync, {
        "scc xfs btrfs": "f=- g=B1",
        "ext4-journal ext4 ext4-ordered ext4-writeback": "f=- g=B1 | f=B1 g=-",
        "posix": "f=- g=- | f=- g=B1 | f=B1 g=-",
    }),
    Litmus("create, fdatasync", bodies.nothing, classes.create_fdatasync, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "f=B1",
        "posix": "f=- | f=B1",
    }),
    Litmus(
        "replace one of two names", classes.two_names_and_t, classes.replace_one_of_two_names, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": (
            "f=A1 g=A1 t=B1 | f=B1 g=A1 t=-"
        ),
        "posix": "f=- g=A1 t=B1 | f=A1 g=A1 t=B1 | f=B1 g=A1 t=-",
    }),
    Litmus(
        "replace one of two names, fsync another", classes.two_names_and_t,
        classes.replace_one_of_two_names_and_fsync, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "f=B1 g=A1 o=empty t=-",
        "btrfs": "f=- g=A1 o=empty t=B1 | f=A1 g=A1 o=empty t=B1 | f=B1 g=A1 o=empty t=-",
    }),
    Litmus(
        "commit, replace one of two names, fsync the other (B22)", classes.two_names_and_t,
        classes.commit_then_replace_one_of_two_names, {
        "scc": "f=B1,C1 g=A1 t=-",
        "ext4-journal ext4 ext4-ordered ext4-writeback xfs": (
            "f=A1 g=A1 t=B1,C1 | f=B1,C1 g=A1 t=-"
        ),
        "btrfs posix": "f=- g=A1 t=B1,C1 | f=A1 g=A1 t=B1,C1 | f=B1,C1 g=A1 t=-",
    }),
    Litmus("replace by two blocks", bodies.f_a2, classes.replace_by_two_blocks, {
        "scc": "f=04095,B2 t=- | f=A2 t=- | f=A2 t=04095,B2 | f=A2 t=empty",
        "ext4-journal": (
            "f=04095,B2 t=- | f=A2 t=- | f=A2 t=04095,B1 | f=A2 t=04095,B2 | f=A2 t=empty"
        ),
        "ext4": (
            "f=04095,B1,01 t=- | f=04095,B2 t=- | f=04096,B1 t=- | f=04097 t=- | f=A2 t=- | "
            "f=A2 t=04095,B1 | f=A2 t=04095,B1,01 | f=A2 t=04095,B2 | f=A2 t=04096 | "
            "f=A2 t=04096,B1 | f=A2 t=04097 | f=A2 t=empty"
        ),
        "ext4-ordered btrfs": (
            "f=04095,B1 t=- | f=04095,B1,01 t=- | f=04095,B2 t=- | f=04096 t=- | "
            "f=04096,B1 t=- | f=04097 t=- | f=A2 t=- | f=A2 t=04095,B1 | f=A2 t=04095,B1,01 | "
            "f=A2 t=04095,B2 | f=A2 t=04096 | f=A2 t=04096,B1 | f=A2 t=04097 | f=A2 t=empty | "
            "f=empty t=-"
        ),
        "ext4-writeback": (
            "f=04095,B1 t=- | f=04095,B1,01 t=- | f=04095,B1,S1 t=- | f=04095,B2 t=- | "
            "f=04095,S1 t=- | f=04095,S1,01 t=- | f=04095,S1,B1 t=- | f=04095,S2 t=- | "
            "f=04096 t=- | f=04096,B1 t=- | f=04096,S1 t=- | f=04097 t=- | f=A2 t=- | "
            "f=A2 t=04095,B1 | f=A2 t=04095,B1,01 | f=A2 t=04095,B1,S1 | f=A2 t=04095,B2 | "
            "f=A2 t=04095,S1 | f=A2 t=04095,S1,01 | f=A2 t=04095,S1,B1 | f=A2 t=04095,S2 | "
            "f=A2 t=04096 | f=A2 t=04096,B1 | f=A2 t=04096,S1 | f=A2 t=04097 | f=A2 t=empty | "
            "f=empty t=-"
        ),
        "xfs": (
            "f=04095,B1 t=- | f=04095,B2 t=- | f=04096,B1 t=- | f=A2 t=- | f=A2 t=04095,B1 | "
            "f=A2 t=04095,B2 | f=A2 t=04096,B1 | f=A2 t=empty | f=empty t=-"
        ),
    }),
    Litmus(
        "move a directory, fsync the old parent", classes.spool,
        classes.move_directory_fsync_old, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "tmp=- tmp/m=-",
        "btrfs posix": "tmp=- tmp/m=- | tmp=empty tmp/m=A1",
    }),
    Litmus(
        "move a directory, fsync the new parent", classes.spool,
        classes.move_directory_fsync_new, {
        "all": "tmp=- tmp/m=-",
    }),
    Litmus(
        "replace a name that only its file synced (B9)", bodies.nothing,
        classes.replace_logged_name, {
        "scc ext4-journal": "f=A1 t=- | f=A1 t=B1 | f=A1 t=empty | f=B1 t=-",
        "ext4": "f=01 t=- | f=A1 t=- | f=A1 t=01 | f=A1 t=B1 | f=A1 t=empty | f=B1 t=-",
        "ext4-ordered": (
            "f=01 t=- | f=A1 t=- | f=A1 t=01 | f=A1 t=B1 | f=A1 t=empty | f=B1 t=- | f=empty t=-"
        ),
        "ext4-writeback": (
            "f=01 t=- | f=A1 t=- | f=A1 t=01 | f=A1 t=B1 | f=A1 t=S1 | f=A1 t=empty | f=B1 t=- | "
            "f=S1 t=- | f=empty t=-"
        ),
        "xfs": "f=A1 t=- | f=A1 t=B1 | f=A1 t=empty | f=B1 t=- | f=empty t=-",
        "btrfs": (
            "f=- t=- | f=- t=01 | f=- t=B1 | f=- t=empty | f=01 t=- | f=A1 t=- | f=A1 t=01 | "
            "f=A1 t=B1 | f=A1 t=empty | f=B1 t=- | f=empty t=-"
        ),
        "posix": (
            "f=- t=- | f=- t=01 | f=- t=B1 | f=- t=S1 | f=- t=empty | f=01 t=- | f=A1 t=- | "
            "f=A1 t=01 | f=A1 t=B1 | f=A1 t=S1 | f=A1 t=empty | f=B1 t=- | f=S1 t=- | f=empty t=-"
        ),
    }),
    Litmus(
        "replace a name that its directory synced", bodies.nothing,
        classes.replace_logged_name_synced, {
        "scc ext4-journal": "f=A1 t=- | f=A1 t=B1 | f=A1 t=empty | f=B1 t=-",
        "ext4": "f=01 t=- | f=A1 t=- | f=A1 t=01 | f=A1 t=B1 | f=A1 t=empty | f=B1 t=-",
        "ext4-ordered btrfs": (
            "f=01 t=- | f=A1 t=- | f=A1 t=01 | f=A1 t=B1 | f=A1 t=empty | f=B1 t=- | f=empty t=-"
        ),
        "ext4-writeback posix": (
            "f=01 t=- | f=A1 t=- | f=A1 t=01 | f=A1 t=B1 | f=A1 t=S1 | f=A1 t=empty | f=B1 t=- | "
            "f=S1 t=- | f=empty t=-"
        ),
        "xfs": "f=A1 t=- | f=A1 t=B1 | f=A1 t=empty | f=B1 t=- | f=empty t=-",
    }),
    Litmus(
        "replace a name that only its file synced, by a synced file", bodies.nothing,
        classes.replace_logged_name_by_synced, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "f=A1 t=B1 | f=B1 t=-",
        "posix": "f=- t=- | f=- t=B1 | f=A1 t=- | f=A1 t=B1 | f=B1 t=-",
    }),
    Litmus("replace twice, both synced", bodies.f_a2, classes.replace_twice, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "f=B1 t=C1 | f=C1 t=-",
        "posix": (
            "f=A2 t=- | f=A2 t=B1 | f=A2 t=C1 | f=B1 t=- | f=B1 t=C1 | f=C1 t=- | f=C1 t=B1"
        ),
    }),
    Litmus(
        "replace twice, the second unsynced (B15)", bodies.f_a2,
        classes.replace_twice_last_unsynced, {
        "scc ext4-journal": (
            "f=A2 t=B1 u=- | f=B1 t=- u=- | f=B1 t=- u=C1 | f=B1 t=- u=empty | f=C1 t=- u=-"
        ),
        "ext4": (
            "f=01 t=- u=- | f=A2 t=B1 u=- | f=B1 t=- u=- | f=B1 t=- u=01 | f=B1 t=- u=C1 | "
            "f=B1 t=- u=empty | f=C1 t=- u=-"
        ),
        "ext4-ordered": (
            "f=01 t=- u=- | f=A2 t=B1 u=- | f=B1 t=- u=- | f=B1 t=- u=01 | f=B1 t=- u=C1 | "
            "f=B1 t=- u=empty | f=C1 t=- u=- | f=empty t=- u=-"
        ),
        "ext4-writeback": (
            "f=01 t=- u=- | f=A2 t=B1 u=- | f=B1 t=- u=- | f=B1 t=- u=01 | f=B1 t=- u=C1 | "
            "f=B1 t=- u=S1 | f=B1 t=- u=empty | f=C1 t=- u=- | f=S1 t=- u=- | f=empty t=- u=-"
        ),
        "xfs": (
            "f=A2 t=B1 u=- | f=B1 t=- u=- | f=B1 t=- u=C1 | f=B1 t=- u=empty | f=C1 t=- u=- | "
            "f=empty t=- u=-"
        ),
        "btrfs": (
            "f=01 t=- u=- | f=01 t=B1 u=- | f=A2 t=- u=- | f=A2 t=- u=01 | f=A2 t=- u=C1 | "
            "f=A2 t=- u=empty | f=A2 t=B1 u=- | f=A2 t=B1 u=01 | f=A2 t=B1 u=C1 | "
            "f=A2 t=B1 u=empty | f=B1 t=- u=- | f=B1 t=- u=01 | f=B1 t=- u=C1 | "
            "f=B1 t=- u=empty | f=C1 t=- u=- | f=C1 t=B1 u=- | f=empty t=- u=- | "
            "f=empty t=B1 u=-"
        ),
        "posix": (
            "f=01 t=- u=- | f=01 t=B1 u=- | f=A2 t=- u=- | f=A2 t=- u=01 | f=A2 t=- u=C1 | "
            "f=A2 t=- u=S1 | f=A2 t=- u=empty | f=A2 t=B1 u=- | f=A2 t=B1 u=01 | "
            "f=A2 t=B1 u=C1 | f=A2 t=B1 u=S1 | f=A2 t=B1 u=empty | f=B1 t=- u=- | "
            "f=B1 t=- u=01 | f=B1 t=- u=C1 | f=B1 t=- u=S1 | f=B1 t=- u=empty | "
            "f=C1 t=- u=- | f=C1 t=B1 u=- | f=S1 t=- u=- | f=S1 t=B1 u=- | f=empty t=- u=- | "
            "f=empty t=B1 u=-"
        ),
    }),
    Litmus(
        "fsync a file that left a new directory (B16)", bodies.nothing,
        classes.leave_new_directory, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "e/g=- f=A1",
        "posix": "e/g=- f=- | e/g=- f=A1 | e/g=A1 f=- | e/g=A1 f=A1",
    }),
    Litmus(
        "the same by a link and an unlink", bodies.nothing,
        classes.leave_new_directory_by_link, {
        "scc btrfs": "e/g=- f=A1",
        "ext4-journal ext4 ext4-ordered ext4-writeback xfs": "e/g=- f=A1 | e/g=A1 f=A1",
        "posix": "e/g=- f=- | e/g=- f=A1 | e/g=A1 f=- | e/g=A1 f=A1",
    }),
    Litmus(
        "move a file away, replace it, remove it, fsync the other (B20)", classes.f_and_t,
        classes.replace_what_moved_away, {
        "scc": "f=B1 h=- t=-",
        "ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "f=B1 h=- t=- | f=B1 h=A1 t=-",
        "posix": (
            "f=- h=- t=B1 | f=- h=A1 t=B1 | f=A1 h=- t=B1 | f=B1 h=- t=- | f=B1 h=A1 t=-"
        ),
    }),
    Litmus("replace, fsync, move on, fsync (B10)", classes.f_and_t, classes.successor_moves_on, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "f=- h=B1 t=-",
        "btrfs": "f=- h=B1 t=- | f=A1 h=B1 t=-",
        "posix": "f=- h=B1 t=- | f=A1 h=- t=B1 | f=A1 h=B1 t=- | f=A1 h=B1 t=B1 | f=B1 h=- t=-",
    }),
)  # fmt: skip
