"""The litmus tests: bodies of a few calls, and the allowed outcomes under every model.

The outcomes follow from the rules of docs/disk.md; each was derived by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sim.disk.crash.persistence import MODELS
from tests.litmus import bodies
from tests.litmus.body import Body


@dataclass(frozen=True)
class Litmus:
    """``end`` has the outcomes of a power cut after the last call, separated by bars.

    Its keys are names of models, several in one key.
    """

    name: str
    setup: Body
    body: Body
    end: dict[str, str]

    def allowed(self, model: str) -> set[str]:
        for models, outcomes in self.end.items():
            if model in models.split() or models == "all":
                return {outcome.strip() for outcome in outcomes.split("|")}
        raise KeyError(model)

    @property
    def models(self) -> list[str]:
        return [m for m in MODELS if any(m in key.split() or key == "all" for key in self.end)]


LITMUS: Final = (
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
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": (
            "f=- g=- | f=empty g=- | f=empty g=empty"
        ),
        "btrfs posix": "f=- g=- | f=- g=empty | f=empty g=- | f=empty g=empty",
    }),
    Litmus("create in two directories", bodies.d_e, bodies.create_in_two_directories, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": (
            "d/f=- e/g=- | d/f=empty e/g=- | d/f=empty e/g=empty"
        ),
        "btrfs posix": "d/f=- e/g=- | d/f=- e/g=empty | d/f=empty e/g=- | d/f=empty e/g=empty",
    }),
    Litmus(
        "create in two directories, fsync the second", bodies.d_e,
        bodies.create_in_two_directories_fsync_second, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "d/f=empty e/g=empty",
        "btrfs": "d/f=- e/g=empty | d/f=empty e/g=empty",
        "posix": "d/f=- e/g=- | d/f=- e/g=empty | d/f=empty e/g=- | d/f=empty e/g=empty",
    }),
    Litmus("unlink, create another", bodies.f_a1, bodies.unlink_create, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": (
            "f=- g=- | f=- g=empty | f=A1 g=-"
        ),
        "btrfs posix": "f=- g=- | f=- g=empty | f=A1 g=- | f=A1 g=empty",
    }),
    Litmus("unlink, fsync directory", bodies.f_a1, bodies.unlink_fsync_directory, {
        "all": "f=-",
    }),
    Litmus("rename, append to another, fsync it", bodies.f_o, bodies.rename_append_other_fsync, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "f=- g=A1 o=A1,B1",
        "btrfs posix": "f=- g=A1 o=A1,B1 | f=A1 g=- o=A1,B1",
    }),
    Litmus("truncate, create another", bodies.f_a2, bodies.truncate_create, {
        "scc ext4-journal": "f=A1 g=- | f=A1 g=empty | f=A2 g=-",
        "ext4 ext4-ordered ext4-writeback xfs": (
            "f=A1 g=- | f=A1 g=empty | f=A1,01 g=- | f=A2 g=-"
        ),
        "btrfs": "f=A1 g=- | f=A1 g=empty | f=A2 g=- | f=A2 g=empty",
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
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": (
            "f=- g=A1 | f=A1 g=- | f=A1 g=A1"
        ),
        "btrfs posix": "f=- g=- | f=- g=A1 | f=A1 g=- | f=A1 g=A1",
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
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "d/f=- f=A1 | d/f=A1 f=-",
        "btrfs posix": "d/f=- f=A1 | d/f=A1 f=- | d/f=A1 f=A1",
    }),
    Litmus("replace by rename, fsync directory (B1)", bodies.f_a2, bodies.replace_fsync_directory, {
        "scc ext4-journal": "f=B2 t=-",
        "ext4": "f=02 t=- | f=B2 t=-",
        "ext4-ordered btrfs": "f=02 t=- | f=B2 t=- | f=empty t=-",
        "ext4-writeback": "f=02 t=- | f=B2 t=- | f=S2 t=- | f=empty t=-",
        "xfs": "f=B2 t=- | f=empty t=-",
        "posix": "f=02 t=- | f=B1,01 t=- | f=B2 t=- | f=S2 t=- | f=empty t=-",
    }),
    Litmus("deliver between directories (B2)", bodies.spool, bodies.deliver, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": (
            "new/m=- tmp/m=A1 | new/m=A1 tmp/m=-"
        ),
        "btrfs posix": "new/m=- tmp/m=A1 | new/m=A1 tmp/m=- | new/m=A1 tmp/m=A1",
    }),
    Litmus("deliver, fsync the new directory (B2)", bodies.spool, bodies.deliver_fsync_new, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "new/m=A1 tmp/m=-",
        "btrfs posix": "new/m=A1 tmp/m=- | new/m=A1 tmp/m=A1",
    }),
    Litmus("deliver, fsync the old directory (B2)", bodies.spool, bodies.deliver_fsync_old, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "new/m=A1 tmp/m=-",
        "posix": "new/m=- tmp/m=A1 | new/m=A1 tmp/m=- | new/m=A1 tmp/m=A1",
    }),
    Litmus("deliver, fsync the file (B2)", bodies.spool, bodies.deliver_fsync_file, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "new/m=A1 tmp/m=-",
        "posix": "new/m=- tmp/m=A1 | new/m=A1 tmp/m=- | new/m=A1 tmp/m=A1",
    }),
    Litmus("move a directory", bodies.spool, bodies.move_directory, {
        "all": "tmp=- tmp/m=- | tmp=empty tmp/m=A1",
    }),
    Litmus(
        "rotate a log, replace a checkpoint (B3)", bodies.log_and_checkpoint,
        bodies.rotate_and_checkpoint, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "cp=B2 log=- old=A1 t=-",
        "btrfs": "cp=B2 log=- old=A1 t=- | cp=B2 log=A1 old=- t=-",
        "posix": (
            "cp=A2 log=- old=A1 t=- | cp=A2 log=- old=A1 t=B2 | cp=A2 log=A1 old=- t=- | "
            "cp=A2 log=A1 old=- t=B2 | cp=B2 log=- old=A1 t=- | cp=B2 log=A1 old=- t=-"
        ),
    }),
    Litmus("rename, then replace by another file (B4)", bodies.g_a1, bodies.rename_and_replace, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "f=B1 g=- h=-",
        "btrfs": "f=B1 g=- h=- | f=B1 g=A1 h=-",
        "posix": (
            "f=- g=- h=- | f=- g=- h=B1 | f=- g=A1 h=- | f=- g=A1 h=B1 | f=A1 g=- h=- | "
            "f=A1 g=- h=B1 | f=B1 g=- h=- | f=B1 g=A1 h=-"
        ),
    }),
    Litmus("replace, move on, fsync (B4)", bodies.f_and_t, bodies.replace_and_move_on, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "f=- h=B1 t=-",
        "btrfs": "f=- h=B1 t=- | f=A1 h=B1 t=-",
        "posix": "f=- h=B1 t=- | f=A1 h=- t=B1 | f=A1 h=B1 t=- | f=A1 h=B1 t=B1 | f=B1 h=- t=-",
    }),
    Litmus("unlink, create anew, fsync", bodies.f_a1, bodies.unlink_create_same_name, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "f=B1",
        "posix": "f=- | f=A1 | f=B1",
    }),
    Litmus(
        "rename, rewrite, fsync directory (B5)", bodies.f_a2,
        bodies.rename_rewrite_fsync_directory, {
        "scc": "f=- g=B1 | f=- g=empty",
        "ext4-journal xfs": "f=- g=A2 | f=- g=B1 | f=- g=empty",
        "ext4 ext4-ordered": "f=- g=01 | f=- g=A2 | f=- g=B1 | f=- g=empty",
        "ext4-writeback": "f=- g=01 | f=- g=A2 | f=- g=B1 | f=- g=S1 | f=- g=empty",
        "btrfs": "f=- g=01 | f=- g=A1 | f=- g=A2 | f=- g=B1 | f=- g=B1,A1 | f=- g=empty",
        "posix": (
            "f=- g=01 | f=- g=A1 | f=- g=A2 | f=- g=B1 | f=- g=B1,A1 | f=- g=S1 | f=- g=empty"
        ),
    }),
    Litmus("append, then extend (B6)", bodies.f_a2, bodies.append_and_extend, {
        "scc ext4-journal": "f=A2 | f=A2,B1 | f=A2,B1,01",
        "ext4 ext4-ordered ext4-writeback btrfs": (
            "f=A2 | f=A2,01 | f=A2,02 | f=A2,B1 | f=A2,B1,01"
        ),
        "xfs": "f=A2 | f=A2,02 | f=A2,B1 | f=A2,B1,01",
        "posix": "f=A2 | f=A2,01 | f=A2,02 | f=A2,B1 | f=A2,B1,01 | f=A2,S1 | f=A2,S1,01",
    }),
    Litmus("append, then set the same size (B6)", bodies.f_a2, bodies.append_and_set_its_size, {
        "scc ext4-journal xfs": "f=A2 | f=A2,B1",
        "ext4 ext4-ordered ext4-writeback btrfs": "f=A2 | f=A2,01 | f=A2,B1",
        "posix": "f=A2 | f=A2,01 | f=A2,B1 | f=A2,S1",
    }),
    Litmus("rename, fsync an unchanged file (J1)", bodies.f_o, bodies.rename_fsync_unchanged, {
        "scc": "f=- g=A1 o=A1",
        "ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs posix": (
            "f=- g=A1 o=A1 | f=A1 g=- o=A1"
        ),
    }),
    Litmus("rename, chmod another, fsync it", bodies.f_o, bodies.rename_chmod_fsync, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "f=- g=A1 o=A1",
        "btrfs posix": "f=- g=A1 o=A1 | f=A1 g=- o=A1",
    }),
    Litmus("rename, fdatasync (J2)", bodies.f_a1, bodies.rename_fdatasync, {
        "scc xfs btrfs": "f=- g=A1",
        "ext4-journal ext4 ext4-ordered ext4-writeback posix": "f=- g=A1 | f=A1 g=-",
    }),
    Litmus("rename, fsync", bodies.f_a1, bodies.rename_fsync, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "f=- g=A1",
        "posix": "f=- g=A1 | f=A1 g=-",
    }),
    Litmus("create, rename, fdatasync (J2)", bodies.nothing, bodies.create_rename_fdatasync, {
        "scc xfs btrfs": "f=- g=B1",
        "ext4-journal ext4 ext4-ordered ext4-writeback": "f=- g=B1 | f=B1 g=-",
        "posix": "f=- g=- | f=- g=B1 | f=B1 g=-",
    }),
    Litmus("create, fdatasync", bodies.nothing, bodies.create_fdatasync, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs": "f=B1",
        "posix": "f=- | f=B1",
    }),
    Litmus("truncate inside a block (T1)", bodies.f_a2, bodies.truncate_in_a_block, {
        "scc ext4-journal btrfs": "f=A1 | f=A2",
        "ext4 ext4-ordered ext4-writeback xfs posix": "f=A1 | f=A1,01 | f=A2",
    }),
    Litmus(
        "truncate inside a block, two sectors (T1)", bodies.f_a514,
        bodies.truncate_two_sectors, {
        "scc ext4-journal btrfs": "f=A511 | f=A514",
        "ext4 ext4-ordered ext4-writeback xfs posix": (
            "f=A511 | f=A511,01,A2 | f=A511,03 | f=A512,02 | f=A514"
        ),
    }),
    Litmus("cut off a block, overwrite (T2)", bodies.f_a4098, bodies.cut_and_overwrite, {
        "scc ext4-journal": "f=A4096 | f=A4098 | f=B1,A4095",
        "ext4 ext4-ordered ext4-writeback xfs btrfs posix": (
            "f=A4096 | f=A4098 | f=B1,A4095 | f=B1,A4097"
        ),
    }),
    Litmus("cut off a tail, append (T5)", bodies.f_a2, bodies.cut_and_append, {
        "scc ext4-journal": "f=A1 | f=A1,B2 | f=A2",
        "ext4 ext4-ordered": "f=A1 | f=A1,01 | f=A1,02 | f=A1,B1 | f=A1,B2 | f=A2",
        "ext4-writeback": "f=A1 | f=A1,01 | f=A1,02 | f=A1,B1 | f=A1,B2 | f=A2 | f=A2,01",
        "xfs": "f=A1 | f=A1,01 | f=A1,B1 | f=A1,B2 | f=A2",
        "btrfs": "f=A1 | f=A1,02 | f=A1,B1 | f=A1,B2 | f=A2 | f=A2,01",
        "posix": (
            "f=A1 | f=A1,01 | f=A1,02 | f=A1,B1 | f=A1,B1,01 | f=A1,B2 | f=A1,S2 | f=A2 | f=A2,01"
        ),
    }),
    Litmus("cut off a block, append", bodies.f_a4098, bodies.cut_block_and_append, {
        "scc ext4-journal xfs": "f=A4096 | f=A4096,B2 | f=A4098",
        "ext4 ext4-ordered btrfs": "f=A4096 | f=A4096,02 | f=A4096,B2 | f=A4098",
        "ext4-writeback": "f=A4096 | f=A4096,02 | f=A4096,B2 | f=A4096,S2 | f=A4098",
        "posix": (
            "f=A4096 | f=A4096,02 | f=A4096,B1,01 | f=A4096,B1,A1 | f=A4096,B2 | f=A4096,S2 | "
            "f=A4098"
        ),
    }),
    Litmus("cut off a tail, extend (T5)", bodies.f_a2, bodies.cut_and_extend, {
        "scc ext4-journal": "f=A1 | f=A1,02 | f=A2",
        "ext4 ext4-ordered xfs": "f=A1 | f=A1,01 | f=A1,02 | f=A2",
        "ext4-writeback posix": "f=A1 | f=A1,01 | f=A1,02 | f=A2 | f=A2,01",
        "btrfs": "f=A1 | f=A1,02 | f=A2 | f=A2,01",
    }),
    Litmus("rename, allocate, overwrite another (T3)", bodies.f_o, bodies.rename_allocate_write, {
        "scc ext4-journal": "f=A1 o=- p=A1 | f=A1 o=A1 p=- | f=B2 o=- p=A1",
        "ext4 ext4-ordered ext4-writeback": (
            "f=A1 o=- p=A1 | f=A1 o=A1 p=- | f=A1,01 o=- p=A1 | f=B1 o=- p=A1 | f=B1 o=A1 p=- | "
            "f=B2 o=- p=A1"
        ),
        "xfs": "f=A1 o=- p=A1 | f=A1 o=A1 p=- | f=B1 o=- p=A1 | f=B1 o=A1 p=- | f=B2 o=- p=A1",
        "btrfs": (
            "f=A1 o=- p=A1 | f=A1 o=A1 p=- | f=A1,01 o=- p=A1 | f=A1,01 o=A1 p=- | "
            "f=B1 o=- p=A1 | f=B1 o=A1 p=- | f=B2 o=- p=A1 | f=B2 o=A1 p=-"
        ),
        "posix": (
            "f=A1 o=- p=A1 | f=A1 o=A1 p=- | f=A1,01 o=- p=A1 | f=A1,01 o=A1 p=- | "
            "f=B1 o=- p=A1 | f=B1 o=A1 p=- | f=B1,01 o=- p=A1 | f=B1,01 o=A1 p=- | "
            "f=B2 o=- p=A1 | f=B2 o=A1 p=-"
        ),
    }),
    Litmus("allocate", bodies.f_a2, bodies.allocate, {
        "all": "f=A2 | f=A2,02",
    }),
    Litmus("sparse append, allocate (T4)", bodies.nothing, bodies.sparse_and_allocate, {
        "scc ext4-journal": "f=- | f=05,B1 | f=empty",
        "ext4 ext4-ordered btrfs": "f=- | f=03 | f=05,B1 | f=06 | f=empty",
        "ext4-writeback posix": "f=- | f=03 | f=05,B1 | f=05,S1 | f=06 | f=empty",
        "xfs": "f=- | f=03 | f=05,B1 | f=empty",
    }),
    Litmus(
        "replace one of two names (B8)", bodies.two_names_and_t,
        bodies.replace_one_of_two_names, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "f=A1 g=A1 t=B1 | f=B1 g=A1 t=-",
        "btrfs posix": "f=- g=A1 t=B1 | f=A1 g=A1 t=B1 | f=B1 g=A1 t=-",
    }),
    Litmus("replace by two blocks", bodies.f_a2, bodies.replace_by_two_blocks, {
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
        "move a directory, fsync the old parent", bodies.spool,
        bodies.move_directory_fsync_old, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "tmp=- tmp/m=-",
        "btrfs posix": "tmp=- tmp/m=- | tmp=empty tmp/m=A1",
    }),
    Litmus(
        "move a directory, fsync the new parent", bodies.spool,
        bodies.move_directory_fsync_new, {
        "all": "tmp=- tmp/m=-",
    }),
    Litmus(
        "replace a name that only its file synced (B9)", bodies.nothing,
        bodies.replace_logged_name, {
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
        bodies.replace_logged_name_synced, {
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
    Litmus("replace, fsync, move on, fsync (B10)", bodies.f_and_t, bodies.successor_moves_on, {
        "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs": "f=- h=B1 t=-",
        "btrfs": "f=- h=B1 t=- | f=A1 h=B1 t=-",
        "posix": "f=- h=B1 t=- | f=A1 h=- t=B1 | f=A1 h=B1 t=- | f=A1 h=B1 t=B1 | f=B1 h=- t=-",
    }),
)  # fmt: skip
