"""The shadow of the runtime: acknowledged ⊆ recovered ⊆ acknowledged ∪ in flight."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from oracles.runtime.shadow_runtime import ShadowRuntime, check_idempotent
from oracles.runtime.violations import MisroutedMessage
from oracles.violation import (
    Duplicated,
    LostAck,
    NotIdempotent,
    OutOfSync,
    Phantom,
    Reordered,
    Resurrected,
    SilentEmpty,
    Starved,
    TornRecord,
)
from tests.unit.oracles.runtime.story import NOW_NS, Story, hexed, message
from tests.unit.oracles.runtime.team import run_gated, team
from tests.unit.oracles.runtime.view import view_of

BOSS, IDLE = hexed("a-boss"), hexed("a-idle")

Operation = tuple[
    Callable[[ShadowRuntime], object],
    Callable[[ShadowRuntime], object],
    Callable[[ShadowRuntime], object],
    Callable[[Story], object],
]

OPERATIONS: dict[str, Operation] = {
    "create": (
        lambda s: s.operator.creates.begin("r-new", "new", "be new", "scripted", "m"),
        lambda s: s.operator.acknowledge_create("r-new", hexed("a-new")),
        lambda s: s.operator.creates.refuse("r-new"),
        lambda story: story.create("new", request="r-new"),
    ),
    "send": (
        lambda s: s.operator.sends.begin("m9", BOSS, "hello"),
        lambda s: s.operator.sends.acknowledge("m9"),
        lambda s: s.operator.sends.refuse("m9"),
        lambda story: story.send("m9", "boss", "hello"),
    ),
    "terminate": (
        lambda s: s.operator.terminations.begin(IDLE),
        lambda s: s.operator.terminations.acknowledge(IDLE),
        lambda s: s.operator.terminations.refuse(IDLE),
        lambda story: story.terminate("idle", "boot-idle"),
    ),
    "acknowledge": (
        lambda s: s.operator.deliveries.begin("m6"),
        lambda s: s.operator.deliveries.acknowledge("m6"),
        lambda s: s.operator.deliveries.refuse("m6"),
        lambda story: story.add("user", "message.delivered", message_id="m6"),
    ),
}
each_operation = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())


def settle(shadow: ShadowRuntime, story: Story) -> bool:
    return shadow.settle(shadow.read(story.files()), NOW_NS)


@each_operation
def test_a_call_in_flight_that_took_effect_is_durable(operation: Operation) -> None:
    begin, _, _, happen = operation
    before, after = team(), team()
    happen(after)
    shadow = before.settle()
    begin(shadow)
    assert settle(shadow, after) is True
    with pytest.raises(LostAck):
        settle(shadow, before)


@each_operation
def test_a_call_in_flight_without_effect_must_not_return(
    operation: Operation,
) -> None:
    begin, _, _, happen = operation
    before, after = team(), team()
    happen(after)
    shadow = before.settle()
    begin(shadow)
    assert settle(shadow, before) is False
    with pytest.raises(Resurrected):
        settle(shadow, after)


@each_operation
def test_an_acknowledged_call_is_durable(operation: Operation) -> None:
    begin, acknowledge, _, _ = operation
    shadow = team().settle()
    begin(shadow)
    acknowledge(shadow)
    with pytest.raises(LostAck):
        shadow.check(shadow.read(team().files()))


@each_operation
def test_a_refused_call_has_no_effect(operation: Operation) -> None:
    begin, _, refuse, happen = operation
    story = team()
    shadow = story.settle()
    begin(shadow)
    refuse(shadow)
    shadow.check(shadow.read(story.files()))
    happen(story)
    with pytest.raises(Resurrected):
        shadow.check(shadow.read(story.files()))


@each_operation
def test_an_effect_without_a_call_is_a_phantom(operation: Operation) -> None:
    story = team()
    shadow = story.settle()
    operation[3](story)
    with pytest.raises(Phantom):
        shadow.check(shadow.read(story.files()))


@each_operation
def test_a_lost_call_may_be_repeated(operation: Operation) -> None:
    begin, acknowledge, _, happen = operation
    story = team()
    shadow = story.settle()
    begin(shadow)
    settle(shadow, story)
    begin(shadow)
    acknowledge(shadow)
    happen(story)
    settle(shadow, story)


def test_a_refusal_of_a_second_try_says_nothing_about_the_first() -> None:
    story = team()
    shadow = story.settle()
    shadow.operator.sends.begin("m9", BOSS, "hello")
    shadow.operator.sends.begin("m9", BOSS, "hello")
    shadow.operator.sends.refuse("m9")
    story.send("m9", "boss", "hello")
    assert settle(shadow, story) is True


def test_an_agent_that_completed_may_not_be_terminated() -> None:
    shadow = team().shadow()
    shadow.operator.terminations.begin(hexed("a-worker"))
    shadow.operator.terminations.refuse(hexed("a-worker"))
    settle(shadow, team())


def test_one_request_makes_one_agent() -> None:
    shadow = team().settle()
    with pytest.raises(Duplicated):
        shadow.operator.acknowledge_create("r-boss", hexed("a-other"))
    story = team()
    story.create("other", request="r-boss")
    with pytest.raises(Duplicated):
        shadow.check(story.snapshot())


def test_the_operators_message_is_as_it_was_sent() -> None:
    story = team()
    story.at("boss", "message.enqueued", 1)["payload"] = "later"
    with pytest.raises(TornRecord):
        story.settle()


def test_a_root_is_as_it_was_asked_for() -> None:
    story = team()
    story.at("boss", "agent.created")["instructions"] = "be kind"
    with pytest.raises(TornRecord):
        story.settle()


def test_the_operators_message_goes_where_it_was_sent() -> None:
    story = team()
    story.add("idle", "message.enqueued", **message("m9", "USER", IDLE, "text", 0))
    shadow = story.shadow()
    shadow.operator.sends.begin("m9", BOSS, 0)
    with pytest.raises(MisroutedMessage):
        settle(shadow, story)


@pytest.mark.parametrize("together", [True, False], ids=["together", "one after another"])
def test_the_operators_messages_keep_their_order(together: bool) -> None:
    story = team()
    shadow = story.shadow()
    for key in ("m8", "m9"):
        shadow.operator.sends.begin(key, BOSS, 0)
        if not together:
            shadow.operator.sends.acknowledge(key)
    for key in ("m9", "m8"):
        story.add("boss", "message.enqueued", **message(key, "USER", BOSS, "text", 0))
    if together:
        settle(shadow, story)
    else:
        with pytest.raises(Reordered):
            settle(shadow, story)


def test_a_root_that_lost_all_its_agents_says_so() -> None:
    with pytest.raises(SilentEmpty):
        settle(team().shadow(), Story())
    with pytest.raises(SilentEmpty):
        settle(team().settle(), Story())


def test_a_durable_line_keeps_its_bytes() -> None:
    story = team()
    shadow = story.settle()
    story.at("boss", "message.delivered")["message_id"] = "m2"
    with pytest.raises(LostAck):
        shadow.check(shadow.read(story.files()))


def test_durable_lines_keep_their_order() -> None:
    story = team()
    shadow = story.settle()
    path = f"agents/{hexed('boss')}/events.jsonl"
    files = story.files()
    lines = files[path].splitlines(keepends=True)
    with pytest.raises(Reordered):
        shadow._check_durable(shadow.read(files | {path: b"".join([lines[-1], *lines[:-1]])}))


def test_turns_and_agents_that_a_view_showed_are_durable() -> None:
    story = team()
    story.turn("boss", "t4", "r1")
    shown = view_of(story.snapshot())
    shadow = team().shadow()
    shadow.observe(shown)
    story.drop("boss", "turn.complete", 2)
    with pytest.raises(LostAck, match="turns that a view showed"):
        shadow._check_shown(story.snapshot())
    shadow = team().shadow()
    shadow.observe(shown)
    with pytest.raises(LostAck, match="an agent that a view showed"):
        shadow._check_shown(Story().snapshot())


def test_a_message_that_a_view_has_shown_is_durable() -> None:
    story = team()
    shadow = story.shadow()
    shadow.observe(view_of(story.snapshot()))
    story.drop("boss", "message.enqueued", 4)
    with pytest.raises(LostAck, match="a message that a view showed"):
        settle(shadow, story)


def test_a_view_takes_nothing_back() -> None:
    story = team()
    shadow = story.shadow()
    shadow.observe(view_of(story.snapshot()))
    with pytest.raises(LostAck):
        shadow.observe(view_of(story.snapshot(), boss={"turns": 1, "last_turns": ("t3",)}))
    with pytest.raises(LostAck):
        shadow.observe(view_of(story.snapshot(), worker={"alive": True}))


def test_a_damaged_session_is_excused_and_the_others_are_not() -> None:
    story = team()
    shadow = story.settle()
    files = story.files()
    path = f"agents/{hexed('worker')}/events.jsonl"
    shadow.excuse(hexed("worker"))
    damaged = {**files, path: files[path][:700]}
    shadow.settle(shadow.read(damaged))
    gone = {name: data for name, data in files.items() if hexed("worker") not in name}
    shadow.settle(shadow.read(gone))
    del gone[f"agents/{hexed('idle')}/events.jsonl"]
    with pytest.raises(LostAck):
        shadow.settle(shadow.read(gone))


def test_calls_on_an_unrecovered_session_stay_in_flight() -> None:
    story = team()
    shadow = story.settle()
    shadow.operator.sends.begin("m9", BOSS, 0)
    assert shadow.settle(shadow.read(story.files()), unrecovered=[hexed("boss")]) is False
    story.add("boss", "message.enqueued", **message("m9", "USER", BOSS, "text", 0))
    assert settle(shadow, story) is True


def test_an_idle_view_equals_the_state_in_the_logs() -> None:
    story = team()
    shadow = story.settle()
    snapshot = shadow.read(story.files())
    shadow.check_view(view_of(snapshot), snapshot, idle=True)
    changes: list[Mapping[str, object]] = [
        {"name": "chef"},
        {"parent_id": IDLE},
        {"alive": False},
        {"turns": 1, "last_turns": ("t1",)},
        {"pending": ()},
        {"metadata": {}},
        {"gated": True},
    ]
    for change in changes:
        with pytest.raises(OutOfSync):
            shadow.check_view(view_of(snapshot, boss=change), snapshot, idle=True)
    with pytest.raises(OutOfSync):
        shadow.check_view(view_of(snapshot, hidden=("idle",)), snapshot, idle=True)
    with pytest.raises(OutOfSync):
        shadow.check_view(view_of(snapshot, user=()), snapshot, idle=True)


def test_a_view_of_a_running_system_may_lag_behind_and_invents_nothing() -> None:
    story = team()
    shadow = story.settle()
    snapshot = shadow.read(story.files())
    shadow.check_view(
        view_of(snapshot, boss={"turns": 1, "last_turns": ("t1",)}), snapshot, idle=False
    )
    with pytest.raises(OutOfSync):
        shadow.check_view(
            view_of(snapshot, boss={"turns": 1, "last_turns": ("t3",)}), snapshot, idle=False
        )
    with pytest.raises(Phantom):
        shadow.check_view(view_of(snapshot, boss={"pending": ("m9",)}), snapshot, idle=False)
    with pytest.raises(Phantom):
        shadow.check_view(view_of(snapshot, boss={"agent_id": "nobody"}), snapshot, idle=False)


def test_when_all_is_quiet_no_agent_waits_but_the_gated_and_the_stopped() -> None:
    story = team()
    shadow = story.settle()
    snapshot = shadow.read(story.files())
    with pytest.raises(OutOfSync):
        shadow.check_quiesced(view_of(snapshot, idle={"permits": 0}), snapshot, NOW_NS)
    story.turn("boss", "t4", "r1")
    snapshot = story.snapshot()
    shadow.turns = None
    with pytest.raises(OutOfSync):
        shadow.check_quiesced(view_of(snapshot, idle={"permits": 0}), snapshot, NOW_NS)
    with pytest.raises(Starved):
        shadow.check_quiesced(view_of(snapshot, idle={"permits": 1}), snapshot, NOW_NS)
    shadow.check_quiesced(
        view_of(snapshot, idle={"permits": 1, "stopped": "EIO"}), snapshot, NOW_NS
    )
    shadow.check_quiesced(view_of(snapshot), snapshot, NOW_NS, waiting=[hexed("idle")])
    run_gated(story, 0)
    story.send("n1", "idle", 1)
    snapshot = story.snapshot()
    story.settle().check_quiesced(view_of(snapshot, idle={"permits": 0}), snapshot, NOW_NS)


def test_a_second_recovery_changes_nothing_but_the_epoch() -> None:
    files = team().files()
    check_idempotent(files, files | {"runtime.lock": b"2"})
    with pytest.raises(NotIdempotent):
        check_idempotent(files, files | {"root.json": b""})
    with pytest.raises(NotIdempotent):
        check_idempotent(files, {**files, "new": b""})
