"""Fault plans print on one line, parse back, and say what is wrong with a bad one."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults.fault_effect import FailSync, Misdirect, Refuse, Rot, Short, StepBack
from faults.fault_moment import Above, After, From, Nth
from faults.fault_rule import Calls, FaultRule
from faults.plan import FaultPlan
from sim.disk.cache.operation import SyncFailure
from sim.errors import HarnessError

_MUTATING = [calls for calls in Calls if calls not in {"read", "open", "close", "clock"}]
_globs = st.one_of(
    st.sampled_from(["*", "*/events.jsonl", "/a/?.tmp", "[ab]*"]),
    st.text(min_size=1, max_size=8).filter(lambda text: text.split() == [text] and ";" not in text),
)
_numbers = st.integers(1, 10_000)
_nth = st.builds(Nth, _numbers, st.booleans())
_refuse = st.sampled_from([errno.ENOSPC, errno.EINTR, errno.EROFS, errno.EMFILE]).map(Refuse)
_eio = st.just(Refuse(errno.EIO))
_rules = st.one_of(
    st.builds(FaultRule, st.sampled_from(_MUTATING), _globs, _refuse, _nth, st.booleans()),
    st.builds(FaultRule, st.sampled_from(_MUTATING), _globs, _refuse, st.builds(From, _numbers)),
    st.builds(FaultRule, st.sampled_from([Calls.READ, Calls.WRITE]), _globs, _eio, _nth),
    st.builds(
        FaultRule, st.just(Calls.FSYNC), _globs, st.builds(FailSync, st.sampled_from(SyncFailure)),
        st.one_of(_nth, st.builds(From, _numbers)), st.booleans(),
    ),
    st.builds(
        FaultRule, st.sampled_from([Calls.WRITE, Calls.FSYNC, Calls.CLOSE]), _globs,
        st.just(Refuse(errno.ENOSPC)), st.builds(After, st.integers(0, 1 << 32)), st.booleans(),
    ),
    st.builds(
        FaultRule, st.sampled_from([Calls.READ, Calls.WRITE]), _globs,
        st.builds(Short, _numbers), _nth, st.booleans(),
    ),
    st.builds(FaultRule, st.just(Calls.READ), _globs, st.builds(Rot, st.integers(0, 99))),
    st.builds(FaultRule, st.just(Calls.WRITE), _globs, st.builds(Misdirect, _numbers), _nth),
    st.builds(FaultRule, st.just(Calls.OPEN), _globs, _refuse, st.builds(Above, _numbers)),
    st.builds(
        FaultRule, st.just(Calls.CLOCK), st.just("*"), st.builds(StepBack, st.integers(0, 1 << 60)),
        st.builds(Nth, _numbers),
    ),
)  # fmt: skip
_plans = st.lists(_rules, max_size=4).map(lambda rules: FaultPlan(tuple(rules)))


@given(_plans)
def test_every_plan_parses_back_from_its_one_line(plan: FaultPlan) -> None:
    text = str(plan)
    assert len(text.splitlines()) <= 1
    assert FaultPlan.parse(text) == plan


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (
            "fsync */events.jsonl #3 EIO:ext4",
            FaultRule(Calls.FSYNC, "*/events.jsonl", FailSync(SyncFailure.EXT4), Nth(3)),
        ),
        ("write * after 40KiB ENOSPC", FaultRule(Calls.WRITE, "*", Refuse(28), After(40960))),
        ("write * #2 short:10B", FaultRule(Calls.WRITE, "*", Short(10), Nth(2))),
        ("write * #1 EINTR", FaultRule(Calls.WRITE, "*", Refuse(4), Nth(1))),
        ("read * EIO", FaultRule(Calls.READ, "*", Refuse(5), Nth(1, onwards=True))),
        ("read * #2+ EIO", FaultRule(Calls.READ, "*", Refuse(5), Nth(2, onwards=True))),
        ("change * from 12 EROFS", FaultRule(Calls.CHANGE, "*", Refuse(30), From(12))),
        ("read *.jsonl rot:0", FaultRule(Calls.READ, "*.jsonl", Rot(0))),
        ("write * #3 misdirected:4", FaultRule(Calls.WRITE, "*", Misdirect(4), Nth(3))),
        ("open * above 16 EMFILE", FaultRule(Calls.OPEN, "*", Refuse(24), Above(16))),
        ("clock * #5 back:90s", FaultRule(Calls.CLOCK, "*", StepBack(90_000_000_000), Nth(5))),
        ("off read * EIO", FaultRule(Calls.READ, "*", Refuse(5), on=False)),
    ],
)
def test_a_rule_reads_as_a_person_would_say_it(text: str, rule: FaultRule) -> None:
    assert FaultRule.parse(text) == rule
    assert str(rule) == text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("write *", "fault rule 'write *' needs calls, a glob and an effect"),
        ("write * EIO;", "fault rule '' needs calls, a glob and an effect"),
        ("scribble * EIO", "calls 'scribble' in a fault rule are none of create, write"),
        ("write * EFOO", "'EFOO' in a fault rule is no effect; write EIO, ENOSPC"),
        ("write * ENOSPC:ext4", "'ENOSPC:ext4' in a fault rule is no effect"),
        ("fsync * EIO:zfs", "fsync failure policy 'zfs' in a fault rule is none of ext4, xfs"),
        ("fsync * EIO", "fault rule 'fsync * EIO': a failed fsync needs a policy"),
        ("change * EIO", "fault rule 'change * EIO': a failed fsync needs a policy"),
        ("write * EIO:ext4", "fault rule 'write * EIO:ext4': effect 'EIO:ext4' fits fsync"),
        ("write * soon EIO", "'soon' in a fault rule is no moment; write '#3'"),
        ("write * #0 EIO", "count '0' in a fault rule is not a whole number from 1"),
        ("write * #x EIO", "count 'x' in a fault rule is not a whole number from 1"),
        ("write * after 40 ENOSPC", "size '40' in a fault rule is not a whole number of MiB, KiB"),
        ("write * after 4XiB ENOSPC", "size '4XiB' in a fault rule is not a whole number of"),
        ("write * after 4KiB EIO", "fault rule 'write * after 4KiB EIO': moment 'after 4KiB' fits"),
        ("read * after 4KiB ENOSPC", "fault rule 'read * after 4KiB ENOSPC': moment 'after 4KiB'"),
        ("read * from 3 EIO", "fault rule 'read * from 3 EIO': moment 'from 3' fits create, write"),
        ("write * from 0 EIO", "operation '0' in a fault rule is not a whole number from 1"),
        ("write * above 3 EMFILE", "fault rule 'write * above 3 EMFILE': moment 'above 3' fits op"),
        ("open * above -1 EMFILE", "number of descriptors '-1' in a fault rule is not a whole"),
        ("write * short:0B", "a short call transfers a byte, got most_bytes=0"),
        ("fsync * short:3B", "fault rule 'fsync * short:3B': effect 'short:3B' fits write, read"),
        ("read * #2 rot:1", "fault rule 'read * #2 rot:1': rot stays, so it has no moment"),
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
    with pytest.raises(HarnessError, match="has a space or a ';' in it, or nothing"):
        FaultRule(Calls.READ, glob, Refuse(errno.EIO))


def test_a_call_counts_from_one() -> None:
    with pytest.raises(HarnessError, match="first=0"):
        Nth(0)


def test_an_errno_that_no_rule_can_name_is_refused() -> None:
    with pytest.raises(HarnessError, match=r"errno=2 is none of EIO, ENOSPC"):
        Refuse(errno.ENOENT)


def test_an_empty_text_is_a_plan_without_a_fault() -> None:
    assert FaultPlan.parse(" ") == FaultPlan()
    assert str(FaultPlan()) == ""


def test_each_rule_is_switched_off_and_on_alone() -> None:
    plan = FaultPlan.parse("read * EIO; write * EIO")
    off = plan.switched(1, on=False)
    assert str(off) == "read * EIO; off write * EIO"
    assert off.switched(1, on=True) == plan
    assert str(plan.lifted()) == "off read * EIO; off write * EIO"
    with pytest.raises(HarnessError, match="no rule index=2 in a fault plan of 2"):
        plan.switched(2, on=False)


@pytest.mark.parametrize(
    ("rule", "calls", "path", "expected"),
    [
        ("fsync */events.jsonl EIO:ext4", Calls.FSYNC, "/a/b/events.jsonl", True),
        ("fsync */events.jsonl EIO:ext4", Calls.FSYNC, "/a/b/events.pending", False),
        ("fsync */events.jsonl EIO:ext4", Calls.WRITE, "/a/b/events.jsonl", False),
        ("change * EROFS", Calls.FSYNC, "/a", True),
        ("change * EROFS", Calls.READ, "/a", False),
    ],
)
def test_a_rule_matches_by_kind_of_call_and_by_path(
    rule: str, calls: Calls, path: str, expected: bool
) -> None:
    assert FaultRule.parse(rule).matches(calls, path) is expected
