"""A conversation is taken up again, from its blob or from the log."""

from __future__ import annotations

import errno

from system.agents.provider_state import ProviderState
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import Room, record_of
from tests.unit.system.agents.slots import state, three_roots


def test_a_restored_conversation_is_given_its_blob_and_its_history() -> None:
    room, (_, bob, _) = three_roots(slots=3)
    room.say(bob, script(say="one"))
    room.run(room.runtime.suspend(bob))

    room.say(bob, script(say="two"))

    assert room.provider.blobs == [b"blob of c2"]
    (exchange,) = room.provider.openings[-1].history
    assert (exchange.prompt, exchange.response) == (room.provider.prompts[0], "one")
    assert room.events(room.session(bob))[-4] == "session.restored"


def test_a_blob_that_is_older_than_the_log_is_not_used() -> None:
    # Planted bug R15: suspended after one turn, restored, a second turn, a crash.
    room, (_, bob, _) = three_roots(slots=3)
    room.say(bob, "one")
    room.run(room.runtime.suspend(bob))
    room.say(bob, "two")
    room.provider.blobs.clear()
    room.reopen()

    room.say(bob, "three")

    assert room.provider.blobs == [b""]
    assert len(room.provider.openings[-1].history) == 2


def test_a_conversation_that_is_lost_is_created_from_the_log() -> None:
    room, (_, bob, _) = three_roots(slots=3)
    room.say(bob, script(say="one"))
    room.run(room.runtime.suspend(bob))
    room.provider.kept.remove("c2")

    room.say(bob, "two")

    assert len(room.provider.openings[-1].history) == 1
    restored = [
        line.data["identity"]
        for line in room.lines(room.session(bob))
        if line.event == "session.restored"
    ]
    assert restored == ["c4"]
    kept = room.agent(bob).log.record
    assert kept is not None
    assert ProviderState.of_encoded(kept.provider_state_blob) == ProviderState("c4")
    room.check_no_failures()


def test_the_identity_of_a_conversation_is_durable_before_anything_is_said_to_it() -> None:
    # Planted bug R17: it was kept at the first eviction only.
    room = Room()
    room.open()
    ada = room.create("Ada")
    room.say(ada, script(("spawn_agent", {"name": "Kim"})))
    kim = room.named("Kim").agent_id
    room.reopen(start=False)

    kept = room.agent(kim).log.record
    assert kept is not None
    assert ProviderState.of_encoded(kept.provider_state_blob).identity == "c2"
    assert room.agent(kim).history.identity == "c2"


def test_a_conversation_whose_record_cannot_be_written_is_closed_again() -> None:
    room, (_, bob, _) = three_roots(slots=3)
    room.run(room.runtime.suspend(bob))
    room.files.fail("replace", record_of(room.session(bob)), errno.ENOSPC)
    room.provider.asked.clear()
    room.say(bob, "hello")
    assert room.provider.asked == ["restore c2", "stop c2"]
    assert state(room, bob) == "SUSPENDED"

    room.settle(1)

    assert room.named("Bob").turns == 1
    room.check_no_failures()
