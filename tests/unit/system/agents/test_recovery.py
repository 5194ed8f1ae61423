"""The ten passes, each over what a crash or damage may have left."""

from __future__ import annotations

import errno
import json

import pytest

from system.agents import event
from system.agents.provider_state import ProviderState
from system.agents.session import SessionState
from system.agents.store_report import Problem
from system.errors import NewerFormat
from system.ports import JsonObject, ProviderError
from system.runtime import Options, Resume, Runtime
from system.storage.codec import seal
from system.storage.framing import Framing
from system.storage.line import Line, encode_line
from tests.unit.system.agents.fake_provider import play
from tests.unit.system.agents.room import (
    ADA,
    BOB,
    EVE,
    NOW,
    ONE,
    THREE,
    TWO,
    Room,
    born,
    completed,
    enqueued,
    log_of,
    message,
    record_of,
    spawned,
    started,
)

END: tuple[str, JsonObject] = (
    event.AGENT_TERMINATED, {"agent_id": ADA, "reason": "completed", "returned": []},
)  # fmt: skip


def state(room: Room, session_id: str) -> str:
    return str(json.loads(room.read(record_of(session_id)))["state"])


def recovered(room: Room) -> Runtime:
    return room.open(start=False)


def problems(room: Room) -> list[tuple[str, Problem]]:
    return [(told.session_id, told.problem) for told in room.runtime.report.problems]


# -- 1 and 2 -----------------------------------------------------------------------------


def test_an_empty_directory_is_a_root_with_nothing_in_it(room: Room) -> None:
    report = recovered(room).report

    assert (report.epoch, report.sessions, report.living, report.lines) == (1, 0, 0, 0)
    assert (report.problems, report.orphans, report.swept, report.leaks) == ([], [], [], [])
    assert room.runtime.view().agents == ()


def test_a_second_recovery_changes_nothing_but_the_epoch(room: Room) -> None:
    room.put_session(ONE, [*born(ADA, "Ada"), enqueued("m", "USER", ADA), started("t", "m")])
    recovered(room)
    room.kill()
    paths = [log_of(ONE), record_of(ONE), "root.json", "user/events.jsonl"]
    before = [room.read(path) for path in paths]

    recovered(room)

    assert [room.read(path) for path in paths] == before
    assert room.host.files.listdir(f"agents/{ONE}") == ["events.jsonl", "session.json"]
    assert (room.runtime.report.epoch, room.runtime.report.lost_turns) == (3, {})
    assert room.runtime.report.redone == 0


def test_temporary_files_of_sessions_and_of_the_root_are_swept(room: Room) -> None:
    room.put_session(ONE, born(ADA, "Ada"))
    left = [f"{record_of(ONE)}.tmp.0000000a", "root.json.tmp.0000000b"]
    for path in left:
        room.write(path, b"half")

    recovered(room)

    assert sorted(room.runtime.report.swept) == sorted(left)
    assert not any(room.exists(path) for path in left)


# -- 3 and 4 -----------------------------------------------------------------------------


@pytest.mark.parametrize("framing", list(Framing))
def test_a_torn_end_of_a_log_is_cut_and_counted(framing: Framing) -> None:
    room = Room(Options(framing=framing))
    room.put_session(ONE, born(ADA, "Ada"))
    torn = encode_line(Line(3, NOW, ONE, "turn.start", {}), "")[:30]
    room.write(log_of(ONE), room.read(log_of(ONE)) + torn)

    recovered(room)

    assert room.runtime.report.torn_bytes == 30
    assert room.runtime.report.lines == 2
    assert room.events(ONE) == ["session.created", "agent.created"]


def test_damage_in_the_middle_of_a_log_stays_in_its_session_and_is_told(room: Room) -> None:
    lines = [*born(ADA, "Ada"), enqueued("m1", "USER", ADA), enqueued("m2", "USER", ADA)]
    room.put_session(ONE, lines)
    room.put_session(TWO, born(BOB, "Bob"))
    content = room.read(log_of(ONE))
    at = content.index(b'"m1"')
    room.write(log_of(ONE), content[:at] + b"?" + content[at + 1 :])

    recovered(room)

    report = room.runtime.report
    (damage,) = report.damaged
    assert (damage.path, damage.tail) == (log_of(ONE), False)
    assert room.read(damage.quarantine).count(b"?") == 1
    assert report.missing == {ONE: ((3, 3),)}
    assert room.named("Ada").pending == ("m2",)
    assert room.named("Bob").alive
    assert report.sessions == 2


def test_many_logs_are_opened_whatever_their_number(room: Room) -> None:
    for number in range(1, 21):
        room.put_session(f"{number:032x}", born(f"{number:032d}", f"agent {number}"))

    recovered(room)

    assert room.runtime.report.sessions == 20
    assert [agent.name for agent in room.runtime.view().agents] == [
        f"agent {number}" for number in range(1, 21)
    ]


def test_a_log_of_a_newer_format_is_left_alone_and_the_others_are_served(room: Room) -> None:
    room.put_session(ONE, born(ADA, "Ada"))
    room.put_session(TWO, born(BOB, "Bob"))
    newer = seal({"v": 2}) + b"\n"
    room.write(log_of(ONE), newer)

    recovered(room)

    assert problems(room) == [(ONE, Problem.NEWER)]
    assert room.read(log_of(ONE)) == newer
    assert [agent.name for agent in room.runtime.view().agents] == ["Bob"]


def test_a_log_that_the_disk_cannot_read_is_left_to_the_next_boot(room: Room) -> None:
    room.put_session(ONE, born(ADA, "Ada"))
    room.put_session(TWO, born(BOB, "Bob"))
    room.files.fail("pread", log_of(ONE), errno.EIO)

    recovered(room)
    assert problems(room) == [(ONE, Problem.FAILED)]
    room.reopen()

    assert room.runtime.report.problems == []
    assert room.named("Ada").alive


def test_a_session_whose_directory_cannot_be_tidied_is_left_to_the_next_boot(room: Room) -> None:
    room.put_session(ONE, born(ADA, "Ada"))
    room.files.fail("sync_dir", f"agents/{ONE}", errno.EIO)

    recovered(room)

    assert problems(room) == [(ONE, Problem.FAILED)]
    assert room.runtime.view().agents == ()
    assert room.exists(log_of(ONE))


def test_a_log_of_the_operator_that_cannot_be_read_stops_the_boot_and_frees_the_lock(
    room: Room,
) -> None:
    room.put_session(ONE, born(ADA, "Ada"))
    room.files.fail("fsync", "user/events.jsonl", errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        recovered(room)

    assert recovered(room).report.sessions == 1


def test_events_that_nobody_knows_do_not_hinder_anybody(room: Room) -> None:
    room.put_session(ONE, [*born(ADA, "Ada"), ("tool.call", {"name": "sing"})])

    recovered(room)

    assert room.agent(ADA).history.ignored == 1
    assert room.named("Ada").alive


# -- 5 -----------------------------------------------------------------------------------


def test_a_session_that_never_became_an_agent_is_removed_and_its_name_is_free(room: Room) -> None:
    room.put_session(ONE, born(ADA, "Ada")[:1])

    recovered(room)

    assert room.runtime.report.orphans == [ONE]
    assert not room.exists(f"agents/{ONE}")
    room.create("Ada")


def test_a_record_without_a_log_is_removed(room: Room) -> None:
    room.put_session(ONE, [])
    room.host.files.unlink(log_of(ONE))

    recovered(room)

    assert room.runtime.report.orphans == [ONE]
    assert not room.exists(f"agents/{ONE}")


def test_an_orphan_that_cannot_be_removed_is_told(room: Room) -> None:
    room.put_session(ONE, [])
    room.files.fail("rmdir", ONE, errno.EIO)

    recovered(room)

    assert problems(room) == [(ONE, Problem.FAILED)]


def test_an_empty_directory_is_an_orphan_as_well(room: Room) -> None:
    room.put_session(ONE, [])
    room.host.files.unlink(log_of(ONE))
    room.host.files.unlink(record_of(ONE))

    recovered(room)

    assert room.runtime.report.orphans == [ONE]


def test_what_damage_has_left_of_a_session_is_kept(room: Room) -> None:
    room.put_session(ONE, [*born(ADA, "Ada"), enqueued("m", "USER", ADA)])
    content = room.read(log_of(ONE))
    at = content.index(b"agent.created")
    room.write(log_of(ONE), content[:at] + b"?" + content[at + 1 :])

    recovered(room)

    assert problems(room) == [(ONE, Problem.DAMAGED)]
    assert room.runtime.report.orphans == []
    assert room.exists(log_of(ONE))
    assert room.runtime.view().agents == ()
    # Not only at the boot that met it.
    room.reopen(start=False)
    assert problems(room) == [(ONE, Problem.DAMAGED)]


def test_a_damaged_record_without_an_agent_is_no_orphan(room: Room) -> None:
    room.put_session(ONE, [], state=None)
    room.write(record_of(ONE), b"damaged")

    recovered(room)

    assert problems(room) == [(ONE, Problem.DAMAGED)]
    assert room.exists(f"agents/{ONE}")


def test_children_stand_below_their_parents_whatever_their_ids(room: Room) -> None:
    room.put_session(ONE, born(BOB, "Bob", parent=TWO))
    room.put_session(TWO, born(ADA, "Ada"))

    recovered(room)

    shown = [(agent.name, agent.parent_id) for agent in room.runtime.view().agents]
    assert shown == [("Ada", None), ("Bob", ADA)]


def test_a_child_whose_parent_is_not_there_is_told_and_counts_as_a_root(room: Room) -> None:
    room.put_session(ONE, born(BOB, "Bob", parent=TWO))

    recovered(room)

    assert room.runtime.report.detached == [ONE]
    assert room.named("Bob").parent_id is None


def test_a_log_without_its_first_line_is_run_by_whom_the_record_names(room: Room) -> None:
    room.put_session(ONE, born(ADA, "Ada")[1:])

    recovered(room)

    session = room.agent(ADA).history.session
    assert session is not None
    assert (session.provider, session.model, session.system_prompt) == ("scripted", "", "")


def test_an_agent_of_whom_nothing_says_who_runs_it_is_stopped(room: Room) -> None:
    room.put_session(ONE, born(ADA, "Ada")[1:], state=None)

    recovered(room)

    assert room.named("Ada").stopped == "neither its log nor its record says which provider it has"
    assert room.named("Ada").alive


# -- 6 -----------------------------------------------------------------------------------


def test_a_message_that_a_turn_promised_is_delivered(room: Room) -> None:
    # F-5, and Y-open-3: B replied, A never got it.
    turn = completed("t", outbox=[message("x", ADA, "USER", payload="hello")])
    room.put_session(ONE, [*born(ADA, "Ada"), turn])

    recovered(room)

    assert room.to_user() == [("text", "hello")]
    assert room.runtime.report.redone == 1
    room.reopen(start=False)
    assert room.to_user() == [("text", "hello")]
    assert room.runtime.report.redone == 0


def test_a_message_that_is_there_already_is_not_delivered_twice(room: Room) -> None:
    turn = completed("t", outbox=[message("x", ADA, BOB)])
    room.put_session(ONE, [*born(ADA, "Ada"), turn])
    room.put_session(TWO, [*born(BOB, "Bob", ONE), enqueued("x", ADA, BOB)])

    recovered(room)

    assert room.events(TWO).count("message.enqueued") == 1


def test_a_message_to_an_agent_that_has_ended_comes_back(room: Room) -> None:
    turn = completed("t", outbox=[message("x", ADA, BOB)])
    room.put_session(ONE, [*born(ADA, "Ada"), turn])
    room.put_session(TWO, [*born(BOB, "Bob", ONE), END], SessionState.TERMINATED)

    recovered(room)

    assert room.named("Ada").pending == ("x.error",)


def test_a_message_to_a_session_that_cannot_be_read_waits_for_a_later_boot(room: Room) -> None:
    turn = completed("t", outbox=[message("x", ADA, BOB)])
    room.put_session(ONE, [*born(ADA, "Ada"), turn])
    room.put_session(TWO, born(BOB, "Bob", ONE))
    room.files.fail("pread", log_of(TWO), errno.EIO)
    recovered(room)
    assert room.named("Ada").pending == ()

    room.reopen(start=False)

    assert room.named("Bob").pending == ("x",)


@pytest.mark.parametrize("left", ["nothing", "a record", "a first line", "both lines"])
@pytest.mark.parametrize("framing", list(Framing))
def test_a_child_that_a_turn_promised_is_made_of_whatever_is_left(
    left: str, framing: Framing
) -> None:
    # R16, F-2 and F-3: the crash came somewhere in the birth.
    room = Room(Options(framing=framing))
    room.put_session(ONE, [*born(ADA, "Ada"), completed("t", spawned=[spawned(BOB, TWO, "Bob")])])
    if left != "nothing":
        lines = {"a record": 0, "a first line": 1, "both lines": 2}[left]
        room.put_session(TWO, born(BOB, "Bob", ONE)[:lines])

    recovered(room)

    assert room.events(TWO) == ["session.created", "agent.created", "message.enqueued"]
    assert room.named("Bob").parent_id == ADA
    assert room.named("Bob").pending == ("boot",)
    assert state(room, TWO) == "SUSPENDED"
    assert room.runtime.report.orphans == []


def test_a_child_that_has_its_bootstrap_already_is_not_given_another(room: Room) -> None:
    # Damage took the line between.
    room.put_session(ONE, [*born(ADA, "Ada"), completed("t", spawned=[spawned(BOB, TWO, "Bob")])])
    room.put_session(TWO, [born(BOB, "Bob")[0], enqueued("boot", ADA, BOB, "bootstrap")])

    recovered(room)

    assert room.events(TWO) == ["session.created", "message.enqueued", "agent.created"]
    assert room.named("Bob").pending == ("boot",)


def test_a_promised_child_whose_session_cannot_be_read_is_not_made_twice(room: Room) -> None:
    room.put_session(ONE, [*born(ADA, "Ada"), completed("t", spawned=[spawned(BOB, TWO, "Bob")])])
    room.put_session(TWO, born(BOB, "Bob", ONE))
    room.files.fail("pread", log_of(TWO), errno.EIO)

    recovered(room)

    assert [agent.name for agent in room.runtime.view().agents] == ["Ada"]
    assert room.events(TWO) == ["session.created", "agent.created"]


def test_a_promised_child_that_has_ended_stays_ended(room: Room) -> None:
    room.put_session(ONE, [*born(ADA, "Ada"), completed("t", spawned=[spawned(BOB, TWO, "Bob")])])
    room.put_session(TWO, [*born(BOB, "Bob", ONE), END], SessionState.TERMINATED)

    recovered(room)

    assert not room.named("Bob").alive
    assert room.events(TWO)[-1] == "agent.terminated"


def test_a_control_that_a_turn_promised_reaches_the_child(room: Room) -> None:
    control: JsonObject = {"control_id": "c", "target": BOB, "op": "gate"}
    room.put_session(ONE, [*born(ADA, "Ada"), completed("t", controls=[control])])
    room.put_session(TWO, born(BOB, "Bob", ONE))

    recovered(room)

    assert room.named("Bob").gated
    assert room.lines(TWO)[-1].data == {"control_id": "c", "by": ADA}


def test_a_completion_is_finished(room: Room) -> None:
    # R12 and F-7: the turn's line is the end; what is missing follows.
    turn = completed(
        "t", terminate=True, returned=["m"], outbox=[message("r", ADA, "USER", "response", 42)]
    )
    room.put_session(ONE, [*born(ADA, "Ada"), enqueued("m", "USER", ADA), turn])

    recovered(room)

    assert room.to_user() == [
        ("response", 42),
        ("error", {"reason": "the recipient has ended", "message_id": "m"}),
    ]
    assert room.runtime.report.ended == [ADA]
    assert room.events(ONE)[-1] == "agent.terminated"
    assert state(room, ONE) == "TERMINATED"
    room.reopen(start=False)
    assert room.runtime.report.ended == []
    assert len(room.to_user()) == 2


def test_a_subscriber_is_told_of_an_end_that_came_before_the_crash(room: Room) -> None:
    turn = completed("t", subscribed=[{"subscription_id": "s", "target": BOB}])
    room.put_session(ONE, [*born(ADA, "Ada"), turn])
    room.put_session(TWO, [*born(BOB, "Bob", ONE), END], SessionState.TERMINATED)

    recovered(room)

    assert room.named("Ada").pending == ("s.notice",)


def test_a_record_that_is_missing_is_written_from_the_log(room: Room) -> None:
    room.put_session(ONE, born(ADA, "Ada", identity="c7"), state=None)

    recovered(room)

    assert state(room, ONE) == "SUSPENDED"
    kept = room.agent(ADA).record
    assert kept is not None
    assert ProviderState.of_encoded(kept.provider_state_blob) == ProviderState("c7")
    assert problems(room) == [(ONE, Problem.NO_RECORD)]
    room.reopen(start=False)
    assert problems(room) == []


def test_a_record_that_is_damaged_is_put_aside_and_written_from_the_log(room: Room) -> None:
    room.put_session(ONE, born(ADA, "Ada"))
    room.write(record_of(ONE), b"damaged")

    recovered(room)

    (problem,) = room.runtime.report.problems
    assert (problem.session_id, problem.problem) == (ONE, Problem.DAMAGED)
    assert room.read(problem.quarantine) == b"damaged"
    assert state(room, ONE) == "SUSPENDED"
    assert room.named("Ada").alive


def test_the_missing_record_of_an_agent_that_has_ended_says_so(room: Room) -> None:
    room.put_session(ONE, [*born(ADA, "Ada"), END], state=None)

    recovered(room)

    assert state(room, ONE) == "TERMINATED"


def test_a_record_of_a_newer_format_is_left_as_it_is_and_the_agent_is_served(room: Room) -> None:
    room.put_session(ONE, born(ADA, "Ada"))
    newer = seal({"v": 2}) + b"\n"
    room.write(record_of(ONE), newer)

    room.open()
    room.say(ADA, "hello")

    assert room.read(record_of(ONE)) == newer
    assert len(room.named("Ada").turns) == 1
    room.calm()


def test_a_record_that_the_disk_refuses_is_told_and_written_at_the_next_boot(room: Room) -> None:
    room.put_session(ONE, born(ADA, "Ada"), state=None)
    room.files.fail("replace", record_of(ONE), errno.EIO)

    recovered(room)
    assert problems(room) == [(ONE, Problem.FAILED)]
    room.reopen(start=False)

    assert state(room, ONE) == "SUSPENDED"


def test_a_promise_that_the_disk_refuses_is_told_and_kept_later(room: Room) -> None:
    turn = completed("t", outbox=[message("x", ADA, "USER", payload="hello")])
    room.put_session(ONE, [*born(ADA, "Ada"), turn])
    room.files.fail("append", "user/events.jsonl", errno.ENOSPC)

    recovered(room)

    assert room.runtime.report.unkept == 1
    assert room.to_user() == []
    room.settle(1)
    assert room.to_user() == [("text", "hello")]


def test_a_boot_that_fails_lets_nobody_write_after_it(room: Room) -> None:
    turn = completed(
        "t", spawned=[spawned(BOB, TWO, "Bob")], outbox=[message("x", ADA, "USER", payload="hello")]
    )
    room.put_session(ONE, [*born(ADA, "Ada"), enqueued("m", "USER", ADA), started("s", "m"), turn])
    # The promise to USER is refused and would be kept later; then the boot itself breaks off.
    room.files.fail("append", "user/events.jsonl", errno.ENOSPC)
    room.provider.fail("identities", error=KeyError("a bug of the provider"))
    with pytest.raises(KeyError):
        recovered(room)
    before = room.read("user/events.jsonl")

    room.settle(60)

    assert room.read("user/events.jsonl") == before == b""
    assert recovered(room).report.sessions == 2
    assert room.to_user() == [("text", "hello")]


# -- 7 and 8 -----------------------------------------------------------------------------


def test_a_root_whose_database_schedules_work_is_refused_and_its_lock_is_free(room: Room) -> None:
    room.put_session(ONE, born(ADA, "Ada"))
    room.write("state.db", b"")
    with pytest.raises(NewerFormat, match="it schedules work that this version cannot do"):
        recovered(room)
    room.host.files.unlink("state.db")

    assert recovered(room).report.sessions == 1


def test_a_session_that_was_active_is_suspended(room: Room) -> None:
    blob = ProviderState("c1", 0, b"blob").encoded()
    room.put_session(ONE, born(ADA, "Ada"), SessionState.ACTIVE, blob)

    recovered(room)

    assert room.runtime.report.suspended == [ONE]
    assert state(room, ONE) == "SUSPENDED"
    kept = room.agent(ADA).record
    assert kept is not None
    assert kept.provider_state_blob == blob


def test_the_record_keeps_no_blob_that_is_older_than_its_log(room: Room) -> None:
    # Hole R15, in the record: the blob is of no turn, the log has one.
    room.provider.kept = ["c1"]
    blob = ProviderState("c1", 0, b"old").encoded()
    room.put_session(ONE, [*born(ADA, "Ada"), completed("t")], SessionState.SUSPENDED, blob)
    room.open()

    room.say(ADA, "hello")

    kept = room.agent(ADA).record
    assert kept is not None
    assert ProviderState.of_encoded(kept.provider_state_blob) == ProviderState("c1")
    assert room.provider.blobs == [b""]


def test_a_record_that_cannot_be_brought_to_suspended_is_told(room: Room) -> None:
    room.put_session(ONE, born(ADA, "Ada"), SessionState.ACTIVE)
    room.files.fail("replace", record_of(ONE), errno.EIO)

    recovered(room)

    assert problems(room) == [(ONE, Problem.FAILED)]
    assert room.runtime.report.suspended == []


# -- 9 and 10 ----------------------------------------------------------------------------


def test_an_agent_whose_turns_were_lost_is_told_once(room: Room) -> None:
    lines = [*born(ADA, "Ada"), enqueued("m", "USER", ADA), started("t1", "m"), started("t2", "m")]
    room.put_session(ONE, lines)
    room.world.clock.advance(5_000_000_000)

    recovered(room)

    assert room.runtime.report.lost_turns == {ADA: ("t1", "t2")}
    told = room.lines(ONE)[-1].data
    assert (told["message_id"], told["sender"], told["kind"]) == ("t2.lost", "RUNTIME", "system")
    payload = told["payload"]
    assert isinstance(payload, dict)
    assert 5_000_000_000 <= int(str(payload.pop("downtime_ns"))) < 6_000_000_000
    assert payload == {"notice": "recovery", "v": 1, "lost_turns": ["t1", "t2"], "pending": 1}
    room.reopen(start=False)
    assert room.runtime.report.lost_turns == {}
    assert room.events(ONE).count("message.enqueued") == 2


def test_an_agent_that_has_ended_is_told_of_nothing(room: Room) -> None:
    room.put_session(ONE, [*born(ADA, "Ada"), started("t"), END], SessionState.TERMINATED)

    recovered(room)

    assert room.runtime.report.lost_turns == {}


def test_a_clock_that_was_set_back_makes_no_downtime(room: Room) -> None:
    room.put_session(ONE, [*born(ADA, "Ada"), started("t")])
    room.world.clock.step_wall(-3600 * 10**9)

    recovered(room)

    payload = room.lines(ONE)[-1].data["payload"]
    assert isinstance(payload, dict)
    assert payload["downtime_ns"] == 0


@pytest.mark.parametrize(
    ("resume", "shown"),
    [(Resume.ALL, ["to Ada", "to Bob"]), (Resume.ROOTS, ["to Ada"]), (Resume.NONE, [])],
)
def test_a_boot_wakes_whom_the_policy_names(resume: Resume, shown: list[str]) -> None:
    room = Room(Options(resume=resume))
    room.put_session(ONE, [*born(ADA, "Ada"), enqueued("m1", "USER", ADA, payload="to Ada")])
    room.put_session(TWO, [*born(BOB, "Bob", ONE), enqueued("m2", "USER", BOB, payload="to Bob")])

    room.open()
    room.settle()

    assert [room.shown(turn)[0][1] for turn in range(len(room.provider.prompts))] == shown


def test_an_agent_that_was_not_woken_runs_at_the_next_message() -> None:
    room = Room(Options(resume=Resume.NONE))
    room.put_session(ONE, [*born(ADA, "Ada"), enqueued("m1", "USER", ADA, payload="old")])
    room.open()

    room.say(ADA, "new")

    assert room.shown() == [("text", "old"), ("text", "new")]


def test_the_report_counts_what_there_is(room: Room) -> None:
    room.put_session(ONE, born(ADA, "Ada"))
    room.put_session(TWO, [*born(BOB, "Bob", ONE), END], SessionState.TERMINATED)
    room.put_session(THREE, born(EVE, "Eve", ONE))

    report = recovered(room).report

    assert (report.epoch, report.sessions, report.living, report.lines) == (2, 3, 2, 7)


def test_conversations_that_no_session_knows_are_listed(room: Room) -> None:
    # F-1: the provider has created it, and nothing of it is on the disk.
    room.put_session(ONE, born(ADA, "Ada", identity="known from the log"))
    blob = ProviderState("known from the record").encoded()
    room.put_session(TWO, born(BOB, "Bob"), SessionState.SUSPENDED, blob)
    room.provider.kept = ["known from the log", "known from the record", "leaked"]

    assert recovered(room).report.leaks == ["scripted: leaked"]


def test_a_provider_that_does_not_say_what_it_keeps_hinders_nobody(room: Room) -> None:
    room.provider.fail("identities", error=ProviderError("ask later"))

    assert recovered(room).report.leaks == []


def test_every_acknowledged_fact_is_there_after_a_kill(room: Room) -> None:
    room.open()
    ada = room.create("Ada")
    room.say(ada, play(
        ("spawn_agent", {"name": "Bob"}), ("set_agent_metadata", {"key": "k", "value": 1}),
        ("send_message", {"to": "USER", "payload": "hello"}),
    ))  # fmt: skip
    before = room.runtime.view()

    room.reopen(start=False)

    assert room.runtime.view() == before
    assert room.runtime.report.lost_turns == {}
