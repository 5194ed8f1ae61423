"""Session records on a disk: durable when written, independent of each other, swept at a boot."""

from __future__ import annotations

import errno

import pytest

from system.errors import NotPlainJson, SessionNotFound, SessionRecordDamaged, StorageFull
from system.sessions.session import SessionRecord, SessionState, decode_record, encode_record
from system.sessions.session_problem import Problem, SessionProblem
from system.sessions.session_store import SessionStore
from system.storage.codec import seal
from tests.unit.system.faulty_files import FaultyHost

ONE, TWO = "1" * 32, "2" * 32


def record(session_id: str, state: SessionState = SessionState.SUSPENDED) -> SessionRecord:
    return SessionRecord(session_id, "scripted", "m", state, b"blob")


def path_of(session_id: str) -> str:
    return f"agents/{session_id}/session.json"


def put(here: FaultyHost, *records: SessionRecord) -> None:
    for each in records:
        here.write(path_of(each.session_id), encode_record(each))


def on_disk(here: FaultyHost, session_id: str) -> SessionRecord:
    return decode_record(here.read(path_of(session_id)), session_id, "")


def test_every_name_on_the_way_to_a_new_record_is_durable_when_add_returns(
    here: FaultyHost,
) -> None:
    SessionStore(here.host).add(record(ONE))

    temporary = f"{path_of(ONE)}.tmp.00000001"
    assert here.files.calls == [
        "mkdir agents",
        "sync_dir ",
        f"mkdir agents/{ONE}",
        "sync_dir agents",
        f"open-create {temporary}",
        f"pwrite {temporary}",
        f"fsync {temporary}",
        f"close {temporary}",
        f"replace {path_of(ONE)}",
        f"sync_dir agents/{ONE}",
    ]
    assert on_disk(here, ONE) == SessionStore(here.host).load(ONE) == record(ONE)


def test_a_record_that_cannot_be_encoded_makes_no_directory(here: FaultyHost) -> None:
    with pytest.raises(NotPlainJson):
        SessionStore(here.host).add(SessionRecord(ONE, "\ud800", "m", SessionState.ACTIVE))

    assert here.names() == []


@pytest.mark.parametrize(
    ("call", "ending"),
    [("sync_dir", "agents"), ("open-create", ".tmp.00000001"), ("pwrite", ".tmp.00000001"),
     ("fsync", ".tmp.00000001"), ("replace", "session.json")],
)  # fmt: skip
def test_a_failed_add_leaves_nothing(here: FaultyHost, call: str, ending: str) -> None:
    here.files.fail(call, ending, errno.ENOSPC)

    with pytest.raises(StorageFull):
        SessionStore(here.host).add(record(ONE))

    assert here.names("agents") == []


def test_the_directory_that_a_failed_add_could_not_remove_is_swept(here: FaultyHost) -> None:
    here.files.fail("pwrite", ".tmp.00000001", errno.EIO)
    here.files.fail("rmdir", ONE, errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        SessionStore(here.host).add(record(ONE))

    assert SessionStore(here.host).sweep() == ({}, [], [ONE], [])
    assert here.names("agents") == []


def test_a_replaced_record_is_durable(here: FaultyHost) -> None:
    put(here, record(ONE))

    SessionStore(here.host).replace(record(ONE, SessionState.ACTIVE))

    assert on_disk(here, ONE) == record(ONE, SessionState.ACTIVE)
    assert here.files.calls[-2:] == [f"replace {path_of(ONE)}", f"sync_dir agents/{ONE}"]


def test_a_missing_record_and_a_damaged_one_are_not_loaded(here: FaultyHost) -> None:
    here.write(path_of(TWO), encode_record(record(TWO))[:-9])
    store = SessionStore(here.host)

    with pytest.raises(SessionNotFound, match=path_of(ONE)):
        store.load(ONE)
    with pytest.raises(SessionRecordDamaged, match=path_of(TWO)):
        store.load(TWO)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (bytes(300), Problem.DAMAGED),
        (seal({"v": 2}) + b"\n", Problem.NEWER),
        (None, Problem.NO_RECORD),
    ],
    ids=["damaged", "newer", "missing"],
)
def test_examine_returns_the_problem_of_a_record(
    here: FaultyHost, content: bytes | None, problem: Problem
) -> None:
    if content is not None:
        here.write(path_of(ONE), content)

    found = SessionStore(here.host).examine(ONE)

    assert isinstance(found, SessionProblem)
    assert (found.session_id, found.problem) == (ONE, problem)


def test_examine_puts_a_damaged_record_aside(here: FaultyHost) -> None:
    here.write(path_of(ONE), bytes(300))

    assert SessionStore(here.host).examine(ONE) == SessionProblem(
        ONE, Problem.DAMAGED, "it does not end with a line end", f"{path_of(ONE)}.quarantine.1"
    )
    assert here.names(f"agents/{ONE}") == ["session.json.quarantine.1"]
    assert here.read(f"{path_of(ONE)}.quarantine.1") == bytes(300)


def test_a_record_that_the_disk_refuses_to_read_or_to_put_aside_is_a_problem(
    here: FaultyHost,
) -> None:
    here.write(f"{path_of(ONE)}/in/the/way", b"")
    here.write(path_of(TWO), b"damage")
    here.files.fail("replace", ".quarantine.1", errno.EIO)
    store = SessionStore(here.host)

    problems = [store.examine(ONE), store.examine(TWO)]

    details = []
    for problem in problems:
        assert isinstance(problem, SessionProblem)
        assert problem.problem is Problem.FAILED
        details.append(problem.detail)
    assert details[1].startswith("it does not end with a line end; it could not be put aside")
    assert here.read(path_of(TWO)) == b"damage"


def test_an_empty_root_has_no_sessions(here: FaultyHost) -> None:
    assert SessionStore(here.host).sweep() == ({}, [], [], [])
    assert here.names() == []


def test_sweep_removes_temporary_files_and_empty_directories(here: FaultyHost) -> None:
    put(here, record(ONE))
    here.write(f"{path_of(ONE)}.tmp.00000001", b"left by a crash")
    here.write(f"agents/{ONE}/events.jsonl.tmp.00000001", b"left by a crash")
    here.write(f"{path_of(TWO)}.tmp.0123abcd", b"never named")
    temporaries = [
        f"agents/{ONE}/events.jsonl.tmp.00000001",
        f"{path_of(ONE)}.tmp.00000001",
        f"{path_of(TWO)}.tmp.0123abcd",
    ]
    store = SessionStore(here.host)

    assert store.sweep() == ({ONE: ["session.json"]}, temporaries, [TWO], [])
    assert store.sweep() == ({ONE: ["session.json"]}, [], [], [])
    assert here.files.listdir("agents") == [ONE]


def test_sweep_ignores_names_that_are_not_sessions(here: FaultyHost) -> None:
    put(here, record(ONE))
    here.write("agents/README", b"")
    here.write(f"agents/{TWO}", b"a file")
    here.write(f"agents/{TWO}x/session.json", b"")

    assert SessionStore(here.host).sweep() == ({ONE: ["session.json"]}, [], [], [])


def test_the_names_of_the_sessions_are_durable_after_a_sweep(here: FaultyHost) -> None:
    put(here, record(ONE))

    SessionStore(here.host).sweep()

    synced = [call for call in here.files.calls if call.startswith("sync_dir")]
    assert synced == ["sync_dir agents"]


def test_a_session_that_the_disk_refuses_to_sweep_does_not_stop_the_others(
    here: FaultyHost,
) -> None:
    put(here, record(ONE), record(TWO))
    here.write(f"{path_of(ONE)}.tmp.00000001", b"left by a crash")
    here.files.fail("unlink", ".tmp.00000001", errno.EIO)

    sweep = SessionStore(here.host).sweep()

    assert sweep.sessions == {TWO: ["session.json"]}
    assert [(each.session_id, each.problem) for each in sweep.problems] == [(ONE, Problem.FAILED)]
