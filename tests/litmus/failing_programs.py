"""Random programs in which syncs fail, and the program goes on with the same blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from sim.disk.cache.operation import SyncFailure
from tests.litmus.programs import CALLS, Program

Calls = st.SearchStrategy[tuple[Any, ...]]

_FILES = st.sampled_from(("f", "f", "f", "g"))
_TEXTS = st.sampled_from(("A1", "B2", "C3"))
_OFFSETS = st.sampled_from((0, 1, 4, 511, 4095, 4096, 4100, 8191))
_SIZES = st.sampled_from((0, 1, 2, 4, 513, 4096, 4097, 8193))
_ANY = st.just(SyncFailure.EXT4)
_POLICIES = st.sampled_from((*SyncFailure, SyncFailure.EXT4))

_change: Calls = st.tuples(st.just("write"), _FILES, _TEXTS, _OFFSETS) | st.tuples(
    st.just("append"), _FILES, _TEXTS
)
_size: Calls = st.tuples(st.just("truncate"), _FILES, _SIZES)
_barrier: Calls = st.tuples(st.sampled_from(("fsync", "fdatasync")), _FILES) | st.tuples(
    st.just("write_synced"), _FILES, _TEXTS, _OFFSETS
)
_failure: Calls = st.tuples(st.just("failed fsync"), _FILES, _ANY) | st.tuples(
    st.just("failed write_synced"), _FILES, _TEXTS, _OFFSETS, _ANY
)
_drop: Calls = st.tuples(
    st.just("drop_pages"), _FILES, st.sampled_from((0, 4096)), st.sampled_from((0, 4096))
)
# A union of unions would be one of all their members, most of which are among CALLS.
_other: Calls = st.tuples(CALLS).map(lambda call: call[0])
_step: Calls = _change | _size | _barrier | _failure | _drop | _other


def _joined(groups: Sequence[tuple[tuple[Any, ...], ...]]) -> Program:
    return [call for group in groups for call in group]


_lost = st.tuples(_change, _failure)
_GROUPS = (
    st.tuples(_step)
    | _lost
    | st.tuples(_change, _step, _failure)
    | st.tuples(_size, _change | _size, _failure)
)

_FAILING_PROGRAMS: st.SearchStrategy[Program] = st.builds(
    lambda before, lost, after: _joined([*before, lost, *after]),
    st.lists(_GROUPS, max_size=1),
    _lost,
    st.lists(_GROUPS, max_size=4),
)
_NEXT_PROGRAMS: st.SearchStrategy[Program] = st.lists(_GROUPS, max_size=3).map(_joined)
"""Programs of the lifetime after a kill."""


def _with_policy(boots: tuple[Program, ...], policy: SyncFailure) -> tuple[Program, ...]:
    """Return programs on one file system, on which all syncs fail in the same way."""
    return tuple(
        [(*call[:-1], policy) if isinstance(call[-1], SyncFailure) else call for call in program]
        for program in boots
    )


FAILING_BOOTS: st.SearchStrategy[tuple[Program, ...]] = st.builds(
    _with_policy,
    st.tuples(_FAILING_PROGRAMS) | st.tuples(_FAILING_PROGRAMS, _NEXT_PROGRAMS),
    _POLICIES,
)
"""Programs of one lifetime, or of two with a kill between them."""
