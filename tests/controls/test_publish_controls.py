"""Correct programs stay silent under every model; without one barrier they are caught.

The table says on which models each barrier is missed. It follows from disk.md, section 4;
where a barrier is missed on few models, or on none, the reason stands beside it.
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
"""Data of a file has no order with later operations. The other two keep everything in order."""
NO_WAIT_OVER = UNORDERED - {"btrfs"}
"""The same, where the rename goes over a name: btrfs waits for the data then."""
OWN_DIRECTORY = frozenset({"btrfs", "posix"})
"""fsync of one file or directory says nothing about other directories."""

MISSED: dict[str, dict[str, frozenset[str]]] = {
    "replace": {"fsync /t": NO_WAIT_OVER, "fsync /": ALL},
    "create": {"fsync /t": UNORDERED, "fsync /": ALL},
    # A rename is one micro-operation, durable with its new name: a barrier on the directory
    # that it leaves adds nothing. On the others one barrier covers the metadata of all.
    "publish into another directory": {
        "fsync /d/t": UNORDERED, "fsync /e": OWN_DIRECTORY, "fsync /d": NONE,
    },
    "move between directories": {"fsync /e": OWN_DIRECTORY, "fsync /d": NONE},
    "move into a moved directory": {"fsync /": POSIX_ONLY, "fsync /h": ALL},
    "publish by link": {"fsync /t": UNORDERED, "fsync /": ALL},
    "publish unnamed": {"fsync the unnamed file": UNORDERED, "fsync /d": ALL},
    "delete": {"fsync /": ALL},
    "replace under a lock": {"fsync /t": NO_WAIT_OVER, "fsync /": ALL},
    "scratch file": {"fsync /": ALL},
    # Everywhere but on posix, fsync of a file or a directory brings the way that leads to it.
    "directories from the top": {
        "fsync /": POSIX_ONLY, "fsync /a": POSIX_ONLY, "fsync /a/b/t": UNORDERED, "fsync /a/b": ALL,
    },
    "directories from the bottom": {
        "fsync /a/b/t": UNORDERED, "fsync /a/b": OWN_DIRECTORY, "fsync /a": POSIX_ONLY,
        "fsync /": POSIX_ONLY,
    },
    # Both files were synced, and with them their names; on posix only the directory's barrier
    # does that.
    "publish directory": {
        "fsync /t/f": UNORDERED, "fsync /t/g": UNORDERED, "fsync /t": POSIX_ONLY, "fsync /": ALL,
    },
    "data before pointer": {
        "fsync /v2": UNORDERED, "fsync /": POSIX_ONLY, "fsync /t": NO_WAIT_OVER,
        "fsync / again": ALL,
    },
    "rewrite": {"fsync /f": ALL},
    "several descriptors": {"fsync /f": ALL},
    # The name of the undo file comes with its own fsync. Losing the last barrier rolls an
    # acknowledged change back: what SQLite does with synchronous=FULL.
    "undo": {
        "fsync /undo": UNORDERED, "fsync /": POSIX_ONLY, "fsync /f": UNORDERED,
        "fsync /d/f": UNORDERED, "fsync / again": ALL,
    },
    "log": {"fsync /": POSIX_ONLY, "fsync after 1": ALL, "fsync after 2": ALL},
    "log with synchronous writes": {"O_DSYNC": ALL, "fsync /": POSIX_ONLY},
    # The first fdatasync makes the size durable too, since the record cannot be read without.
    "log with room": {
        "fsync the room": NONE, "fsync /": POSIX_ONLY, "fdatasync after 1": ALL,
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
def test_each_barrier_is_missed_where_the_table_says(name: str) -> None:
    missed = {
        barrier: frozenset(model for model in MODELS if not _explored(name, model, barrier).safe)
        for barrier in PROGRAMS[name].barriers()
    }
    assert missed == MISSED[name]
