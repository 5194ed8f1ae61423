"""Correct programs are safe under every model; without one barrier they are not.

The table lists the models under which each barrier is needed. It follows from the definitions
of the models; where a barrier is needed under few models, or none, a comment gives the reason.
"""

from __future__ import annotations

import pytest

from powercut.explorer.explore import explore
from powercut.explorer.limits import Limits
from powercut.explorer.verdicts import Exploration
from sim.disk.crash.persistence import MODELS
from tests.controls.publish_programs import PROGRAMS, START

ALL = frozenset(MODELS)
NONE: frozenset[str] = frozenset()
POSIX_ONLY = frozenset({"posix"})
UNORDERED = ALL - {"scc", "ext4-journal"}
"""A file's data is not ordered with later operations. The other two models order everything."""
UNCHANGED = ALL - {"scc"}
"""A barrier on a directory without changes covers nothing."""
OWN_DIRECTORY = frozenset({"btrfs", "posix"})
"""fsync of one file or directory does not make other directories durable."""

NEEDED: dict[str, dict[str, frozenset[str]]] = {
    "replace": {"fsync /t": UNORDERED, "fsync /": ALL},
    "create": {"fsync /t": UNORDERED, "fsync /": ALL},
    # Under btrfs and posix a rename to another directory is a link and an unlink. The unlink
    # needs the link, so under btrfs a barrier on the source covers both; under the others a
    # rename is one micro-operation, which belongs to both directories.
    "publish into another directory": {
        "fsync /d/t": UNORDERED, "fsync /e": POSIX_ONLY, "fsync /d": NONE,
    },
    "move between directories": {"fsync /e": POSIX_ONLY, "fsync /d": OWN_DIRECTORY},
    # Without a barrier before them, btrfs keeps the order of the two renames.
    "move into a moved directory": {
        "fsync /": POSIX_ONLY, "fsync /h": POSIX_ONLY, "fsync / again": OWN_DIRECTORY,
    },
    "publish by link": {"fsync /t": UNORDERED, "fsync /": ALL},
    "publish unnamed": {"fsync the unnamed file": UNORDERED, "fsync /d": ALL},
    "delete": {"fsync /": ALL},
    "replace under a lock": {"fsync /t": UNORDERED, "fsync /": ALL},
    "scratch file": {"fsync /": ALL},
    # Except under posix, fsync of a file or directory makes the names of its path durable.
    "directories from the top": {
        "fsync /": POSIX_ONLY, "fsync /a": POSIX_ONLY, "fsync /a/b/t": UNORDERED, "fsync /a/b": ALL,
    },
    "directories from the bottom": {
        "fsync /a/b/t": UNORDERED, "fsync /a/b": UNCHANGED, "fsync /a": POSIX_ONLY,
        "fsync /": POSIX_ONLY,
    },
    # fsync of a file makes its name durable; under posix only a barrier on the directory does.
    "publish directory": {
        "fsync /t/f": UNORDERED, "fsync /t/g": UNORDERED, "fsync /t": POSIX_ONLY, "fsync /": ALL,
    },
    "data before pointer": {
        "fsync /v2": UNORDERED, "fsync /": POSIX_ONLY, "fsync /t": UNORDERED,
        "fsync / again": ALL,
    },
    "rewrite": {"fsync /f": ALL},
    "several descriptors": {"fsync /f": ALL},
    # fsync of the undo file makes its name durable. Without the last barrier an acknowledged
    # change is rolled back, as by SQLite with synchronous=FULL.
    "undo": {
        "fsync /undo": UNORDERED, "fsync /": POSIX_ONLY, "fsync /f": UNORDERED,
        "fsync /d/f": UNORDERED, "fsync / again": ALL,
    },
    "log": {"fsync /": POSIX_ONLY, "fsync after 1": ALL, "fsync after 2": ALL},
    "log with synchronous writes": {"O_DSYNC": ALL, "fsync /": POSIX_ONLY},
    # The first fdatasync makes the size durable too, without which the record cannot be read.
    "preallocated log": {
        "fsync the space": NONE, "fsync /": POSIX_ONLY, "fdatasync after 1": ALL,
        "fdatasync after 2": ALL,
    },
}  # fmt: skip


def _explored(name: str, model: str, without: str = "") -> Exploration:
    program = PROGRAMS[name]
    limits = Limits(states_per_point=100_000, nested=program.nested)
    result = explore(program.without(without), program.check, model, limits, START)
    assert result.exhaustive
    return result


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_correct_program_is_safe(name: str, model: str) -> None:
    result = _explored(name, model)
    assert result.safe, result.failures[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_barrier_is_needed_under_the_models_of_the_table(name: str) -> None:
    needed = {
        barrier: frozenset(model for model in MODELS if not _explored(name, model, barrier).safe)
        for barrier in PROGRAMS[name].barriers()
    }
    assert needed == NEEDED[name]
