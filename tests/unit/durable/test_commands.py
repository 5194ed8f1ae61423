"""The commands on durable execution: output, exit codes, and the lock of the root."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import apsw
import pytest
from click.testing import CliRunner, Result

from system.cli import cli
from system.commands import offline
from system.commands.guarded_output import OutputLost
from system.commands.offline import reporting
from system.durable.activity import Intent, Refused, Unknown
from system.durable.applied import record_applied
from system.durable.ended import Ended, EndedConversation, insert_ended
from system.durable.known_ids import keep_ids
from system.durable.open_state import open_state
from system.durable.schedule import ScheduleSpec
from system.durable.state import STATE, Transaction
from system.durable.stores import Stores
from system.durable.task import Checkpoint, TaskStatus
from system.durable.trigger import SessionStatus, TriggerSpec
from system.host import real_host
from system.root import Root
from system.sessions.session import SessionRecord, SessionState
from system.sessions.session_store import SessionStore
from tests.unit.durable.durable_bench import KnownSessions
from tests.unit.durable.test_activity_store import DUMB
from tests.unit.system.faulty_files import FaultyFiles

T = TypeVar("T")


class RealRoot:
    """A root on a real directory, written with its stores and read by commands."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.host = real_host(str(path))
        self.sessions = KnownSessions()
        Root.open(self.host.files, self.host.ids).close()
        open_state(self.host, None).close()

    def do(self, work: Callable[[Stores, Transaction], T]) -> T:
        """Open the database, do some work, and close it."""
        state = open_state(self.host, None)
        stores = Stores(self.host, 1, self.sessions)
        try:
            return state.transact(lambda transaction: work(stores, transaction))
        finally:
            state.close()

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(cli, [*arguments, "--root", str(self.path)])

    def lines(self, *arguments: str) -> list[list[str]]:
        found = self.run(*arguments)
        assert found.exit_code == 0, found.output
        return [line.split() for line in found.output.splitlines()[1:]]


@pytest.fixture
def root(tmp_path: Path) -> RealRoot:
    return RealRoot(tmp_path)


def emit(
    root: RealRoot, trigger_id: str, fire_at: float = 1e9, session_id: str = "s",
    key: str | None = None,
) -> None:  # fmt: skip
    spec = TriggerSpec("IMMEDIATE", {"a": 1}, "greet", session_id, fire_at, key)
    root.do(lambda stores, transaction: stores.emitter.emit(transaction, spec, trigger_id))


def stop(root: RealRoot, trigger_id: str) -> None:
    def work(stores: Stores, transaction: Transaction) -> None:
        claim = stores.triggers.claim(transaction, trigger_id)
        assert claim is not None
        stores.triggers.fail(transaction, claim, "no", retryable=False)

    root.do(work)


@pytest.mark.parametrize("command", ["triggers list", "schedules", "activities list", "status"])
def test_a_root_that_is_read_only_is_refused_with_the_remedy(
    root: RealRoot, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    host = real_host(str(root.path))
    files = FaultyFiles(host.files)
    files.fail("open-write", "runtime.lock", errno.EROFS)
    monkeypatch.setattr(offline, "reading_host", lambda _root: replace(host, files=files))
    found = root.run(*command.split())
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr == (
        f"--root {root.path}: Read-only file system (runtime.lock); mount its file system"
        " writable, or use a writable copy of the root\n"
    )


def test_triggers_are_listed_by_their_time(root: RealRoot) -> None:
    emit(root, "late", 2e9)
    emit(root, "early")
    assert root.lines("triggers", "list") == [
        ["early", "IMMEDIATE", "PENDING", "2001-09-09T01:46:40Z", "s", "0", "greet"],
        ["late", "IMMEDIATE", "PENDING", "2033-05-18T03:33:20Z", "s", "0", "greet"],
    ]


def test_a_time_that_no_calendar_has_is_listed_as_seconds(root: RealRoot) -> None:
    emit(root, "early", -1e11)
    emit(root, "late", 2e9)
    assert [(cells[0], cells[3]) for cells in root.lines("triggers", "list")] == [
        ("early", "-100000000000"), ("late", "2033-05-18T03:33:20Z"),
    ]  # fmt: skip


def test_a_trigger_is_shown_as_json(root: RealRoot) -> None:
    emit(root, "one")
    shown = json.loads(root.run("triggers", "show", "one").output)
    assert (shown["id"], shown["payload"], shown["status"]) == ("one", {"a": 1}, "PENDING")
    unknown = root.run("triggers", "show", "two")
    assert unknown.exit_code == 2
    assert "trigger 'two': there is none; see `triggers list`" in unknown.stderr


def test_a_stopped_trigger_is_retried_or_discarded(root: RealRoot) -> None:
    for trigger_id in ("one", "two"):
        emit(root, trigger_id)
        stop(root, trigger_id)
    assert [line[:3] for line in root.lines("triggers", "dead")] == [
        ["one", "IMMEDIATE", "FAILED"], ["two", "IMMEDIATE", "FAILED"],
    ]  # fmt: skip
    for undecided in ([], ["--retry", "--discard"]):
        refused = root.run("triggers", "resolve", "one", *undecided)
        assert (refused.exit_code, "--retry or --discard" in refused.stderr) == (2, True)
    assert root.run("triggers", "resolve", "one", "--retry").output == "one is PENDING\n"
    assert root.run("triggers", "resolve", "two", "--discard").output == "two is DONE\n"
    assert root.lines("triggers", "dead") == []
    assert [line[2] for line in root.lines("triggers", "list", "--all")] == ["PENDING", "DONE"]
    again = root.run("triggers", "resolve", "two", "--retry")
    assert (again.exit_code, "is DONE, so there is nothing to decide" in again.stderr) == (2, True)


def test_a_trigger_whose_session_has_ended_is_not_retried(root: RealRoot) -> None:
    for session_id, state in (("a" * 32, SessionState.TERMINATED), ("b" * 32, SessionState.ACTIVE)):
        SessionStore(root.host).add(SessionRecord(session_id, "scripted", "m", state))
        root.sessions.states[session_id] = SessionStatus.LIVING
        emit(root, session_id[:1], session_id=session_id)
        stop(root, session_id[:1])
    refused = root.run("triggers", "resolve", "a", "--retry")
    assert (refused.exit_code, "it is ended" in refused.stderr) == (2, True)
    assert root.run("triggers", "resolve", "b", "--retry").exit_code == 0
    assert [line[:3] for line in root.lines("triggers", "dead")] == [["a", "IMMEDIATE", "FAILED"]]


def intend(root: RealRoot, key: str, outcome: Any) -> None:
    def work(stores: Stores, transaction: Transaction) -> None:
        stores.activities.intend(transaction, Intent(key, DUMB, {"to": "Anna"}))
        stores.activities.attempt(transaction, key, {})
        stores.activities.record(transaction, key, outcome)

    root.do(work)


def test_activities_are_listed_and_decided(root: RealRoot) -> None:
    keys = [f"activity:t:{number}" for number in range(3)]
    for key in keys:
        intend(root, key, Unknown("timeout") if key != keys[2] else Refused("no address"))
    assert [line[:4] for line in root.lines("activities", "list")] == [
        [keys[0], "mail", "UNCERTAIN", "1"], [keys[1], "mail", "UNCERTAIN", "1"],
        [keys[2], "mail", "FAILED", "1"],
    ]  # fmt: skip

    def decide(key: str, *arguments: str) -> Result:
        return root.run("activities", "resolve", key, *arguments, "--by", "Bob")

    assert decide(keys[0], "--performed", "--ref", "m7").output == f"{keys[0]} is DONE\n"
    assert decide(keys[1], "--again").output == f"{keys[1]} is INTENT\n"
    assert decide(keys[2], "--not-performed").output == f"{keys[2]} is FAILED\n"
    assert [line[2:6] for line in root.lines("activities", "list", "--all")] == [
        ["DONE", "1", "m7", "Bob"], ["INTENT", "0", "-", "Bob"], ["FAILED", "1", "-", "Bob"],
    ]  # fmt: skip
    decided = decide(keys[0], "--again")
    assert (decided.exit_code, "is DONE by Bob" in decided.stderr) == (2, True)


@pytest.mark.parametrize(
    "given", ["", "--again --ref x", "--performed --again", "--not-performed --performed --ref x"]
)
def test_an_activity_is_decided_by_one_decision(root: RealRoot, given: str) -> None:
    intend(root, "activity:t:1", Unknown("timeout"))
    refused = root.run("activities", "resolve", "activity:t:1", *given.split(), "--by", "Bob")
    assert (refused.exit_code, "give one of" in refused.stderr) == (2, True)
    assert root.lines("activities", "list")[0][2] == "UNCERTAIN"


def test_a_decision_of_nobody_is_refused(root: RealRoot) -> None:
    intend(root, "activity:t:1", Unknown("timeout"))
    refused = root.run("activities", "resolve", "activity:t:1", "--performed", "--by", "")
    assert (refused.exit_code, "by='' names no person" in refused.stderr) == (2, True)
    assert root.lines("activities", "list")[0][2] == "UNCERTAIN"


def test_schedules_and_status(root: RealRoot) -> None:
    def work(stores: Stores, transaction: Transaction) -> None:
        for schedule_id in ("a", "b"):
            spec = ScheduleSpec("cron", "0 9 * * *", session_id="s")
            stores.schedules.create(transaction, spec, schedule_id)
        stores.schedules.pause(transaction, "b")

    root.do(work)
    emit(root, "due")
    intend(root, "activity:t:1", Unknown("timeout"))
    waiting, paused = root.lines("schedules")
    assert waiting[:2] + waiting[-1:] == ["a", "cron", "waiting"]
    assert paused[-4:] == ["paused:", "by", "a", "person"]
    shown = {" ".join(line[:-1]): int(line[-1]) for line in root.lines("status")}
    assert shown == {
        "agents": 0, "triggers pending": 2, "triggers due": 1, "triggers claimed": 0,
        "triggers dead": 0, "schedules": 2, "tasks": 0, "activities to be performed": 0,
        "activities undecided": 1,
    }  # fmt: skip
    (root.path / "agents" / ("a" * 32)).mkdir(parents=True)
    (root.path / "agents" / "notes.txt").write_text("not an agent", "ascii")
    assert root.lines("status")[0] == ["agents", "1"]


@pytest.mark.parametrize(
    "command",
    [
        ["triggers", "list"], ["triggers", "show", "one"],
        ["triggers", "resolve", "one", "--retry"], ["activities", "list"],
        ["activities", "resolve", "activity:t:1", "--again", "--by", "Bob"], ["schedules"],
        ["status"],
    ],
)  # fmt: skip
def test_damaged_rows_are_reported(root: RealRoot, command: list[str]) -> None:
    emit(root, "one")
    intend(root, "activity:t:1", Unknown("timeout"))
    spec = ScheduleSpec("every", "60", session_id="s")
    root.do(lambda stores, transaction: stores.schedules.create(transaction, spec, "a"))
    connection = apsw.Connection(str(root.path / STATE))
    for table in ("triggers", "activity_log", "schedules"):
        connection.execute(f"UPDATE {table} SET reason='another'")
    connection.close()
    found = root.run(*command)
    assert found.exit_code == 1
    assert "has another crc than its content" in found.stderr


@pytest.mark.parametrize("change", ["crc='0'", "{}=CAST(x'ff' AS TEXT)"])
def test_status_reports_damaged_rows_that_no_list_has(root: RealRoot, change: str) -> None:
    def work(stores: Stores, transaction: Transaction) -> None:
        events = [("begin", None)]
        stores.tasks.checkpoint(transaction, Checkpoint("t", "s", 0, TaskStatus.ACTIVE, [], events))
        stores.emitter.emit(transaction, TriggerSpec("IMMEDIATE", key="immediate:a"))
        row = Ended("a", "e", "Ada", None, None, "completed", 1.0, None)
        insert_ended(transaction, [row], [EndedConversation("scripted", "i", "e")])
        keep_ids(transaction, "s", ["m"], are_acknowledged=False)
        record_applied(transaction, "s", 1)

    root.do(work)
    keys = {
        "dedup": "key", "applied": "session_id", "known_ids": "id", "ended": "agent_id",
        "conversations": "identity", "task_events": "task_id",
    }  # fmt: skip
    assert root.run("status").exit_code == 0
    connection = apsw.Connection(str(root.path / STATE))
    for table, key in keys.items():
        connection.execute(f"UPDATE {table} SET {change.format(key)}")
    connection.close()
    found = root.run("status")
    assert found.exit_code == 1
    for table in keys:
        assert f"table={table} row=" in found.stderr


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (b"FAILED", b"FAILEC", "row 1 missing from index idx_activity_status; restore it"),
        (b"immediate:b", b"jmmediate:b", "row=immediate:c is not found by its key; run REINDEX"),
    ],
)
def test_status_reports_rows_that_are_not_found(
    root: RealRoot, before: bytes, after: bytes, sentence: str
) -> None:
    intend(root, "activity:t:1", Refused("no"))
    for name in "abc":
        emit(root, name, key=f"immediate:{name}")
    state = root.path / STATE
    # SQLite keeps the last copy in the index, or the table of keys.
    beginning, end = state.read_bytes().rsplit(before, 1)
    state.write_bytes(beginning + after + end)
    found = root.run("status")
    assert found.exit_code == 1
    assert sentence in found.stderr


def test_status_reports_damaged_tasks_and_reports(root: RealRoot) -> None:
    def work(stores: Stores, transaction: Transaction) -> None:
        events = [("begin", None)]
        stores.tasks.checkpoint(transaction, Checkpoint("t", "s", 0, TaskStatus.ACTIVE, [], events))
        stores.reports.add(transaction, "a.dead", None, {})

    root.do(work)
    connection = apsw.Connection(str(root.path / STATE))
    for table in ("tasks", "reports"):
        connection.execute(f"UPDATE {table} SET crc='0'")
    connection.close()
    found = root.run("status")
    assert (found.exit_code, found.stderr.count("has another crc")) == (1, 2)


@pytest.mark.parametrize(
    "command",
    [
        ["triggers", "list"], ["triggers", "dead"], ["triggers", "show", "a"],
        ["triggers", "resolve", "a", "--retry"], ["activities", "list"],
        ["activities", "resolve", "a", "--again", "--by", "Bob"], ["schedules"], ["status"],
    ],
)  # fmt: skip
def test_a_root_in_use_is_refused(root: RealRoot, command: list[str]) -> None:
    (root.path / STATE).rename(root.path / "kept")
    live = Root.open(root.host.files, root.host.ids)
    (root.path / "kept").rename(root.path / STATE)
    found = root.run(*command)
    live.close()
    assert found.exit_code == 2
    assert "another runtime holds it" in found.stderr


def test_a_root_without_a_database_has_scheduled_nothing(root: RealRoot) -> None:
    (root.path / STATE).unlink()
    assert root.lines("triggers", "list") == []
    assert {int(line[-1]) for line in root.lines("status")} == {0}
    assert "trigger 'a': there is none" in root.run("triggers", "show", "a").stderr
    assert not (root.path / STATE).exists()


def test_a_root_whose_database_is_missing_asks_for_a_copy(root: RealRoot) -> None:
    state, opened = open_state(root.host, None), Root.open(root.host.files, root.host.ids)
    opened.adopt(root.host.files, root.host.ids, state.root_id)
    state.close()
    opened.close()
    (root.path / STATE).unlink()
    found = root.run("status")
    assert (found.exit_code, "restore it from a copy" in found.stderr) == (2, True)
    assert not (root.path / STATE).exists()


@pytest.mark.parametrize(
    "command",
    [
        "status", "schedules", "triggers list", "triggers show", "triggers dead",
        "triggers resolve", "activities list", "activities resolve", "records invalidate",
    ],
)  # fmt: skip
def test_the_help_of_a_command_that_locks_the_root_says_so(command: str) -> None:
    shown = CliRunner().invoke(cli, [*command.split(), "--help"]).output
    assert "it must not be in use." in " ".join(shown.split())
    assert "it may be in use" not in " ".join(shown.split())


def test_a_lost_output_is_no_mistake_about_the_root() -> None:
    with pytest.raises(OutputLost), reporting("root"):
        raise OutputLost(errno.EPIPE, "Broken pipe")
