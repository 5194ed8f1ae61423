"""The models forbid enough: a list of outcomes that each must forbid, and a ratio.

A model that allowed everything would pass every test of soundness. ``linux-6.18.json`` has the
outcomes that the litmus bodies left on real file systems (``record_bodies.py``).
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from powercut.calibrate.judgement import MODEL_OF
from sim.disk.crash.persistence import MODELS
from tests.litmus.allowed import LITMUS
from tests.litmus.body import outcomes
from tests.litmus.litmus import Litmus
from tests.litmus.record_bodies import written

EVERY: Final = " ".join(MODELS)
REAL: Final = "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs btrfs"
JOURNALED: Final = "scc ext4-journal ext4 ext4-ordered ext4-writeback xfs"
CLEAN: Final = "scc ext4-journal ext4 ext4-ordered xfs btrfs"

# models, body, and an outcome that they forbid
FORBIDDEN: Final = (
    (EVERY, "create, fsync, fsync directory", "f=-"),
    (EVERY, "create, fsync, fsync directory", "f=empty"),
    (EVERY, "create, fsync, fsync directory", "f=02"),
    (REAL, "create, fsync", "f=-"),
    (REAL, "create, fdatasync", "f=-"),
    (EVERY, "create, fsync directory only", "f=-"),
    (CLEAN, "create", "f=S2"),
    ("scc ext4-journal xfs", "create", "f=02"),
    (REAL, "overwrite", "f=B1,A1"),
    (EVERY, "overwrite, fdatasync", "f=A2"),
    ("scc ext4-journal btrfs", "overwrite across sectors", "f=A512,B2"),
    ("scc", "overwrite across blocks", "f=A4096,B2"),
    ("scc ext4-journal xfs", "append a block", "f=A4096,01"),
    (CLEAN, "append a block", "f=A4096,S1"),
    ("scc ext4-journal xfs", "append twice", "f=A1,B1,01"),
    (EVERY, "replace by rename, fsync first", "f=empty t=-"),
    (EVERY, "replace by rename, fsync first", "f=- t=-"),
    (EVERY, "replace by rename, fsync first", "f=02 t=-"),
    ("scc ext4-journal ext4", "replace by rename", "f=empty t=-"),
    ("scc ext4-journal ext4", "replace, fsync directory (B1)", "f=empty t=-"),
    ("scc ext4-journal xfs", "replace by rename", "f=02 t=-"),
    (EVERY, "replace by rename", "f=- t=-"),
    (EVERY, "replace a name that its directory synced", "f=- t=-"),
    (JOURNALED, "replace a name that only its file synced (B9)", "f=- t=-"),
    (REAL, "replace one of two names", "f=- g=A1 t=B1"),
    (EVERY, "replace one of two names", "f=- g=- t=-"),
    (JOURNALED, "replace one of two names, fsync another", "f=- g=A1 o=empty t=B1"),
    (REAL, "create two in one directory", "f=- g=empty"),
    (REAL, "create in two directories", "d/f=- e/g=empty"),
    (REAL, "unlink, create another", "f=A1 g=empty"),
    (EVERY, "unlink, fsync directory", "f=A1"),
    (REAL, "hard link, unlink the first name", "f=- g=-"),
    (REAL, "sync another, sync all, link, unlink the first name", "f=- g=- o=A1,B1"),
    (JOURNALED, "sync another, link, unlink the first name", "f=- g=- o=A1,B1"),
    (REAL, "replace a file, then remove another", "f=A1 o=- t=B1"),
    (REAL, "sync, remove another, truncate", "d/f=B1 f=A1"),
    (JOURNALED, "sync, remove another, truncate, rename (B23)", "d/f=B1 f=- t=A1"),
    (JOURNALED, "link, sync, link another, unlink (B3)", "f=A1 g=- o=A1 p=-"),
    (JOURNALED, "rename, append to another, fsync it", "f=A1 g=- o=A1,B1"),
    (REAL, "rename, fsync", "f=A1 g=-"),
    (EVERY, "deliver, fsync the new directory (B2)", "new/m=- tmp/m=A1"),
    (EVERY, "deliver between directories", "new/m=- tmp/m=-"),
    (REAL, "deliver between directories", "new/m=A1 tmp/m=A1"),
    (REAL, "deliver, fsync the file (B2)", "new/m=A1 tmp/m=A1"),
    (JOURNALED, "rotate a log, replace a checkpoint (B3)", "cp=B2 log=A1 old=- t=-"),
    (JOURNALED, "rename, then replace by another file (B4)", "f=B1 g=A1 h=-"),
    (REAL, "unlink, create anew, fsync", "f=A1"),
    (JOURNALED, "replace, fsync, move on, fsync (B10)", "f=A1 h=B1 t=-"),
    (JOURNALED, "rename, rewrite, fsync directory (B5)", "f=- g=A1"),
    ("scc ext4-journal btrfs", "truncate inside a block (T1)", "f=A1,01"),
    ("scc ext4-journal ext4 ext4-ordered xfs", "cut off a tail, append (T5)", "f=A2,01"),
    ("scc ext4-journal", "cut off a block, overwrite (T2)", "f=B1,A4097"),
    ("scc ext4-journal", "overwrite, write behind a gap (P2)", "f=B1,04095"),
    ("scc ext4-journal xfs", "overwrite, write behind a gap (P2)", "f=A1,04095"),
    ("scc ext4-journal xfs", "write behind a gap and into it (P2)", "f=A1,08191"),
    (EVERY, "allocate, synchronous write", "f=B1"),
    (EVERY, "move a directory, fsync the new parent", "tmp=empty tmp/m=A1"),
)

OBSERVED: Final[dict[str, dict[str, list[str]]]] = json.loads(
    Path(__file__).with_name("linux-6.18.json").read_text(encoding="ascii")
)
MOST_FOR_ONE_OBSERVED: Final = 3.0
MOST_UNDER_POSIX: Final = 5.0


@cache
def _body(name: str) -> Litmus:
    return next(litmus for litmus in LITMUS if litmus.name == name)


@pytest.mark.parametrize(("models", "name", "outcome"), FORBIDDEN)
def test_an_outcome_is_forbidden(models: str, name: str, outcome: str) -> None:
    litmus = _body(name)
    for model in models.split():
        assert model in litmus.models
        assert outcome not in outcomes(MODELS[model], litmus.setup, litmus.body), model


def _counts(model: str, seen: dict[str, set[str]]) -> tuple[int, int]:
    """Return the numbers of allowed and of seen outcomes of the bodies."""
    bodies = [_body(name) for name in seen if model in _body(name).models]
    allowed = sum(len(litmus.allowed(model)) for litmus in bodies)
    return allowed, sum(len(seen[litmus.name]) for litmus in bodies)


@pytest.mark.parametrize("name", OBSERVED)
def test_every_body_that_calibration_can_run_was_recorded(name: str) -> None:
    assert list(OBSERVED[name]) == [litmus.name for litmus in LITMUS if written(litmus)]


@pytest.mark.parametrize("name", OBSERVED)
def test_a_model_allows_at_most_three_outcomes_for_each_observed_one(name: str) -> None:
    model = MODEL_OF[name].name
    seen = {body: set(found) for body, found in OBSERVED[name].items()}
    for body, found in seen.items():
        if model in _body(body).models:
            assert found <= _body(body).allowed(model), body
    allowed, counted = _counts(model, seen)
    assert allowed <= MOST_FOR_ONE_OBSERVED * counted


def test_posix_allows_at_most_five_outcomes_for_each_that_any_file_system_left() -> None:
    seen: dict[str, set[str]] = {}
    for found in OBSERVED.values():
        for body, lines in found.items():
            seen.setdefault(body, set()).update(lines)
    for name, every in seen.items():
        if "posix" in _body(name).models:
            assert every <= _body(name).allowed("posix"), name
    allowed, counted = _counts("posix", seen)
    assert allowed <= MOST_UNDER_POSIX * counted
