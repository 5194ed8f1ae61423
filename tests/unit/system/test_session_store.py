"""Session records on a disk: durable when acknowledged, apart from each other, recovered."""

from __future__ import annotations

import errno

import pytest

from system.errors import (
    IllegalTransition,
    NotPlainJson,
    RecordDamaged,
    SessionNotFound,
    StorageFull,
)
from system.sessions.session import SessionRecord, SessionState, decode_record, encode_record
from system.sessions.session_store import SessionStore
from system.sessions.store_report import Problem, SessionProblem
from system.storage.codec import seal
from tests.unit.system.faulty_files import FaultyHost

ONE, TWO, THREE = "1" * 32, "2" * 32, "3" * 32


def record(session_id: str, state: SessionState = SessionState.SUSPENDED) -> SessionRecord:
    return SessionRecord(session_id, "scripted", "m", state, b"blob")


def path_of(session_id: str) -> str:
    return f"agents/{session_id}/session.json"


def put(here: FaultyHost, *records: SessionRecord) -> None:
    for each in records:
        here.write(path_of(each.session_id), encode_record(each))


def on_disk(here: FaultyHost, session_id: str) -> SessionRecord:
    return decode_record(here.read(path_of(session_id)), session_id, "")


def test_a_created_session_is_active_and_on_the_disk(here: FaultyHost) -> None:
    created = SessionStore(here.host).create("scripted", "m", b"blob")

    assert created == SessionRecord(f"{1:032x}", "scripted", "m", SessionState.ACTIVE, b"blob")
    assert on_disk(here, created.session_id) == created
    assert SessionStore(here.host).load(created.session_id) == created


def test_every_name_on_the_way_to_a_new_session_is_durable_before_it_is_acknowledged(
    here: FaultyHost,
) -> None:
    session_id = SessionStore(here.host).create("scripted", "m").session_id

    temporary = f"{path_of(session_id)}.tmp.00000002"
    assert here.files.calls == [
        "mkdir agents",
        "sync_dir ",
        f"mkdir agents/{session_id}",
        "sync_dir agents",
        f"open-create {temporary}",
        f"pwrite {temporary}",
        f"fsync {temporary}",
        f"close {temporary}",
        f"replace {path_of(session_id)}",
        f"sync_dir agents/{session_id}",
    ]


def test_a_store_may_stand_below_the_root(here: FaultyHost) -> None:
    store = SessionStore(here.host, "a/b")

    session_id = store.create("scripted", "m").session_id

    assert here.names("a/b/agents") == [session_id]
    assert store.directory_of(session_id) == f"a/b/agents/{session_id}"


def test_an_id_that_is_taken_is_not_overwritten(here: FaultyHost) -> None:
    put(here, record(f"{1:032x}"))

    with pytest.raises(FileExistsError):
        SessionStore(here.host).create("other", "m")

    assert on_disk(here, f"{1:032x}").provider_name == "scripted"


def test_nothing_is_made_for_a_record_that_cannot_be_encoded(here: FaultyHost) -> None:
    with pytest.raises(NotPlainJson):
        SessionStore(here.host).create("\ud800", "m")

    assert here.names() == []


@pytest.mark.parametrize(
    ("call", "ending"),
    [("sync_dir", "agents"), ("open-create", ".tmp.00000002"), ("pwrite", ".tmp.00000002"),
     ("fsync", ".tmp.00000002"), ("replace", "session.json")],
)  # fmt: skip
def test_a_creation_that_failed_leaves_nothing(here: FaultyHost, call: str, ending: str) -> None:
    here.files.fail(call, ending, errno.ENOSPC)

    with pytest.raises(StorageFull):
        SessionStore(here.host).create("scripted", "m")

    assert here.names("agents") == []


def test_what_a_failed_creation_could_not_remove_is_removed_by_recovery(here: FaultyHost) -> None:
    here.files.fail("pwrite", ".tmp.00000002", errno.EIO)
    here.files.fail("rmdir", f"{1:032x}", errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        SessionStore(here.host).create("scripted", "m")

    report = SessionStore(here.host).recover()

    assert (report.removed, report.records, report.problems) == ((f"{1:032x}",), (), ())
    assert here.names("agents") == []


def test_a_transition_is_saved_at_once_and_durably(here: FaultyHost) -> None:
    put(here, record(ONE))
    store = SessionStore(here.host)

    store.save(store.load(ONE).moved_to(SessionState.ACTIVE, b"new"))

    assert on_disk(here, ONE) == SessionRecord(ONE, "scripted", "m", SessionState.ACTIVE, b"new")
    assert here.files.calls[-2:] == [f"replace {path_of(ONE)}", f"sync_dir agents/{ONE}"]


def test_an_illegal_transition_changes_nothing(here: FaultyHost) -> None:
    put(here, record(ONE, SessionState.TERMINATED))

    with pytest.raises(IllegalTransition, match=path_of(ONE)):
        SessionStore(here.host).save(record(ONE, SessionState.ACTIVE))

    assert on_disk(here, ONE).state is SessionState.TERMINATED


def test_a_session_that_does_not_exist_is_not_found(here: FaultyHost) -> None:
    store = SessionStore(here.host)

    with pytest.raises(SessionNotFound, match=path_of(ONE)):
        store.load(ONE)
    with pytest.raises(SessionNotFound):
        store.save(record(ONE))


def test_a_damaged_record_is_not_loaded(here: FaultyHost) -> None:
    here.write(path_of(ONE), encode_record(record(ONE))[:-9])

    with pytest.raises(RecordDamaged, match=path_of(ONE)):
        SessionStore(here.host).load(ONE)


def test_an_empty_root_has_no_sessions(here: FaultyHost) -> None:
    store = SessionStore(here.host)

    for report in (store.scan(), store.recover()):
        assert (report.records, report.problems) == ((), ())
    assert here.names() == []


def test_sessions_are_scanned_in_the_order_of_their_ids(here: FaultyHost) -> None:
    put(here, record(TWO), record(THREE, SessionState.TERMINATED), record(ONE, SessionState.ACTIVE))

    report = SessionStore(here.host).scan()

    assert [each.session_id for each in report.records] == [ONE, TWO, THREE]
    assert [each.state.value for each in report.records] == ["ACTIVE", "SUSPENDED", "TERMINATED"]
    assert report.suspended == ()


def test_what_is_not_a_session_is_passed_over(here: FaultyHost) -> None:
    put(here, record(ONE))
    here.write("agents/README", b"")
    here.write(f"agents/{TWO}", b"a file")
    here.write(f"agents/{TWO}x/session.json", b"")

    report = SessionStore(here.host).recover()

    assert [each.session_id for each in report.records] == [ONE]
    assert report.problems == ()


def test_a_session_of_which_only_a_temporary_file_is_left_is_removed(here: FaultyHost) -> None:
    here.write(f"{path_of(ONE)}.tmp.0123abcd", b"never named")

    report = SessionStore(here.host).recover()

    assert (report.removed, report.records, report.problems) == ((ONE,), (), ())
    assert here.files.listdir("agents") == []


def test_each_bad_session_is_reported_and_the_others_are_recovered(here: FaultyHost) -> None:
    damaged, newer, bare, unreadable = "a" * 32, "b" * 32, "c" * 32, "d" * 32
    put(here, record(ONE))
    here.write(path_of(damaged), bytes(300))
    here.write(path_of(newer), seal({"v": 2}) + b"\n")
    here.write(f"agents/{bare}/events.jsonl", b"")
    here.write(f"{path_of(unreadable)}/in/the/way", b"")

    report = SessionStore(here.host).scan()

    assert report.records == (record(ONE),)
    assert [(each.session_id, each.problem) for each in report.problems] == [
        (damaged, Problem.DAMAGED),
        (newer, Problem.NEWER),
        (bare, Problem.NO_RECORD),
        (unreadable, Problem.FAILED),
    ]
    assert report.problems[0] == SessionProblem(
        damaged,
        Problem.DAMAGED,
        "it does not end with a line end",
        f"{path_of(damaged)}.quarantine.1",
    )
    assert here.read(f"{path_of(damaged)}.quarantine.1") == bytes(300)
    assert here.names(f"agents/{damaged}") == ["session.json.quarantine.1"]
    assert here.read(path_of(newer)) == seal({"v": 2}) + b"\n"


def test_a_damaged_record_that_cannot_be_quarantined_is_reported(here: FaultyHost) -> None:
    here.write(path_of(ONE), b"damage")
    here.files.fail("replace", ".quarantine.1", errno.EIO)

    (problem,) = SessionStore(here.host).scan().problems

    assert problem.problem is Problem.FAILED
    assert problem.detail.startswith("it does not end with a line end; it could not be put aside")
    assert here.read(path_of(ONE)) == b"damage"


def test_recovery_suspends_active_sessions_and_no_others(here: FaultyHost) -> None:
    put(here, record(ONE, SessionState.ACTIVE), record(TWO), record(THREE, SessionState.TERMINATED))

    report = SessionStore(here.host).recover()

    assert report.records == (record(ONE), record(TWO), record(THREE, SessionState.TERMINATED))
    assert report.suspended == (ONE,)
    assert on_disk(here, ONE) == record(ONE)


def test_recovery_of_recovered_sessions_changes_nothing(here: FaultyHost) -> None:
    put(here, record(ONE, SessionState.ACTIVE))
    here.write(f"{path_of(ONE)}.tmp.00000001", b"left by a crash")
    here.write(f"agents/{ONE}/events.jsonl.tmp.00000001", b"left by a crash")
    here.write(path_of(TWO), b"damage")
    store = SessionStore(here.host)

    first = store.recover()
    names = here.names(f"agents/{ONE}")
    second = store.recover()

    assert first.swept == (
        f"agents/{ONE}/events.jsonl.tmp.00000001",
        f"{path_of(ONE)}.tmp.00000001",
    )
    assert (second.records, second.suspended, second.swept) == (first.records, (), ())
    assert here.names(f"agents/{ONE}") == names == ["session.json"]
    assert [each.problem for each in second.problems] == [Problem.NO_RECORD]


def test_what_a_killed_process_wrote_is_durable_before_it_is_reported(here: FaultyHost) -> None:
    put(here, record(ONE), record(TWO))

    SessionStore(here.host).recover()

    synced = [call for call in here.files.calls if call.startswith("sync_dir")]
    assert synced == ["sync_dir ", "sync_dir agents", f"sync_dir agents/{ONE}",
                      f"sync_dir agents/{TWO}"]  # fmt: skip


def test_one_session_that_the_disk_refuses_does_not_stop_the_others(here: FaultyHost) -> None:
    put(here, record(ONE, SessionState.ACTIVE), record(TWO, SessionState.ACTIVE))
    here.files.fail("replace", path_of(ONE), errno.ENOSPC)

    report = SessionStore(here.host).recover()

    assert report.records == (record(TWO),)
    assert [(each.session_id, each.problem) for each in report.problems] == [(ONE, Problem.FAILED)]
    assert SessionStore(here.host).recover().records == (record(ONE), record(TWO))
