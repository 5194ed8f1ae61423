"""The laws of a runtime at rest: segments, snapshots, and agents that were collected."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.tree_laws import check_tree
from oracles.runtime.violations import BrokenTree, WrongSnapshot
from oracles.violation import InvalidState, LostAck, Resurrected, Violation
from tests.unit.oracles.runtime.story import NOW_NS, Data, Story, hexed
from tests.unit.oracles.runtime.team import IDLE, WORKER, team

Files = dict[str, bytes]


def settle(story: Story, files: Files) -> None:
    """Check these files as the first snapshot after a recovery."""
    shadow = story.shadow()
    shadow.settle(shadow.read(files), NOW_NS)


def collected(files: Files, name: str) -> Files:
    """The files when an agent was collected."""
    session = hexed(name)
    left = {path: content for path, content in files.items() if session not in path}
    return left | {f"archive/{session}.jsonl": files[f"agents/{session}/events.jsonl"]}


def snapshot(**changes: object) -> Data:
    """The data of a right snapshot at the end of the log of the idle child."""
    story = team()
    created = story.at("idle", "session.created")
    right: Data = {
        "format": 1, "identity": "", "turn_count": 0, "last_turns": [],
        "session": {name: created[name] for name in ("provider", "model", "system_prompt")},
        "agent": story.at("idle", "agent.created"),
        "pending": [story.at("idle", "message.enqueued")], "presentations": {}, "open_turns": [],
        "retry_of": None, "subscriptions": {}, "reminders": [], "metadata": {}, "gated": True,
        "permits": 1, "children": [], "completed_children": [], "promises": [],
        "unreachable": [], "dispatched": 0, "dispatched_of": {}, "senders": [], "from_user": [],
        "known_ids": False, "ids": [], "controls": ["c1", "c2"],
    }  # fmt: skip
    return right | changes


def with_snapshot(data: Data) -> tuple[Story, Files]:
    """The team, and the idle child's log in two segments."""
    story = team()
    story.add("idle", "log.snapshot", **data)
    files = story.files()
    path = f"agents/{hexed('idle')}/events.jsonl"
    *lines, last = files[path].splitlines(keepends=True)
    files[path] = b"".join(lines)
    files[path.replace(".jsonl", ".1.jsonl")] = last
    return story, files


def test_a_log_in_segments_is_one_log() -> None:
    story, files = with_snapshot(snapshot())
    settle(story, files)

    state = RootSnapshot.of_files(files).agents[IDLE]

    assert (len(state.log.lines), state.segment_seq) == (6, 6)


def test_the_segments_of_a_log_are_in_the_order_of_their_numbers() -> None:
    _, whole = with_snapshot(snapshot())
    path = f"agents/{hexed('idle')}/events.jsonl"
    *lines, before_last = whole[path].splitlines(keepends=True)
    last = path.replace(".jsonl", ".1.jsonl")
    files = {name: content for name, content in whole.items() if name != last}
    files[path] = b"".join(lines)
    files[path.replace(".jsonl", ".10.jsonl")] = whole[last]
    files[path.replace(".jsonl", ".2.jsonl")] = before_last

    state = RootSnapshot.of_files(files).agents[IDLE]

    assert [line.seq for line in state.log.lines] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    "changes",
    [
        {"pending": []}, {"turn_count": 1}, {"metadata": {"mood": "calm"}}, {"gated": False},
        {"permits": 0}, {"ids": ["never here"]}, {"open_turns": [{"turn_id": "t"}]},
        {"presentations": {"boot-idle": 1}}, {"children": [{"session_id": "none"}]},
        {"dispatched": 3}, {"subscriptions": {"s": WORKER}}, {"agent": None},
    ],
    ids=lambda changes: next(iter(changes)),
)  # fmt: skip
def test_a_snapshot_that_differs_from_the_lines_before_it_is_wrong(changes: Data) -> None:
    story, files = with_snapshot(snapshot(**changes))

    with pytest.raises(WrongSnapshot):
        settle(story, files)


def test_a_snapshot_of_lines_that_are_not_durable_is_wrong() -> None:
    story = team()
    story.add("idle", "log.snapshot", **snapshot())
    story.logs["idle"][-1].durable = 4

    with pytest.raises(InvalidState, match="a segment began before"):
        story.settle()


def test_an_agent_that_was_collected_is_read_from_its_archive() -> None:
    story = team()
    files = collected(story.files(), "worker")
    settle(story, files)

    read = RootSnapshot.of_files(files)

    assert read.collected == {hexed("worker")}
    assert read.agents[WORKER].ended == "completed"


def test_an_archive_beside_a_directory_is_one_with_it() -> None:
    story = team()
    files = story.files()
    session = hexed("worker")
    archive = collected(files, "worker")[f"archive/{session}.jsonl"]

    settle(story, files | {f"archive/{session}.jsonl": archive[: len(archive) // 2]})
    settle(story, files | {f"archive/{session}.jsonl": archive})


def test_while_a_directory_is_removed_the_archive_is_its_log() -> None:
    story = team()
    shadow, files = story.shadow(), story.files()
    shadow.settle(shadow.read(files), NOW_NS)
    record = f"agents/{hexed('worker')}/session.json"
    left = collected(files, "worker") | {record: files[record]}

    shadow.check(shadow.read(left))
    del left[f"archive/{hexed('worker')}.jsonl"]
    with pytest.raises(LostAck, match="a durable log is lost"):
        shadow.check(shadow.read(left))


def comes_back(files: Files) -> Files:
    again = team()
    again.at("worker", "session.created")["identity"] = "another conversation"
    del again.logs["worker"][2:]
    path = f"agents/{hexed('worker')}/events.jsonl"
    return collected(files, "worker") | {path: again.files()[path]}


def loses_its_archive(files: Files) -> Files:
    left = collected(files, "worker")
    del left[f"archive/{hexed('worker')}.jsonl"]
    return left


@pytest.mark.parametrize(
    ("change", "expected"), [(comes_back, Resurrected), (loses_its_archive, Violation)]
)
def test_a_collected_agent_neither_comes_back_nor_is_lost(
    change: Callable[[Files], Files], expected: type[Violation]
) -> None:
    story = team()

    with pytest.raises(expected):
        settle(story, change(story.files()))


def test_lines_that_were_durable_are_durable_in_the_archive() -> None:
    story = team()
    shadow = story.shadow()
    shadow.settle(shadow.read(story.files()), NOW_NS)
    files = collected(story.files(), "worker")
    shadow.check(shadow.read(files))
    path = f"archive/{hexed('worker')}.jsonl"

    with pytest.raises(LostAck):
        shadow.check(shadow.read({**files, path: files[path][:-1].rpartition(b"\n")[0] + b"\n"}))


@pytest.mark.parametrize(
    ("is_archived", "ended", "is_collected"),
    [
        (True, {hexed("worker")}, True),
        (False, {hexed("worker")}, True),  # it ended too long ago to be archived
        (True, (), False),
        (True, None, True),
        (False, None, False),
    ],
)
def test_the_directory_of_a_collected_child_may_have_stayed(
    is_archived: bool, ended: Collection[str] | None, is_collected: bool
) -> None:
    files = team().files()
    if is_archived:
        files |= collected(files, "worker")
    read = RootSnapshot.of_files(files)
    assert not read.collected
    read.agents[hexed("a-boss")].forgotten_children = {hexed("worker")}
    judged = read.with_ended(ended)
    assert judged.collected == ({hexed("worker")} if is_collected else set())
    if is_collected:
        check_tree(judged)
    else:
        with pytest.raises(BrokenTree):
            check_tree(judged)


@pytest.mark.parametrize("is_collected", [True, False])
def test_a_snapshot_may_forget_a_child_only_when_it_was_collected(is_collected: bool) -> None:
    files = team().files()
    read = RootSnapshot.of_files(collected(files, "worker") if is_collected else files)
    read.agents[hexed("a-boss")].forgotten_children = {hexed("worker")}

    if is_collected:
        check_tree(read)
    else:
        with pytest.raises(BrokenTree):
            check_tree(read)
