"""An excused session is not judged, nor is anything that depends on it; all others are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oracles.runtime.shadow_runtime import ShadowRuntime
from oracles.runtime.violations import LostControl
from oracles.violation import LostAck, SilentEmpty, Violation
from tests.unit.oracles.runtime.story import NOW_NS, Break, Story, hexed, message
from tests.unit.oracles.runtime.team import bounce, lose_turn, receive, team
from tests.unit.oracles.runtime.view import view_of

BOSS, WORKER, IDLE = hexed("a-boss"), hexed("a-worker"), hexed("a-idle")


def excusing(shadow: ShadowRuntime, *names: str) -> ShadowRuntime:
    for name in names:
        shadow.excuse("user" if name == "user" else hexed(name))
    return shadow


def settle(shadow: ShadowRuntime, story: Story, *unrecovered: str) -> bool:
    unrecovered_ids = [hexed(name) for name in unrecovered]
    return shadow.settle(shadow.read(story.files()), NOW_NS, unrecovered_ids)


def forget(story: Story, *names: str) -> Story:
    """Take away everything of these sessions."""
    for name in names:
        del story.logs[name]
        story.records.pop(name, None)
    return story


def _torn(story: Story) -> None:
    story.others[f"agents/{hexed('idle')}/events.jsonl"] = b"torn"


def _cuckoo(story: Story) -> None:
    story.create("cuckoo", parent="boss")


def _orphan(story: Story) -> None:
    story.records["boss"] = {"session_id": hexed("boss"), "state": "ACTIVE"}
    del story.logs["boss"]


def _ended(story: Story) -> None:
    story.terminate("idle", "boot-idle")
    forget(story, "idle")


def _unasked(story: Story) -> None:
    del story.asked["t3"]


def _unreported(story: Story) -> None:
    lose_turn(story)
    story.logs["boss"].pop()


def _bounced(story: Story) -> None:
    bounce(story)
    forget(story, "worker")


def _in_the_name_of_another(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["outbox"][0]["sender"] = IDLE


def _obeying(story: Story) -> None:
    story.add("idle", "tool.gate", control_id="c9", by=BOSS)


def _returned(story: Story) -> Story:
    note = message("m9", BOSS, IDLE, "text", 0)
    call = ("send_message", {"to": "idle", "payload": 0}, {"message_id": "m9"})
    story.turn("boss", "t4", "r1", outbox=[note], calls=[call])
    story.add("idle", "message.enqueued", **note)
    story.terminate("idle", "boot-idle", "m9")
    return story


def _acknowledged(story: Story) -> None:
    story.operator_calls.append(lambda s: s.operator.deliveries.begin("m6"))
    story.operator_calls.append(lambda s: s.operator.deliveries.acknowledge("m6"))


def _passed(story: Story) -> None:
    story.turn("boss", "t4", "r1", dispatched=14)
    forget(story, "idle")


DAMAGED: dict[str, tuple[str, Break]] = {
    "its log is gone": ("boss", lambda story: forget(story, "boss")),
    "its log is gone, and its record is there": ("boss", _orphan),
    "its log is gone, with the end of its agent": ("idle", _ended),
    "its log is gone, and an error came from there": ("worker", _bounced),
    "its log is gone, and a watermark is above what it was sent": ("idle", _passed),
    "its log is torn": ("idle", _torn),
    "its log breaks a law": ("boss", lambda s: s.add("boss", "turn.failed", turn_id="t3")),
    "its log has what nobody sent": ("idle", lambda s: receive(s, "idle", "text", sender=WORKER)),
    "its turn writes in the name of another": ("boss", _in_the_name_of_another),
    "its turn was asked of nobody": ("boss", _unasked),
    "its message is nowhere": ("boss", lambda story: story.drop("user", "message.enqueued")),
    "its lost turn is not told": ("boss", _unreported),
    "its child was spawned by no line": ("boss", _cuckoo),
    "its child obeys what no line orders": ("boss", _obeying),
    "its control did not come": ("idle", lambda story: story.drop("idle", "tool.permit_turn")),
    "its error did not come": ("boss", _returned),
    "its log is gone, and its error": ("boss", lambda s: forget(_returned(s), "boss")),
    "what USER acknowledged is gone": ("user", _acknowledged),
}


@pytest.mark.parametrize(("name", "damage"), DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_session_is_not_judged(name: str, damage: Break) -> None:
    story = team()
    damage(story)
    with pytest.raises(Violation):
        settle(story.shadow(), story)
    settle(excusing(story.shadow(), name), story)


def _send(shadow: ShadowRuntime) -> None:
    shadow.operator.sends.begin("m9", BOSS, 0)
    shadow.operator.sends.acknowledge("m9")


def _terminate(shadow: ShadowRuntime) -> None:
    shadow.operator.terminations.begin(IDLE)
    shadow.operator.terminations.acknowledge(IDLE)


def _acknowledge(shadow: ShadowRuntime) -> None:
    shadow.operator.deliveries.begin("m6")
    shadow.operator.deliveries.acknowledge("m6")


@pytest.mark.parametrize("call", [_send, _terminate, _acknowledge])
def test_damage_elsewhere_excuses_no_lost_call(call: Callable[[ShadowRuntime], None]) -> None:
    story = team()
    shadow = excusing(story.shadow(), "worker")
    call(shadow)
    with pytest.raises(LostAck):
        settle(shadow, story)


def test_a_control_of_a_damaged_child_excuses_no_lost_control_of_another() -> None:
    story = team()
    line, calls = story.at("boss", "turn.complete", 1), story.asked["t3"].calls
    line["controls"].insert(0, {"control_id": "c0", "target": WORKER, "op": "gate"})
    calls.insert(0, ("gate", {"name": "worker"}, {}))
    forget(story, "worker")
    settle(excusing(story.shadow(), "worker"), story)
    story.drop("idle", "tool.permit_turn")
    with pytest.raises(LostControl):
        settle(excusing(story.shadow(), "worker"), story)


def test_a_creation_in_flight_is_resolved_whatever_else_is_damaged() -> None:
    story = team()
    shadow = excusing(story.shadow(), "worker")
    shadow.operator.creates.begin("r-new", "new", "be new", "scripted", "m")
    story.create("new", request="r-new")
    assert settle(shadow, story) is True


def test_a_root_may_lose_the_agents_that_were_all_damaged() -> None:
    shadow = excusing(team().settle(), "boss", "worker", "idle")
    settle(shadow, forget(team(), "boss", "worker", "idle"))


def test_a_root_may_not_lose_the_agents_of_which_one_was_damaged() -> None:
    with pytest.raises(SilentEmpty):
        settle(excusing(team().settle(), "worker"), Story())


def test_a_log_that_was_durable_is_not_empty() -> None:
    story = team()
    shadow = story.settle()
    path = f"agents/{hexed('idle')}/events.jsonl"
    with pytest.raises(SilentEmpty):
        shadow.check(shadow.read(story.files() | {path: b""}))


def test_a_root_that_never_had_an_agent_is_empty() -> None:
    shadow = Story().shadow()
    settle(shadow, Story())
    settle(shadow, Story())


def _cut(story: Story, name: str) -> None:
    del story.logs[name][3:]


@pytest.mark.parametrize("damage", [forget, _cut])
@pytest.mark.parametrize("name", ["worker", "idle"])
def test_what_was_shown_of_a_damaged_session_may_be_gone(
    name: str, damage: Callable[[Story, str], object]
) -> None:
    before, after = team(), team()
    shadow = before.shadow()
    shadow.observe(view_of(before.snapshot()))
    damage(after, name)
    settle(excusing(shadow, name), after)


def test_damage_elsewhere_does_not_excuse_what_was_shown_to_user() -> None:
    story = team()
    shadow = excusing(story.shadow(), "worker", "boss")
    shadow.observe(view_of(story.snapshot()))
    story.drop("user", "message.enqueued")
    with pytest.raises(LostAck, match="showed"):
        settle(shadow, story)


def test_a_log_that_could_not_be_opened_is_not_durable_yet() -> None:
    story = team()
    shadow = story.shadow()
    whole = story.files()
    path = f"agents/{hexed('idle')}/events.jsonl"
    torn = whole | {path: whole[path] + b"torn"}
    shadow.settle(shadow.read(torn), NOW_NS, [hexed("idle")])
    settle(shadow, story)


def test_a_turn_that_was_under_way_may_be_in_a_log_that_could_not_be_opened() -> None:
    story = team()
    shadow = story.shadow()
    settle(shadow, story)
    assert shadow.turns is not None
    story.turn("boss", "t4", "r1")
    asked = story.asked["t4"]
    shadow.turns.record_request("t4", asked.prompt, asked.history)
    shadow.turns.record_answer("t4", "answer of t4")
    settle(shadow, team(), "boss")
    settle(shadow, story)


def test_what_was_shown_stays_so_until_all_is_opened() -> None:
    before, after = team(), team()
    after.turn("boss", "t4", "r1")
    shadow = after.shadow()
    shadow.observe(view_of(after.snapshot()))
    settle(shadow, after, "boss")
    with pytest.raises(LostAck, match="showed"):
        settle(shadow, before)
