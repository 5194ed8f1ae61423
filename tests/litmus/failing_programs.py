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
_POLICIES = st.sampled_from((*SyncFailure, SyncFailure.EXT4))

_change: Calls = st.tuples(st.just("write"), _FILES, _TEXTS, _OFFSETS) | st.tuples(
    st.just("append"), _FILES, _TEXTS
)
_size: Calls = st.tuples(st.just("truncate"), _FILES, _SIZES)
_barrier: Calls = st.tuples(st.sampled_from(("fsync", "fdatasync")), _FILES) | st.tuples(
    st.just("write_synced"), _FILES, _TEXTS, _OFFSETS
)
_failure: Calls = st.tuples(st.just("failed fsync"), _FILES, _POLICIES) | st.tuples(
    st.just("failed write_synced"), _FILES, _TEXTS, _OFFSETS, _POLICIES
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
_GROUPS = st.tuples(_step) | _lost | st.tuples(_change, _step, _failure)

FAILING_PROGRAMS: st.SearchStrategy[Program] = st.builds(
    lambda before, lost, after: _joined([*before, lost, *after]),
    st.lists(_GROUPS, max_size=1),
    _lost,
    st.lists(_GROUPS, max_size=4),
)
NEXT_PROGRAMS: st.SearchStrategy[Program] = st.lists(_GROUPS, max_size=3).map(_joined)
"""Programs of the lifetime after a kill."""
