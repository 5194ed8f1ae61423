"""The seven injection points, each crashed at its exact moment.

Each is crashed by a kill and by power cuts with every survivor set of the moment, in both
framings, with executions recorded and not. The expected results are written out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

import pytest

from faults.crash_point import Phase
from sim.disk.cache.operation import Operation
from system.agents.turn_recorder import RecordingOptions
from system.ports import JsonObject
from system.runtime import Options
from system.storage.framing import Framing
from tests.crash_tests.stage import (
    Act,
    Moment,
    Moments,
    Stage,
    barrier_after,
    durable,
    renames,
    writes,
)

MESSAGE = "5" * 32

RECORDED = {"": None, " recorded": RecordingOptions()}

pytestmark = pytest.mark.parametrize(
    "options",
    [
        pytest.param(Options(framing=framing, recording=recording), id=framing.value + suffix)
        for framing in Framing
        for suffix, recording in RECORDED.items()
    ],
)


def nothing(_: Stage) -> None:
    """Prepare nothing."""


def two_agents(stage: Stage) -> None:
    """Create Ada and her child Bob; Bob completes his first turn."""
    bob: JsonObject = {"name": "Bob", "instructions": "wait"}
    stage.say(stage.create(), ["spawn_agent", bob])


def before(operation: int) -> Moment:
    return Moment(operation, Phase.BEFORE)


def after(operation: int) -> Moment:
    return Moment(operation, Phase.AFTER)


def crashes(act: Act, options: Options) -> Iterator[Stage]:
    """Yield the stages of an act, which are at least two: a kill and a power cut."""
    crashed = 0
    for stage in act.crashes(options):
        crashed += 1
        yield stage
    assert crashed >= 2, "no moment: nothing was crashed"


# -- the creation of an agent -------------------------------------------------------------


def without_a_record(operations: Sequence[Operation]) -> Sequence[Moment]:
    """From the provider's answer until the record is renamed."""
    return [before(number) for number in range(1, renames(operations, "session.json") + 1)]


def with_a_record_only(operations: Sequence[Operation]) -> Sequence[Moment]:
    """From the barrier on the record's directory until the lines are written."""
    recorded = barrier_after(operations, renames(operations, "session.json"))
    lines = writes(operations, "agent.created")
    return [after(number) for number in range(recorded, lines)]


def created_and_not_acknowledged(operations: Sequence[Operation]) -> Sequence[Moment]:
    """From the barrier on the lines until the call returns."""
    created = durable(operations, "agent.created")
    return [after(number) for number in range(created, len(operations) + 1)]


def test_crash_after_create_and_before_the_record_leaves_nothing_but_a_leak_that_is_listed(
    options: Options,
) -> None:
    for stage in crashes(Act(nothing, Stage.create, without_a_record), options):
        assert stage.runtime.view().agents == ()
        assert stage.sessions() == []
        assert stage.runtime.report.leaks == ["agentic: conversation-1"]
        assert stage.runtime.report.problems == []
        stage.world.kill()


def test_crash_after_the_record_and_before_agent_created_leaves_an_orphan_that_is_removed(
    options: Options,
) -> None:
    for stage in crashes(Act(nothing, Stage.create, with_a_record_only), options):
        assert stage.runtime.view().agents == ()
        assert len(stage.runtime.report.orphans) == 1
        assert stage.sessions() == []
        assert stage.runtime.report.leaks == ["agentic: conversation-1"]

        ada = stage.create("Ada")

        (agent,) = stage.runtime.view().agents
        assert (agent.agent_id, agent.name) == (ada, "Ada")
        assert stage.sessions() == [agent.session_id]
        stage.world.kill()


def test_crash_after_agent_created_leaves_the_agent_and_the_same_request_makes_no_duplicate(
    options: Options,
) -> None:
    for stage in crashes(Act(nothing, Stage.create, created_and_not_acknowledged), options):
        (found,) = stage.runtime.view().agents
        assert (found.name, found.alive, found.pending) == ("Ada", True, ())
        assert stage.runtime.report.leaks == []

        assert stage.create("Ada") == found.agent_id

        assert stage.runtime.view().agents == (found,)
        assert stage.sessions() == [found.session_id]
        stage.world.kill()


# -- a turn -------------------------------------------------------------------------------


def answered_and_not_logged(operations: Sequence[Operation]) -> Sequence[Moment]:
    return [before(writes(operations, "turn.complete"))]


def logged_and_not_dispatched(operations: Sequence[Operation]) -> Sequence[Moment]:
    return [after(durable(operations, "turn.complete"))]


def enqueued_and_not_delivered(operations: Sequence[Operation]) -> Sequence[Moment]:
    enqueued = durable(operations, "message.enqueued")
    return [after(number) for number in range(enqueued, writes(operations, "turn.start") + 1)]


def test_crash_before_the_answer_is_logged_loses_the_turn_and_keeps_its_messages(
    options: Options,
) -> None:
    def say(stage: Stage) -> None:
        hello: JsonObject = {"to": "USER", "payload": "hello"}
        stage.say(stage.named("Ada").agent_id, ["send_message", hello], message_id=MESSAGE)

    for stage in crashes(Act(Stage.create, say, answered_and_not_logged), options):
        ada = stage.named("Ada")
        assert (ada.turns, ada.pending[0]) == (0, MESSAGE)
        assert stage.runtime.view().user == ()
        # The service remembers a turn that was not committed.
        (lost,) = stage.service.history("conversation-1")
        assert MESSAGE in lost.prompt

        stage.start()
        stage.settle()

        ada = stage.named("Ada")
        assert (ada.turns, ada.pending) == (1, ())
        assert [message.payload for message in stage.runtime.view().user] == ["hello"]
        repeated, again = stage.service.history("conversation-1")
        assert repeated == lost
        assert MESSAGE in again.prompt
        stage.world.kill()


def test_crash_after_the_answer_is_logged_and_before_the_reply_is_there_delivers_it_by_redo(
    options: Options,
) -> None:
    def ask(stage: Stage) -> None:
        reply: JsonObject = {"to": "Ada", "payload": "the answer"}
        stage.say(stage.named("Bob").agent_id, ["send_message", reply], message_id=MESSAGE)

    for stage in crashes(Act(two_agents, ask, logged_and_not_dispatched), options):
        ada, bob = stage.named("Ada"), stage.named("Bob")
        assert (bob.turns, bob.pending) == (2, ())
        assert (ada.turns, len(ada.pending)) == (1, 1)
        (sent,) = stage.data(bob.session_id, "turn.complete")[-1]["outbox"]
        assert stage.data(ada.session_id, "message.enqueued")[-1] == sent
        assert stage.runtime.report.redone == 1

        stage.start()
        stage.settle()

        assert (stage.named("Ada").turns, stage.named("Ada").pending) == (2, ())
        assert stage.events(ada.session_id).count("message.enqueued") == 2
        stage.world.kill()


def test_crash_after_enqueueing_and_before_delivery_presents_the_message_again(
    options: Options,
) -> None:
    def say(stage: Stage) -> None:
        stage.say(stage.named("Ada").agent_id, message_id=MESSAGE)

    for stage in crashes(Act(Stage.create, say, enqueued_and_not_delivered), options):
        ada = stage.named("Ada")
        assert (ada.turns, ada.pending[0]) == (0, MESSAGE)

        stage.start()
        stage.settle()

        ada = stage.named("Ada")
        (turn,) = stage.data(ada.session_id, "turn.complete")
        assert turn["presented"][0] == MESSAGE
        assert (ada.last_turns, ada.pending) == ((turn["turn_id"],), ())
        stage.world.kill()


# -- the end of an agent -----------------------------------------------------------------


def ended_and_not_retired(operations: Sequence[Operation]) -> Sequence[Moment]:
    """From the barrier on the line until the record is replaced."""
    ended = durable(operations, "agent.terminated")
    return [after(number) for number in range(ended, renames(operations, "session.json"))]


def completed_and_not_retired(operations: Sequence[Operation]) -> Sequence[Moment]:
    completed = durable(operations, "turn.complete")
    return [after(number) for number in range(completed, renames(operations, "session.json"))]


def terminate_bob(stage: Stage) -> None:
    stage.run(stage.runtime.terminate(stage.named("Bob").agent_id))


def complete_bob(stage: Stage) -> None:
    stage.say(stage.named("Bob").agent_id, ["complete", {"result": 42}])


@pytest.mark.parametrize(
    ("end", "moments", "responses"),
    [(terminate_bob, ended_and_not_retired, []), (complete_bob, completed_and_not_retired, [42])],
    ids=["by the operator", "by completion"],
)
def test_crash_after_the_end_is_logged_leaves_no_agent_and_no_dangling_child(
    options: Options, end: Callable[[Stage], None], moments: Moments, responses: list[int]
) -> None:
    for stage in crashes(Act(two_agents, end, moments), options):
        ada, bob = stage.named("Ada"), stage.named("Bob")
        assert (ada.alive, bob.alive) == (True, False)
        enqueued = stage.data(ada.session_id, "message.enqueued")
        assert [data["payload"] for data in enqueued if data["kind"] == "response"] == responses
        assert stage.events(bob.session_id)[-1] == "agent.terminated"
        assert stage.events(bob.session_id).count("agent.terminated") == 1
        record = stage.world.disk.snapshot().files()[f"/agents/{bob.session_id}/session.json"]
        assert json.loads(record)["state"] == "TERMINATED"

        stage.start()
        stage.settle()

        # A parent with a living child could not be ended.
        stage.run(stage.runtime.terminate(ada.agent_id))
        assert not any(agent.alive for agent in stage.runtime.view().agents)
        stage.world.kill()
