"""The allowed outcomes of bodies about content: classes of docs/disk.md, and their neighbours.

The engine printed the outcomes. They were read against the rules of that page, and
``test_allowed_outcomes.py`` compares them with its naive enumeration.
"""

from __future__ import annotations

from typing import Final

from tests.litmus import bodies
from tests.litmus import class_bodies as classes
from tests.litmus.litmus import Litmus

CONTENT_CLASSES: Final = (
    Litmus(
        "rename, rewrite, fsync directory (B5)", bodies.f_a2,
        classes.rename_rewrite_fsync_directory, {
        "scc": "f=- g=B1 | f=- g=empty",
        "ext4-journal xfs": "f=- g=A2 | f=- g=B1 | f=- g=empty",
        "ext4 ext4-ordered": "f=- g=01 | f=- g=A2 | f=- g=B1 | f=- g=empty",
        "ext4-writeback": "f=- g=01 | f=- g=A2 | f=- g=B1 | f=- g=S1 | f=- g=empty",
        "btrfs": "f=- g=01 | f=- g=A1 | f=- g=A2 | f=- g=B1 | f=- g=B1,A1 | f=- g=empty",
        "posix": (
            "f=- g=01 | f=- g=A1 | f=- g=A2 | f=- g=B1 | f=- g=B1,A1 | f=- g=S1 | f=- g=empty"
        ),
    }),
    Litmus("append, then extend (B6)", bodies.f_a2, classes.append_and_extend, {
        "scc ext4-journal": "f=A2 | f=A2,B1 | f=A2,B1,01",
        "ext4 ext4-ordered ext4-writeback btrfs": (
            "f=A2 | f=A2,01 | f=A2,02 | f=A2,B1 | f=A2,B1,01"
        ),
        "xfs": "f=A2 | f=A2,02 | f=A2,B1 | f=A2,B1,01",
        "posix": "f=A2 | f=A2,01 | f=A2,02 | f=A2,B1 | f=A2,B1,01 | f=A2,S1 | f=A2,S1,01",
    }),
    Litmus("append, then set the same size (B6)", bodies.f_a2, classes.append_and_set_its_size, {
        "scc ext4-journal xfs": "f=A2 | f=A2,B1",
        "ext4 ext4-ordered ext4-writeback btrfs": "f=A2 | f=A2,01 | f=A2,B1",
        "posix": "f=A2 | f=A2,01 | f=A2,B1 | f=A2,S1",
    }),
    Litmus("truncate inside a block (T1)", bodies.f_a2, classes.truncate_in_a_block, {
        "scc ext4-journal btrfs": "f=A1 | f=A2",
        "ext4 ext4-ordered ext4-writeback xfs posix": "f=A1 | f=A1,01 | f=A2",
    }),
    Litmus(
        "truncate inside a block, two sectors (T1)", bodies.f_a514,
        classes.truncate_two_sectors, {
        "scc ext4-journal btrfs": "f=A511 | f=A514",
        "ext4 ext4-ordered ext4-writeback xfs posix": (
            "f=A511 | f=A511,01,A2 | f=A511,03 | f=A512,02 | f=A514"
        ),
    }),
    Litmus("cut off a block, overwrite (T2)", bodies.f_a4098, classes.cut_and_overwrite, {
        "scc ext4-journal": "f=A4096 | f=A4098 | f=B1,A4095",
        "ext4 ext4-ordered ext4-writeback xfs btrfs posix": (
            "f=A4096 | f=A4098 | f=B1,A4095 | f=B1,A4097"
        ),
    }),
    Litmus("cut off a tail, append (T5)", bodies.f_a2, classes.cut_and_append, {
        "scc ext4-journal": "f=A1 | f=A1,B2 | f=A2",
        "ext4 ext4-ordered": "f=A1 | f=A1,01 | f=A1,02 | f=A1,B1 | f=A1,B2 | f=A2",
        "ext4-writeback": "f=A1 | f=A1,01 | f=A1,02 | f=A1,B1 | f=A1,B2 | f=A2 | f=A2,01",
        "xfs": "f=A1 | f=A1,01 | f=A1,B1 | f=A1,B2 | f=A2",
        "btrfs": "f=A1 | f=A1,02 | f=A1,B2 | f=A2 | f=A2,01",
        "posix": (
            "f=A1 | f=A1,01 | f=A1,02 | f=A1,B1 | f=A1,B1,01 | f=A1,B2 | f=A1,S2 | f=A2 | f=A2,01"
        ),
    }),
    Litmus("cut off a block, append", bodies.f_a4098, classes.cut_block_and_append, {
        "scc ext4-journal xfs": "f=A4096 | f=A4096,B2 | f=A4098",
        "ext4 ext4-ordered btrfs": "f=A4096 | f=A4096,02 | f=A4096,B2 | f=A4098",
        "ext4-writeback": "f=A4096 | f=A4096,02 | f=A4096,B2 | f=A4096,S2 | f=A4098",
        "posix": (
            "f=A4096 | f=A4096,02 | f=A4096,B1,01 | f=A4096,B1,A1 | f=A4096,B2 | f=A4096,S2 | "
            "f=A4098"
        ),
    }),
    Litmus("cut off a tail, extend (T5)", bodies.f_a2, classes.cut_and_extend, {
        "scc ext4-journal": "f=A1 | f=A1,02 | f=A2",
        "ext4 ext4-ordered": "f=A1 | f=A1,01 | f=A1,02 | f=A2",
        "ext4-writeback xfs posix": "f=A1 | f=A1,01 | f=A1,02 | f=A2 | f=A2,01",
        "btrfs": "f=A1 | f=A1,02 | f=A2 | f=A2,01",
    }),
    Litmus("overwrite, cut off a tail (T8)", bodies.f_a2, classes.overwrite_and_cut, {
        "scc ext4-journal": "f=A2 | f=B1 | f=B1,A1",
        "ext4 ext4-ordered": "f=A2 | f=B1 | f=B1,01 | f=B1,A1",
        "ext4-writeback xfs": "f=A1 | f=A2 | f=B1 | f=B1,01 | f=B1,A1",
        "btrfs": "f=A1 | f=A2 | f=B1 | f=B1,A1",
        "posix": "f=A1 | f=A1,01 | f=A2 | f=B1 | f=B1,01 | f=B1,A1",
    }),
    Litmus(
        "cut off a tail, synchronous write of another page (T5)", bodies.f_a2,
        classes.cut_and_sync_another_page, {
        "scc ext4-journal ext4 ext4-ordered": "f=A1,04095,C1",
        "ext4-writeback xfs btrfs posix": "f=A1,04095,C1 | f=A2,04094,C1",
    }),
    Litmus("sync, remove another, truncate", bodies.f_and_d_f, classes.remove_another_and_cut, {
        "scc ext4-journal btrfs": "d/f=- f=A1 | d/f=- f=A1,B1 | d/f=B1 f=A1,B1",
        "ext4 ext4-ordered ext4-writeback xfs": (
            "d/f=- f=A1 | d/f=- f=A1,01 | d/f=- f=A1,B1 | d/f=B1 f=A1,01 | d/f=B1 f=A1,B1"
        ),
        "posix": (
            "d/f=- f=A1 | d/f=- f=A1,01 | d/f=- f=A1,B1 | d/f=B1 f=A1 | d/f=B1 f=A1,01 | "
            "d/f=B1 f=A1,B1"
        ),
    }),
    Litmus(
        "sync, remove another, truncate, rename (B23)", bodies.f_and_d_f,
        classes.remove_another_cut_rename, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "d/f=- f=- t=A1",
        "btrfs": (
            "d/f=- f=- t=A1 | d/f=- f=- t=A1,B1 | d/f=B1 f=- t=A1 | d/f=B1 f=- t=A1,B1"
        ),
        "posix": (
            "d/f=- f=- t=A1 | d/f=- f=- t=A1,01 | d/f=- f=- t=A1,B1 | d/f=B1 f=- t=A1 | "
            "d/f=B1 f=- t=A1,01 | d/f=B1 f=- t=A1,B1"
        ),
    }),
    Litmus("rename, allocate, overwrite another (T3)", bodies.f_o, classes.rename_allocate_write, {
        "scc ext4-journal": "f=A1 o=- p=A1 | f=A1 o=A1 p=- | f=B2 o=- p=A1",
        "ext4 ext4-ordered ext4-writeback btrfs": (
            "f=A1 o=- p=A1 | f=A1 o=A1 p=- | f=A1,01 o=- p=A1 | f=B1 o=- p=A1 | f=B1 o=A1 p=- | "
            "f=B2 o=- p=A1"
        ),
        "xfs": "f=A1 o=- p=A1 | f=A1 o=A1 p=- | f=B1 o=- p=A1 | f=B1 o=A1 p=- | f=B2 o=- p=A1",
        "posix": (
            "f=A1 o=- p=A1 | f=A1 o=A1 p=- | f=A1,01 o=- p=A1 | f=A1,01 o=A1 p=- | "
            "f=B1 o=- p=A1 | f=B1 o=A1 p=- | f=B1,01 o=- p=A1 | f=B1,01 o=A1 p=- | "
            "f=B2 o=- p=A1 | f=B2 o=A1 p=-"
        ),
    }),
    Litmus("allocate", bodies.f_a2, classes.allocate, {
        "all": "f=A2 | f=A2,02",
    }),
    Litmus("sparse append, allocate (T4)", bodies.nothing, classes.sparse_and_allocate, {
        "scc ext4-journal": "f=- | f=05,B1 | f=empty",
        "ext4 ext4-ordered btrfs": "f=- | f=03 | f=05,B1 | f=06 | f=empty",
        "ext4-writeback posix": "f=- | f=03 | f=05,B1 | f=05,S1 | f=06 | f=empty",
        "xfs": "f=- | f=03 | f=05,B1 | f=empty",
    }),
    Litmus(
        "replace by a file with allocated blocks (E3)", bodies.f_a2, classes.replace_by_allocated, {
        "scc ext4-journal": "f=A2 t=- | f=A2 t=B2 | f=A2 t=empty | f=B2 t=-",
        "ext4": (
            "f=01 t=- | f=02 t=- | f=A2 t=- | f=A2 t=01 | f=A2 t=02 | f=A2 t=B1 | f=A2 t=B2 | "
            "f=A2 t=empty | f=B1 t=- | f=B2 t=-"
        ),
        "ext4-ordered btrfs": (
            "f=01 t=- | f=02 t=- | f=A2 t=- | f=A2 t=01 | f=A2 t=02 | f=A2 t=B1 | f=A2 t=B2 | "
            "f=A2 t=empty | f=B1 t=- | f=B2 t=- | f=empty t=-"
        ),
        "ext4-writeback": (
            "f=01 t=- | f=02 t=- | f=A2 t=- | f=A2 t=01 | f=A2 t=02 | f=A2 t=B1 | f=A2 t=B2 | "
            "f=A2 t=S1 | f=A2 t=S2 | f=A2 t=empty | f=B1 t=- | f=B2 t=- | f=S1 t=- | f=S2 t=- | "
            "f=empty t=-"
        ),
        "xfs": (
            "f=A2 t=- | f=A2 t=B1 | f=A2 t=B2 | f=A2 t=empty | f=B1 t=- | f=B2 t=- | f=empty t=-"
        ),
        "posix": (
            "f=01 t=- | f=02 t=- | f=A2 t=- | f=A2 t=01 | f=A2 t=02 | f=A2 t=B1 | f=A2 t=B1,01 | "
            "f=A2 t=B2 | f=A2 t=S1 | f=A2 t=S2 | f=A2 t=empty | f=B1 t=- | f=B1,01 t=- | "
            "f=B2 t=- | f=S1 t=- | f=S2 t=- | f=empty t=-"
        ),
    }),
    Litmus(
        "overwrite, synchronous write of another page (S1)", bodies.f_a4098,
        classes.overwrite_and_sync_another_page, {
        "scc ext4-journal": "f=B1,A4095,C1,A1",
        "ext4 ext4-ordered ext4-writeback xfs btrfs posix": (
            "f=A4096,C1,A1 | f=B1,A4095,C1,A1"
        ),
    }),
    Litmus(
        "extend, synchronous write of another page", bodies.f_a1,
        classes.extend_and_sync_another_page, {
        "scc ext4-journal": "f=C1,04095,B1",
        "ext4 ext4-ordered btrfs": "f=C1 | f=C1,04095 | f=C1,04095,B1 | f=C1,04096",
        "ext4-writeback posix": (
            "f=C1 | f=C1,04095 | f=C1,04095,B1 | f=C1,04095,S1 | f=C1,04096"
        ),
        "xfs": "f=C1 | f=C1,04095 | f=C1,04095,B1",
    }),
    Litmus(
        "append, allocate less, synchronous write (S2)", bodies.f_a4096,
        classes.allocate_within_and_sync_another_page, {
        "scc ext4-journal": "f=C1,A4095,B2",
        "ext4 ext4-ordered btrfs": (
            "f=C1,A4095 | f=C1,A4095,01 | f=C1,A4095,02 | f=C1,A4095,B1 | f=C1,A4095,B2"
        ),
        "ext4-writeback": (
            "f=C1,A4095 | f=C1,A4095,01 | f=C1,A4095,02 | f=C1,A4095,B1 | f=C1,A4095,B2 | "
            "f=C1,A4095,S1 | f=C1,A4095,S2"
        ),
        "xfs": "f=C1,A4095 | f=C1,A4095,B1 | f=C1,A4095,B2",
        "posix": (
            "f=C1,A4095 | f=C1,A4095,01 | f=C1,A4095,02 | f=C1,A4095,B1 | f=C1,A4095,B1,01 | "
            "f=C1,A4095,B2 | f=C1,A4095,S1 | f=C1,A4095,S2"
        ),
    }),
)  # fmt: skip
