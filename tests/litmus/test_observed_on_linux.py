"""A model allows every outcome that its file system showed on a real kernel, Linux 6.18.

Every write and flush that reached a block device was recorded. Crash images built from the
recording were mounted, and their outcomes are the sets below. A model may allow more where a
source gives a reason, and never less. ``data=ordered`` and ``data=writeback`` of ext4 gave
the same sets.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from sim.disk.crash.persistence import (
    BTRFS,
    EXT4,
    EXT4_JOURNAL,
    EXT4_ORDERED,
    EXT4_WRITEBACK,
    POSIX,
    XFS,
    PersistenceModel,
    StaleBytes,
)
from tests.litmus.body import Body, Calls, outcomes

Sets = tuple[str, str, str, str]


def _nothing(_: Calls) -> None:
    pass


def _f_a5000(disk: Calls) -> None:
    disk.write("f", "A5000")


def _create(disk: Calls) -> None:
    disk.write("f", "B5000")


def _create_fsync(disk: Calls) -> None:
    disk.write("f", "B5000")
    disk.fsync("f")


def _replace(disk: Calls) -> None:
    disk.write("f.t", "B5000")
    disk.rename("f.t", "f")


def _replace_fsync(disk: Calls) -> None:
    disk.write("f.t", "B5000")
    disk.fsync("f.t")
    disk.rename("f.t", "f")


def _f_a4096(disk: Calls) -> None:
    disk.write("f", "A4096")


def _append_block(disk: Calls) -> None:
    disk.append("f", "B4096")


def _f_a2509(disk: Calls) -> None:
    disk.write("f", "A2509")


def _prefix_append(disk: Calls) -> None:
    disk.append("f", "C13")
    disk.append("f", "B2500")


def _create_two(disk: Calls) -> None:
    disk.create("f", "g")


def _d_e(disk: Calls) -> None:
    disk.mkdir("d", "e")


def _create_in_two_directories(disk: Calls) -> None:
    disk.create("d/f", "e/g")


def _f_a1(disk: Calls) -> None:
    disk.write("f", "A1")


def _unlink_create(disk: Calls) -> None:
    disk.unlink("f")
    disk.create("g")


def _f_o(disk: Calls) -> None:
    disk.write("f", "A1")
    disk.write("o", "A1")


def _rename_append_other_fsync(disk: Calls) -> None:
    disk.rename("f", "g")
    disk.append("o", "B1")
    disk.fsync("o")


_CREATED = "f=- | f=empty | f=B5000"
_CREATED_WHOLE = "f=- | f=B5000"
_REPLACED = "f=A5000 f.t=- | f=B5000 f.t=-"
_RENAMED = "f=- f.t=- | f=empty f.t=- | f=B5000 f.t=-"
_PREFIX = "f=A2509 | f=A2509,C13,B2500"
_BOTH = "f=A1 g=- o=A1 | f=- g=A1 o=A1,B1"

# name, setup, body, and the outcomes seen on ext4, ext4 with data=journal, xfs, btrfs
OBSERVED: tuple[tuple[str, Body, Body, Sets], ...] = (
    ("create", _nothing, _create, (_CREATED, _CREATED_WHOLE, _CREATED, _CREATED_WHOLE)),
    ("create, fsync", _nothing, _create_fsync, (_CREATED_WHOLE,) * 4),
    (
        "replace by rename", _f_a5000, _replace,
        (_REPLACED, _REPLACED, f"{_REPLACED} | f=empty f.t=-", _REPLACED),
    ),
    (
        "create by rename", _nothing, _replace,
        (_RENAMED, "f=- f.t=- | f=B5000 f.t=-", _RENAMED, "f=- f.t=- | f=B5000 f.t=-"),
    ),
    (
        "replace by rename, fsync first", _f_a5000, _replace_fsync,
        ("f=A5000 f.t=- | f=A5000 f.t=B5000 | f=B5000 f.t=-",) * 4,
    ),
    (
        "create by rename, fsync first", _nothing, _replace_fsync,
        ("f=- f.t=- | f=- f.t=B5000 | f=B5000 f.t=-",) * 4,
    ),
    ("append a block", _f_a4096, _append_block, ("f=A4096 | f=A4096,B4096",) * 4),
    (
        "prefix-append", _f_a2509, _prefix_append,
        (f"{_PREFIX} | f=A2509,013", _PREFIX, _PREFIX, _PREFIX),
    ),
    ("create two", _nothing, _create_two, ("f=- g=- | f=empty g=empty",) * 4),
    (
        "create in two directories", _d_e, _create_in_two_directories,
        ("d/f=- e/g=- | d/f=empty e/g=empty",) * 4,
    ),
    ("unlink, create", _f_a1, _unlink_create, ("f=A1 g=- | f=- g=empty",) * 4),
    (
        "rename, append to another, fsync it", _f_o, _rename_append_other_fsync,
        (_BOTH, _BOTH, _BOTH, f"{_BOTH} | f=A1 g=- o=A1,B1"),
    ),
)  # fmt: skip

# The sets that each model must allow; posix stands for every file system.
COLUMNS: tuple[tuple[PersistenceModel, tuple[int, ...]], ...] = (
    (EXT4, (0,)), (EXT4_ORDERED, (0,)), (EXT4_WRITEBACK, (0,)), (EXT4_JOURNAL, (1,)),
    (XFS, (2,)), (BTRFS, (3,)),
    (POSIX, (0, 1, 2, 3)),
)  # fmt: skip


def _without_tears(model: PersistenceModel) -> PersistenceModel:
    """Leave out torn and stale sectors: there are many, and they are in none of the sets."""
    return replace(model, torn_units=False, stale_bytes=StaleBytes.NOWHERE)


@pytest.mark.parametrize(("model", "columns"), COLUMNS, ids=[model.name for model, _ in COLUMNS])
@pytest.mark.parametrize(
    ("name", "setup", "body", "sets"), OBSERVED, ids=[row[0] for row in OBSERVED]
)
def test_model_allows_the_outcomes_observed_on_linux(
    name: str,
    setup: Body,
    body: Body,
    sets: Sets,
    model: PersistenceModel,
    columns: tuple[int, ...],
) -> None:
    observed = {outcome.strip() for column in columns for outcome in sets[column].split("|")}
    allowed = outcomes(_without_tears(model), setup, body, anywhere=True)
    assert observed <= allowed, f"{name}: {model.name} does not allow {sorted(observed - allowed)}"
