"""The litmus tests: bodies of a few calls, and the allowed outcomes under every model.

The outcomes were written by hand from the table of models, before the code ran.
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


_SEQUENTIAL = "scc ext4-journal"
_NOT_POSIX = "scc ext4-journal ext4-ordered ext4-writeback xfs btrfs"
_METADATA = "scc ext4-journal ext4-ordered ext4-writeback xfs"

LITMUS: Final = (
    Litmus("create", bodies.nothing, bodies.create, {
        "scc ext4-journal ext4-ordered xfs btrfs": "f=- | f=empty | f=B2",
        "ext4-writeback": "f=- | f=empty | f=02 | f=S2 | f=B2",
        "posix": "f=- | f=empty | f=02 | f=S2 | f=B1,01 | f=B2",
    }),
    Litmus("create, fsync", bodies.nothing, bodies.create_fsync, {
        _NOT_POSIX: "f=B2",
        "posix": "f=- | f=B2",
    }),
    Litmus("create, fsync, fsync directory", bodies.nothing, bodies.create_fsync_directory, {
        "all": "f=B2",
    }),
    Litmus("create, fsync directory only", bodies.nothing, bodies.only_directory, {
        _SEQUENTIAL: "f=empty | f=B2",
        "ext4-ordered xfs btrfs": "f=empty | f=B2",
        "ext4-writeback": "f=empty | f=02 | f=S2 | f=B2",
        "posix": "f=empty | f=02 | f=S2 | f=B1,01 | f=B2",
    }),
    Litmus("overwrite", bodies.f_a2, bodies.overwrite, {
        _NOT_POSIX: "f=A2 | f=B2",
        "posix": "f=A2 | f=B2 | f=B1,A1",
    }),
    Litmus("overwrite, the first byte as it was", bodies.f_a2, bodies.overwrite_second_byte, {
        "all": "f=A2 | f=A1,B1",
    }),
    Litmus("overwrite, fdatasync", bodies.f_a2, bodies.overwrite_fdatasync, {"all": "f=B2"}),
    Litmus("overwrite across sectors", bodies.f_a514, bodies.overwrite_two_sectors, {
        "scc ext4-journal btrfs": "f=A514 | f=A510,B4",
        "ext4-ordered ext4-writeback xfs":
            "f=A514 | f=A510,B2,A2 | f=A512,B2 | f=A510,B4",
        "posix":
            "f=A514 | f=A512,B1,A1 | f=A512,B2 | f=A510,B1,A3 | f=A510,B1,A1,B1,A1 |"
            "f=A510,B1,A1,B2 | f=A510,B2,A2 | f=A510,B3,A1 | f=A510,B4",
    }),
    Litmus("overwrite across blocks", bodies.f_a4098, bodies.overwrite_two_blocks, {
        "scc": "f=A4098 | f=A4094,B4",
        "ext4-journal": "f=A4098 | f=A4094,B2,A2 | f=A4094,B4",
        "ext4-ordered ext4-writeback xfs btrfs":
            "f=A4098 | f=A4094,B2,A2 | f=A4096,B2 | f=A4094,B4",
    }),
    Litmus("overwrite two files", bodies.f_g_a1, bodies.overwrite_two_files, {
        _SEQUENTIAL: "f=A1 g=A1 | f=B1 g=A1 | f=B1 g=B1",
        "ext4-ordered ext4-writeback xfs btrfs posix":
            "f=A1 g=A1 | f=B1 g=A1 | f=A1 g=B1 | f=B1 g=B1",
    }),
    Litmus("overwrite twice", bodies.f_a1, bodies.overwrite_twice, {"all": "f=A1 | f=B1 | f=C1"}),
    Litmus("append inside a block", bodies.f_a2, bodies.append, {
        "scc ext4-journal xfs btrfs": "f=A2 | f=A2,B2",
        "ext4-ordered ext4-writeback": "f=A2 | f=A2,02 | f=A2,B2",
        "posix": "f=A2 | f=A2,02 | f=A2,S2 | f=A2,B1,01 | f=A2,B2",
    }),
    Litmus("append a block", bodies.f_a4096, bodies.append_1, {
        "scc ext4-journal ext4-ordered xfs btrfs": "f=A4096 | f=A4096,B1",
        "ext4-writeback posix": "f=A4096 | f=A4096,01 | f=A4096,S1 | f=A4096,B1",
    }),
    Litmus("append across blocks", bodies.f_a4095, bodies.append, {
        "scc": "f=A4095 | f=A4095,B2",
        "ext4-journal xfs btrfs": "f=A4095 | f=A4095,B1 | f=A4095,B2",
        "ext4-ordered": "f=A4095 | f=A4095,01 | f=A4095,B1 | f=A4095,01,B1 | f=A4095,B2",
        "ext4-writeback":
            "f=A4095 | f=A4095,01 | f=A4095,B1 | f=A4095,02 | f=A4095,01,S1 | f=A4095,01,B1 |"
            "f=A4095,B1,01 | f=A4095,B1,S1 | f=A4095,B2",
        "posix":
            "f=A4095 | f=A4095,01 | f=A4095,S1 | f=A4095,B1 | f=A4095,02 | f=A4095,01,S1 |"
            "f=A4095,01,B1 | f=A4095,S1,01 | f=A4095,S2 | f=A4095,S1,B1 | f=A4095,B1,01 |"
            "f=A4095,B1,S1 | f=A4095,B2",
    }),
    Litmus("append twice", bodies.f_a1, bodies.append_twice, {
        "scc ext4-journal xfs btrfs": "f=A1 | f=A1,B1 | f=A1,B1,C1",
        "ext4-ordered ext4-writeback":
            "f=A1 | f=A1,01 | f=A1,B1 | f=A1,02 | f=A1,B1,01 | f=A1,B1,C1",
        "posix":
            "f=A1 | f=A1,01 | f=A1,S1 | f=A1,B1 | f=A1,02 | f=A1,01,S1 | f=A1,S1,01 |"
            "f=A1,S2 | f=A1,B1,01 | f=A1,B1,S1 | f=A1,B1,C1",
    }),
    Litmus("replace by rename", bodies.f_a2, bodies.replace, {
        "scc ext4-journal btrfs": "f=A2 t=- | f=A2 t=empty | f=A2 t=B2 | f=B2 t=-",
        "ext4-ordered xfs":
            "f=A2 t=- | f=A2 t=empty | f=A2 t=B2 | f=empty t=- | f=B2 t=-",
        "ext4-writeback":
            "f=A2 t=- | f=A2 t=empty | f=A2 t=02 | f=A2 t=S2 | f=A2 t=B2 |"
            "f=empty t=- | f=02 t=- | f=S2 t=- | f=B2 t=-",
        "posix":
            "f=A2 t=- | f=A2 t=empty | f=A2 t=02 | f=A2 t=S2 | f=A2 t=B1,01 | f=A2 t=B2 |"
            "f=empty t=- | f=02 t=- | f=S2 t=- | f=B1,01 t=- | f=B2 t=-",
    }),
    Litmus("replace by rename, fsync first", bodies.f_a2, bodies.replace_fsync, {
        _NOT_POSIX: "f=A2 t=B2 | f=B2 t=-",
        "posix": "f=A2 t=- | f=A2 t=B2 | f=B2 t=-",
    }),
    Litmus("replace by rename, fsync file and directory", bodies.f_a2, bodies.replace_fsync_both, {
        "all": "f=B2 t=-",
    }),
    Litmus("create by rename", bodies.nothing, bodies.replace, {
        _SEQUENTIAL: "f=- t=- | f=- t=empty | f=- t=B2 | f=B2 t=-",
        "ext4-ordered xfs btrfs":
            "f=- t=- | f=- t=empty | f=- t=B2 | f=empty t=- | f=B2 t=-",
        "ext4-writeback":
            "f=- t=- | f=- t=empty | f=- t=02 | f=- t=S2 | f=- t=B2 |"
            "f=empty t=- | f=02 t=- | f=S2 t=- | f=B2 t=-",
        "posix":
            "f=- t=- | f=- t=empty | f=- t=02 | f=- t=S2 | f=- t=B1,01 | f=- t=B2 |"
            "f=empty t=- | f=02 t=- | f=S2 t=- | f=B1,01 t=- | f=B2 t=-",
    }),
    Litmus("create by rename, fsync first", bodies.nothing, bodies.replace_fsync, {
        _NOT_POSIX: "f=- t=B2 | f=B2 t=-",
        "posix": "f=- t=- | f=- t=B2 | f=B2 t=-",
    }),
    Litmus("create two in one directory", bodies.nothing, bodies.create_two, {
        _NOT_POSIX: "f=- g=- | f=empty g=- | f=empty g=empty",
        "posix": "f=- g=- | f=empty g=- | f=- g=empty | f=empty g=empty",
    }),
    Litmus("create in two directories", bodies.d_e, bodies.create_in_two_directories, {
        _METADATA: "d/f=- e/g=- | d/f=empty e/g=- | d/f=empty e/g=empty",
        "btrfs posix":
            "d/f=- e/g=- | d/f=empty e/g=- | d/f=- e/g=empty | d/f=empty e/g=empty",
    }),
    Litmus(
        "create in two directories, fsync the second", bodies.d_e,
        bodies.create_in_two_directories_fsync_second, {
            _METADATA: "d/f=empty e/g=empty",
            "btrfs": "d/f=- e/g=empty | d/f=empty e/g=empty",
            "posix":
                "d/f=- e/g=- | d/f=empty e/g=- | d/f=- e/g=empty | d/f=empty e/g=empty",
        },
    ),
    Litmus("unlink, create another", bodies.f_a1, bodies.unlink_create, {
        _NOT_POSIX: "f=A1 g=- | f=- g=- | f=- g=empty",
        "posix": "f=A1 g=- | f=- g=- | f=- g=empty | f=A1 g=empty",
    }),
    Litmus("unlink, fsync directory", bodies.f_a1, bodies.unlink_fsync_directory, {"all": "f=-"}),
    Litmus("rename, append to another, fsync it", bodies.f_o, bodies.rename_append_other_fsync, {
        _METADATA: "f=- g=A1 o=A1,B1",
        "btrfs posix": "f=A1 g=- o=A1,B1 | f=- g=A1 o=A1,B1",
    }),
    Litmus("truncate, create another", bodies.f_a2, bodies.truncate_create, {
        _METADATA: "f=A2 g=- | f=A1 g=- | f=A1 g=empty",
        "btrfs posix": "f=A2 g=- | f=A1 g=- | f=A2 g=empty | f=A1 g=empty",
    }),
    Litmus("truncate and write anew", bodies.f_a2, bodies.rewrite, {
        "scc ext4-journal ext4-ordered xfs btrfs": "f=A2 | f=empty | f=B1",
        "ext4-writeback": "f=A2 | f=empty | f=01 | f=S1 | f=B1",
        "posix": "f=A2 | f=empty | f=01 | f=S1 | f=B1 | f=B1,A1",
    }),
    Litmus("new directory, fsync of the file in it", bodies.nothing, bodies.new_directory, {
        _NOT_POSIX: "d/f=empty",
        "posix": "d/f=- | d/f=empty",
    }),
    Litmus("new directory, fsync it and its parent", bodies.nothing, bodies.new_directory_synced, {
        "all": "d/f=empty",
    }),
    Litmus("hard link, unlink the first name", bodies.f_a1, bodies.hard_link, {
        _NOT_POSIX: "f=A1 g=- | f=A1 g=A1 | f=- g=A1",
        "posix": "f=A1 g=- | f=A1 g=A1 | f=- g=A1 | f=- g=-",
    }),
    Litmus("append, then create another", bodies.f_a4096, bodies.append_then_create, {
        _SEQUENTIAL: "f=A4096 g=- | f=A4096,B1 g=- | f=A4096,B1 g=empty",
        "ext4-ordered xfs btrfs":
            "f=A4096 g=- | f=A4096,B1 g=- | f=A4096 g=empty | f=A4096,B1 g=empty",
        "ext4-writeback posix":
            "f=A4096 g=- | f=A4096,01 g=- | f=A4096,S1 g=- | f=A4096,B1 g=- |"
            "f=A4096 g=empty | f=A4096,01 g=empty | f=A4096,S1 g=empty | f=A4096,B1 g=empty",
    }),
    Litmus("move a file there and back, fsync", bodies.f_and_d_f, bodies.there_and_back, {
        "all": "d/f=- f=A1",
    }),
    Litmus("move a file into a new directory", bodies.f_a1, bodies.move_into_new_directory, {
        "all": "d/f=- f=A1 | d/f=A1 f=-",
    }),
)  # fmt: skip
