"""The laws of the recovery report, of its notices and of the boot epoch."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from oracles.runtime.report_laws import ShadowEpoch, check_report, check_second_report
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.violation import InvalidState, TornRecord
from tests.unit.oracles.runtime.story import Story, hexed, message

BOSS, ORPHAN = hexed("a-boss"), hexed("orphan")
TEMPORARY = f"agents/{hexed('boss')}/session.json.tmp.0123abcd"


@dataclass
class Report:
    """The report that is right for ``crashed`` and ``recovered``."""

    epoch: int = 1
    sessions: int = 1
    living: int = 1
    lines: int = 5
    torn_bytes: int = 3
    redone: int = 1
    undispatched: int = 0
    damaged: list[object] = field(default_factory=list)
    orphans: list[str] = field(default_factory=lambda: [ORPHAN])
    swept: list[str] = field(default_factory=lambda: [TEMPORARY])
    suspended: list[str] = field(default_factory=lambda: [hexed("boss")])
    ended: list[str] = field(default_factory=list)
    lost_turns: dict[str, tuple[str, ...]] = field(default_factory=lambda: {BOSS: ("t1",)})


def _story() -> Story:
    story = Story()
    story.root("boss")
    story.send("m1", "boss", "start")
    story.send("m2", "boss", "more")
    story.start("boss", "t1", "m1")
    return story


def crashed() -> RootSnapshot:
    """A root after a crash: a lost turn, an orphan, a temporary, a torn line of USER."""
    story = _story()
    story.records["boss"]["state"] = "ACTIVE"
    files = story.files()
    files[f"agents/{ORPHAN}/session.json"] = b""
    files[TEMPORARY] = b""
    files["user/events.jsonl"] = b"{12"
    return RootSnapshot.of_files(files)


def recovered(pending: int = 2, downtime_ns: int = 0, timestamp: str | None = None) -> RootSnapshot:
    story = _story()
    payload = {
        "notice": "recovery", "v": 1, "downtime_ns": downtime_ns, "lost_turns": ["t1"],
        "pending": pending,
    }  # fmt: skip
    notice = message("t1.lost", "RUNTIME", BOSS, "system", payload)
    if timestamp is not None:
        notice["timestamp"] = timestamp
    story.add("boss", "message.enqueued", **notice)
    story.add(
        "user", "message.enqueued", **message("m9", BOSS, "USER", "text", "redone")
    )  # fmt: skip
    return story.snapshot()


def test_right_report_is_accepted() -> None:
    check_report(Report(), crashed(), recovered())


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("sessions", 2),
        ("living", 0),
        ("undispatched", 1),
        ("orphans", []),
        ("orphans", [ORPHAN, hexed("boss")]),
        ("swept", []),
        ("suspended", []),
        ("ended", [BOSS]),
        ("lost_turns", {}),
        ("lost_turns", {BOSS: ("t1", "t2")}),
    ],
)
def test_each_wrong_member_of_a_report_is_found(member: str, value: object) -> None:
    report = Report()
    setattr(report, member, value)
    with pytest.raises(InvalidState, match=member):
        check_report(report, crashed(), recovered())


def test_redone_messages_are_counted_where_no_log_was_torn() -> None:
    before = _story().snapshot()
    report = Report(orphans=[], swept=[], suspended=[], torn_bytes=0)
    check_report(report, before, recovered())
    report.redone = 0
    with pytest.raises(InvalidState, match="redone"):
        check_report(report, before, recovered())


def test_torn_bytes_are_counted_at_least() -> None:
    with pytest.raises(InvalidState, match="torn_bytes"):
        check_report(Report(torn_bytes=0), crashed(), recovered())


def test_notice_counts_the_pending_messages_without_itself() -> None:
    with pytest.raises(InvalidState, match="pending"):
        check_report(Report(), crashed(), recovered(pending=3))


def test_notice_gives_the_time_since_the_last_line() -> None:
    last_ts = _story().snapshot().agents[BOSS].log.lines[-1].ts
    later = last_ts.replace("Z", "+00:00")
    moment = datetime.fromisoformat(later) + timedelta(microseconds=7)
    right = recovered(downtime_ns=7000, timestamp=moment.isoformat())
    check_report(Report(), crashed(), right)
    with pytest.raises(InvalidState, match="downtime_ns"):
        check_report(Report(), crashed(), recovered(downtime_ns=7, timestamp=moment.isoformat()))


def test_notice_after_a_clock_was_set_back_gives_no_downtime() -> None:
    check_report(Report(), crashed(), recovered(2, 0, "2001-01-01T00:00:00.000000Z"))


def test_notice_without_a_time_is_torn() -> None:
    with pytest.raises(TornRecord):
        check_report(Report(), crashed(), recovered(timestamp=""))


@pytest.mark.parametrize(("member", "value"), [("lines", 6), ("torn_bytes", 1), ("redone", 1)])
def test_second_recovery_must_have_nothing_to_do(member: str, value: int) -> None:
    after = recovered()
    report = Report(lines=7, torn_bytes=0, redone=0)
    check_second_report(report, after)
    setattr(report, member, value)
    with pytest.raises(InvalidState, match=member):
        check_second_report(report, after)


@pytest.mark.parametrize(
    ("crashed_boots", "epoch", "is_new"),
    [(0, 6, True), (0, 5, False), (0, 7, False), (1, 7, True), (1, 4, False)],
)
def test_boot_epoch_grows_with_every_boot(crashed_boots: int, epoch: int, is_new: bool) -> None:
    shadow = ShadowEpoch()
    for _ in range(5):
        shadow.boot()
    shadow.check(5)
    for _ in range(crashed_boots + 1):
        shadow.boot()
    if is_new:
        shadow.check(epoch)
    else:
        with pytest.raises(InvalidState):
            shadow.check(epoch)
