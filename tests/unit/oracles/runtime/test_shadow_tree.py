"""The shadow of the tree: recorded calls, and comparison with views, logs and registries."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.shadow_tree import Registries, ShadowTree
from oracles.runtime.violations import BrokenTree, DuplicateName
from oracles.violation import Duplicated, FalseAlarm, InvalidState, OutOfSync, Starved, Violation
from tests.unit.oracles.runtime.story import Story, hexed, message
from tests.unit.oracles.runtime.team import spawn, spawning
from tests.unit.oracles.runtime.view import view_of

ADA, BOB, EVE, FAY = (hexed(f"a-{name}") for name in ("ada", "bob", "eve", "fay"))
EMPTY = Registries({}, {}, {}, {}, (), ())


@dataclass(frozen=True)
class View:
    agents: tuple[()] = ()
    user: tuple[()] = field(default=())


def tree() -> ShadowTree:
    """Ada, and her child Bob."""
    shadow = ShadowTree(slots=3)
    shadow.add_agent("a", "Ada", None)
    shadow.add_agent("b", "Bob", "a")
    return shadow


def test_a_name_is_free_again_when_its_agent_has_ended() -> None:
    shadow = tree()
    assert shadow.is_taken("Bob")
    shadow.end_agent("b")
    assert not shadow.is_taken("Bob")
    assert shadow.children("a") == []


@pytest.mark.parametrize(
    ("agent_id", "name", "parent_id", "violation"),
    [
        ("e", "Ada", None, DuplicateName),
        ("b", "Cleo", None, Duplicated),
        ("d", "Dan", "c", BrokenTree),
    ],
)
def test_an_agent_that_must_be_refused_is_not_created(
    agent_id: str, name: str, parent_id: str | None, violation: type[Violation]
) -> None:
    shadow = tree()
    shadow.add_agent("c", "Cleo", None)
    shadow.end_agent("c")
    with pytest.raises(violation):
        shadow.add_agent(agent_id, name, parent_id)


def test_a_parent_does_not_end_before_its_child() -> None:
    shadow = tree()
    shadow.refuse_end("a")
    with pytest.raises(BrokenTree):
        shadow.end_agent("a")


def test_a_call_that_is_allowed_must_not_be_refused() -> None:
    shadow = tree()
    shadow.refuse_agent("Ada")
    with pytest.raises(FalseAlarm):
        shadow.refuse_agent("Eve")
    with pytest.raises(FalseAlarm):
        shadow.refuse_end("b")


def test_an_agent_that_only_the_tree_has_is_missing_in_the_view() -> None:
    with pytest.raises(OutOfSync, match="the view and the tree"):
        tree().check(View(), RootSnapshot.of_files({}), EMPTY)


@pytest.mark.parametrize(
    ("registries", "what"),
    [
        (replace(EMPTY, handlers={"x": "s"}), "handlers"),
        (replace(EMPTY, sessions={"s": "x"}), "sessions"),
        (replace(EMPTY, names={"x": "Xi"}), "names"),
        (replace(EMPTY, children={"x": ()}), "children"),
        (replace(EMPTY, taken=("Ada",)), "taken names"),
    ],
)
def test_a_registry_that_has_more_than_the_tree_is_named(registries: Registries, what: str) -> None:
    shadow = ShadowTree(slots=3)
    shadow.check(View(), RootSnapshot.of_files({}), EMPTY)
    with pytest.raises(OutOfSync, match=f"the registry of {what} and the tree"):
        shadow.check(View(), RootSnapshot.of_files({}), registries)


def test_nothing_is_at_work_when_all_is_idle() -> None:
    with pytest.raises(Starved):
        ShadowTree(slots=3).check(
            View(), RootSnapshot.of_files({}), replace(EMPTY, at_work=("turns",))
        )


def family() -> Story:
    """Ada's child Bob has given her its result, Eve has given USER hers; Fay has nothing to do."""
    story = Story()
    for name in ("ada", "eve", "fay"):
        story.root(name)
    story.send("m1", "ada", "go")
    story.turn("ada", "t1", "m1", spawned=[spawn("bob")], calls=[spawning("bob")])
    story.create("bob", "ada")
    bootstrap = message("boot-bob", ADA, BOB, "bootstrap", "be bob")
    story.add("bob", "message.enqueued", **bootstrap)
    complete(story, "bob", "boot-bob", message("m2", BOB, ADA, "response", "done"))
    story.add("ada", "message.enqueued", **message("m2", BOB, ADA, "response", "done"))
    story.turn("ada", "t3", "m2")
    story.send("m3", "eve", "go")
    complete(story, "eve", "m3", message("m4", EVE, "USER", "response", "done"))
    story.add("user", "message.enqueued", **message("m4", EVE, "USER", "response", "done"))
    return story


def complete(story: Story, name: str, shown: str, response: dict[str, object]) -> None:
    story.turn(
        name, f"end of {name}", shown, outbox=[response], terminate=True,
        calls=[("complete", {"result": "done"}, {})],
    )  # fmt: skip
    agent_id = hexed(f"a-{name}")
    story.add(name, "agent.terminated", agent_id=agent_id, reason="completed", returned=[])
    story.records[name]["state"] = "TERMINATED"


def recorded_tree(slots: int = 1, turns_of_fay: int = 0, responded: bool = True) -> ShadowTree:
    """Return the tree with the calls of the family recorded."""
    shadow = ShadowTree(slots)
    for agent_id, name in ((ADA, "ada"), (EVE, "eve"), (FAY, "fay")):
        shadow.add_agent(agent_id, name, None)
    shadow.add_turn(ADA)
    shadow.add_agent(BOB, "bob", ADA)
    for agent_id in (BOB, EVE):
        shadow.add_turn(agent_id)
        shadow.end_agent(agent_id)
        if responded or agent_id != EVE:
            shadow.add_response(agent_id)
    for _ in range(turns_of_fay):
        shadow.add_turn(FAY)
    return shadow


SESSIONS = {hexed(f"a-{name}"): hexed(name) for name in ("ada", "bob", "eve", "fay")}
REGISTRIES = Registries(
    handlers=SESSIONS,
    sessions={session_id: agent_id for agent_id, session_id in SESSIONS.items()},
    names={ADA: "ada", BOB: "bob", EVE: "eve", FAY: "fay"},
    children=dict.fromkeys(SESSIONS, ()),
    taken=("fay", "ada"),
    at_work=(),
)


@pytest.mark.parametrize("state", ["ACTIVE", "SUSPENDED"])
def test_the_tree_is_what_the_system_shows(state: str) -> None:
    story = family()
    story.records["ada"]["state"] = state
    snapshot = story.snapshot()
    recorded_tree().check(view_of(snapshot), snapshot, REGISTRIES)


def test_a_child_that_lives_is_its_parents() -> None:
    story = Story()
    story.root("ada")
    story.create("bob", "ada")
    shadow = ShadowTree(slots=1)
    shadow.add_agent(ADA, "ada", None)
    shadow.add_agent(BOB, "bob", ADA)
    sessions = {ADA: hexed("ada"), BOB: hexed("bob")}
    registries = Registries(
        handlers=sessions,
        sessions={session_id: agent_id for agent_id, session_id in sessions.items()},
        names={ADA: "ada", BOB: "bob"},
        children={ADA: (BOB,), BOB: ()},
        taken=("ada", "bob"),
        at_work=(),
    )
    snapshot = story.snapshot()
    shadow.check(view_of(snapshot), snapshot, registries)
    with pytest.raises(OutOfSync, match="children"):
        shadow.check(view_of(snapshot), snapshot, replace(registries, children={ADA: (), BOB: ()}))


@pytest.mark.parametrize("change", [{"gated": True}, {"stopped": "EIO"}])
def test_no_agent_is_stopped_or_gated(change: dict[str, object]) -> None:
    snapshot = family().snapshot()
    with pytest.raises(OutOfSync, match="a stopped or gated agent"):
        recorded_tree().check(view_of(snapshot, fay=change), snapshot, REGISTRIES)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "eva"},
        {"parent_id": ADA},
        {"alive": False},
        {"turns": 1, "last_turns": ("t9",)},
        {"pending": ("m9",)},
    ],
)
def test_a_view_that_shows_an_agent_otherwise_is_noticed(change: dict[str, object]) -> None:
    snapshot = family().snapshot()
    with pytest.raises(OutOfSync, match="the view and the tree"):
        recorded_tree().check(view_of(snapshot, fay=change), snapshot, REGISTRIES)


def test_a_turn_that_the_logs_do_not_have_is_noticed() -> None:
    snapshot = family().snapshot()
    view = view_of(snapshot, fay={"turns": 1, "last_turns": ("t9",)})
    with pytest.raises(OutOfSync, match="the logs and the tree"):
        recorded_tree(turns_of_fay=1).check(view, snapshot, REGISTRIES)


@pytest.mark.parametrize(("name", "state"), [("ada", "TERMINATED"), ("bob", "SUSPENDED")])
def test_a_record_says_whether_its_agent_lives(name: str, state: str) -> None:
    story = family()
    story.records[name]["state"] = state
    snapshot = story.snapshot()
    with pytest.raises(InvalidState):
        recorded_tree().check(view_of(snapshot), snapshot, REGISTRIES)


def test_no_more_sessions_are_active_than_there_are_slots() -> None:
    story = family()
    for name in ("ada", "fay"):
        story.records[name]["state"] = "ACTIVE"
    snapshot = story.snapshot()
    recorded_tree(slots=2).check(view_of(snapshot), snapshot, REGISTRIES)
    with pytest.raises(InvalidState, match="slots"):
        recorded_tree(slots=1).check(view_of(snapshot), snapshot, REGISTRIES)


def test_user_has_every_result_once() -> None:
    snapshot = family().snapshot()
    with pytest.raises(OutOfSync, match="USER"):
        recorded_tree(responded=False).check(view_of(snapshot), snapshot, REGISTRIES)
    with pytest.raises(OutOfSync, match="USER"):
        recorded_tree().check(view_of(snapshot, user=()), snapshot, REGISTRIES)
