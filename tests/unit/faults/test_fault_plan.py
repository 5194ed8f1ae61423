"""Fault plans print on one line and parse back; a malformed one is refused by name."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults.call_kind import CallKind
from faults.fault_plan import (
    ALWAYS,
    AboveDescriptors,
    AfterGrowth,
    Condition,
    Effect,
    FailSync,
    FaultPlan,
    FaultRule,
    FromOperation,
    Misdirect,
    NthCall,
    Refuse,
    Rot,
    ShortTransfer,
    StepBack,
)
from sim.disk.cache.operation import SyncFailure
from sim.errors import HarnessError

MANY = "1" * 5000
"""More digits than Python turns into a number."""

ALL = [*CallKind]
MUTATING = [calls for calls in ALL if calls not in {"read", "open", "close", "clock"}]


def rule(
    calls: str, glob: str, effect: Effect, condition: Condition = ALWAYS, on: bool = True
) -> FaultRule:
    return FaultRule(CallKind(calls), glob, effect, condition, on)


def _rules(
    calls: list[str],
    effects: st.SearchStrategy[Effect],
    conditions: st.SearchStrategy[Condition],
    globs: st.SearchStrategy[str],
) -> st.SearchStrategy[FaultRule]:
    return st.builds(rule, st.sampled_from(calls), globs, effects, conditions, st.booleans())


_globs = st.one_of(
    st.sampled_from(["*", "*/events.jsonl", "/a/?.tmp", "[ab]*"]),
    st.text(min_size=1, max_size=8).filter(lambda text: text.split() == [text] and ";" not in text),
)
_numbers = st.integers(1, 10_000)
_nth = st.builds(NthCall, _numbers, st.booleans())
_from = st.builds(FromOperation, _numbers)
_erofs, _emfile = st.just(Refuse(errno.EROFS)), st.just(Refuse(errno.EMFILE))
_full_or_interrupted = st.sampled_from([errno.ENOSPC, errno.EINTR]).map(Refuse)
_eio, _enospc = st.just(Refuse(errno.EIO)), st.just(Refuse(errno.ENOSPC))
_fail_sync = st.builds(FailSync, st.sampled_from(SyncFailure))
_back = st.builds(StepBack, st.integers(0, 1 << 60))
_growth = st.builds(AfterGrowth, st.integers(0, 1 << 32))
_any_rule = st.one_of(
    _rules([*MUTATING], _erofs, st.one_of(_nth, _from), _globs),
    _rules(["write", "create"], _full_or_interrupted, st.one_of(_nth, _from), _globs),
    _rules(["read", "write"], _eio, _nth, _globs),
    _rules(["fsync"], _fail_sync, st.one_of(_nth, _from), _globs),
    _rules(["write", "fsync", "close"], _enospc, _growth, _globs),
    _rules(["read", "write"], st.builds(ShortTransfer, _numbers), _nth, _globs),
    _rules(["read"], st.builds(Rot, st.integers(0, 99)), st.just(ALWAYS), _globs),
    _rules(["write"], st.builds(Misdirect, _numbers), _nth, _globs),
    _rules(["open"], _emfile, st.builds(AboveDescriptors, _numbers), _globs),
    _rules(["clock"], _back, st.builds(NthCall, _numbers), st.just("*")),
)
_plans = st.lists(_any_rule, max_size=4).map(lambda rules: FaultPlan(tuple(rules)))


@given(_plans)
def test_every_plan_parses_back_from_its_one_line(plan: FaultPlan) -> None:
    text = str(plan)
    assert len(text.splitlines()) <= 1
    assert FaultPlan.parse(text) == plan


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "fsync */events.jsonl #3 EIO:ext4",
            rule("fsync", "*/events.jsonl", FailSync(SyncFailure.EXT4), NthCall(3)),
        ),
        (
            "write * after 40KiB ENOSPC",
            rule("write", "*", Refuse(28), AfterGrowth(40960)),
        ),
        ("write * #2 short:10B", rule("write", "*", ShortTransfer(10), NthCall(2))),
        ("write * #1 EINTR", rule("write", "*", Refuse(4), NthCall(1))),
        ("read * EIO", rule("read", "*", Refuse(5), NthCall(1, onwards=True))),
        ("read * #2+ EIO", rule("read", "*", Refuse(5), NthCall(2, onwards=True))),
        ("change * from 12 EROFS", rule("change", "*", Refuse(30), FromOperation(12))),
        ("read *.jsonl rot:0", rule("read", "*.jsonl", Rot(0))),
        ("write * #3 misdirected:4", rule("write", "*", Misdirect(4), NthCall(3))),
        ("open * above 16 EMFILE", rule("open", "*", Refuse(24), AboveDescriptors(16))),
        (
            "clock * #5 back:90s",
            rule("clock", "*", StepBack(90_000_000_000), NthCall(5)),
        ),
        ("off read * EIO", rule("read", "*", Refuse(5), on=False)),
    ],
)
def test_a_rule_parses_its_line_and_prints_it(text: str, expected: FaultRule) -> None:
    assert FaultRule.parse(text) == expected
    assert str(expected) == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("write *", "fault rule 'write *' needs calls, a glob and an effect"),
        ("write * EIO;", "fault rule '' needs calls, a glob and an effect"),
        ("scribble * EIO", "calls 'scribble' in a fault rule is none of create, write"),
        ("write * EFOO", "'EFOO' in a fault rule is no effect; write EIO, ENOSPC"),
        ("write * ENOSPC:ext4", "'ENOSPC:ext4' in a fault rule is no effect"),
        ("fsync * EIO:zfs", "fsync failure policy 'zfs' in a fault rule is none of ext4, xfs"),
        ("fsync * EIO", "fault rule 'fsync * EIO': a failed fsync needs a policy"),
        ("change * EIO", "fault rule 'change * EIO': a failed fsync needs a policy"),
        ("write * EIO:ext4", "fault rule 'write * EIO:ext4': effect 'EIO:ext4' fits fsync"),
        ("write * soon EIO", "'soon' in a fault rule is no condition; write '#3'"),
        ("write * #0 EIO", "count '0' in a fault rule is not a whole number from 1"),
        (f"write * #{MANY} EIO", f"count '{MANY}' in a fault rule is not a whole number from 1"),
        (f"write * after {MANY}B ENOSPC", f"size '{MANY}B' in a fault rule is not a whole number"),
        ("write * #x EIO", "count 'x' in a fault rule is not a whole number from 1"),
        ("write * after 40 ENOSPC", "size '40' in a fault rule is not a whole number of MiB, KiB"),
        ("write * after 4XiB ENOSPC", "size '4XiB' in a fault rule is not a whole number of"),
        (
            "write * after 4KiB EIO",
            "fault rule 'write * after 4KiB EIO': condition 'after 4KiB' fits",
        ),
        (
            "read * after 4KiB ENOSPC",
            "fault rule 'read * after 4KiB ENOSPC': condition 'after 4KiB'",
        ),
        (
            "read * from 3 EIO",
            "fault rule 'read * from 3 EIO': condition 'from 3' fits create, write",
        ),
        ("write * from 0 EIO", "operation '0' in a fault rule is not a whole number from 1"),
        (
            "write * above 3 EMFILE",
            "fault rule 'write * above 3 EMFILE': condition 'above 3' fits op",
        ),
        ("open * above -1 EMFILE", "number of descriptors '-1' in a fault rule is not a whole"),
        ("write * short:0B", "a short call transfers a byte, got most_bytes=0"),
        ("fsync * short:3B", "fault rule 'fsync * short:3B': effect 'short:3B' fits write, read"),
        (
            "read * #2 rot:1",
            "fault rule 'read * #2 rot:1': rot is permanent, so it has no condition",
        ),
        ("read * rot:x", "sector 'x' in a fault rule is not a whole number from 0"),
        ("clock * back:90s", "fault rule 'clock * back:90s': the clock steps back once"),
        ("clock * #1 back:90", "duration '90' in a fault rule is not a whole number of s, ms"),
        ("clock /x #1 back:90s", "fault rule 'clock /x #1 back:90s': the clock has no path"),
        ("clock * #1 EIO", "fault rule 'clock * #1 EIO': effect 'EIO' fits create, write"),
    ],
)
def test_a_malformed_plan_is_one_sentence_naming_the_piece(text: str, complaint: str) -> None:
    with pytest.raises(HarnessError) as raised:
        FaultPlan.parse(text)
    assert str(raised.value).startswith(complaint)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("glob", ["", "a b", "a;b", " a"])
def test_a_glob_that_would_not_parse_back_is_refused(glob: str) -> None:
    with pytest.raises(HarnessError, match="is empty or has a space or a ';' in it"):
        rule("read", glob, Refuse(errno.EIO))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "write * EMFILE",
            (
                "effect 'EMFILE' fits open; write takes EIO, ENOSPC, EINTR, EROFS, short:10B, "
                "misdirected:4"
            ),
        ),
        (
            "fsync * EMFILE",
            (
                "effect 'EMFILE' fits open; fsync takes ENOSPC, EINTR, EROFS, EIO:ext4, EIO:xfs, "
                "EIO:ext4-journal, EIO:btrfs, EIO:lying"
            ),
        ),
        (
            "rename * EINTR",
            (
                "effect 'EINTR' fits create, write, resize, fsync, read, open, close; rename takes "
                "EIO, ENOSPC, EROFS"
            ),
        ),
        (
            "read * EROFS",
            (
                "effect 'EROFS' fits create, write, resize, link, unlink, rename, attributes, "
                "fsync, change; read takes EIO, EINTR, short:10B, rot:4"
            ),
        ),
        ("clock * #1 short:1B", "effect 'short:1B' fits write, read; clock takes back:90s"),
    ],
)
def test_fault_that_no_such_call_can_have_is_refused_with_those_that_it_can(
    text: str, complaint: str
) -> None:
    with pytest.raises(HarnessError) as raised:
        FaultPlan.parse(text)
    assert str(raised.value) == f"fault rule '{text}': {complaint}"


def test_every_call_can_fail_in_some_way() -> None:
    for calls in ALL:
        effect = "back:1s" if calls is CallKind.CLOCK else "EMFILE" if calls == "open" else "EROFS"
        if calls in {CallKind.READ, CallKind.CLOSE}:
            effect = "EINTR"
        FaultRule.parse(f"{calls} * #1 {effect}")


def test_a_call_counts_from_one() -> None:
    with pytest.raises(HarnessError, match="first=0"):
        NthCall(0)


def test_an_errno_that_no_rule_can_name_is_refused() -> None:
    with pytest.raises(HarnessError, match=r"errno=2 is none of EIO, ENOSPC"):
        Refuse(errno.ENOENT)


def test_an_empty_text_is_a_plan_without_a_fault() -> None:
    assert FaultPlan.parse(" ") == FaultPlan()
    assert str(FaultPlan()) == ""


@pytest.mark.parametrize(
    ("text", "calls", "path", "expected"),
    [
        ("fsync */events.jsonl EIO:ext4", CallKind.FSYNC, "/a/b/events.jsonl", True),
        ("fsync */events.jsonl EIO:ext4", CallKind.FSYNC, "/a/b/events.pending", False),
        ("fsync */events.jsonl EIO:ext4", CallKind.WRITE, "/a/b/events.jsonl", False),
        ("change * EROFS", CallKind.FSYNC, "/a", True),
        ("change * EROFS", CallKind.READ, "/a", False),
    ],
)
def test_a_rule_matches_by_kind_of_call_and_by_path(
    text: str, calls: CallKind, path: str, expected: bool
) -> None:
    assert FaultRule.parse(text).matches(calls, path) is expected
