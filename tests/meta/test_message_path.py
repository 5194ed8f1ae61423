"""The path of a message through the runtime, counted in moves from one file to another.

Workers run their calls at once, so that a suspension and its resumption are not counted.

``python -m tests.meta.test_message_path`` prints the path.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple, TypeVar

from crash_tests.rig.host import simulated_host
from sim.choices import PlainChoices
from sim.world import World
from system.ports import Json
from system.providers.scripted import ScriptedProvider
from system.runtime import Options, Runtime
from tests.meta.page_tables import quoted, table_rows
from tests.meta.source_tree import ROOT

T = TypeVar("T")

MOST_MOVES: Final = 120
_SYSTEM: Final = f"{ROOT / 'system'}/"
_HOST: Final = f"{_SYSTEM}host.py"
_START: Final = ("runtime.py", "send")
_INBOX: Final = ("agents/history.py", "_message_enqueued")


class Visit(NamedTuple):
    """The file below ``system/`` and the function that run."""

    file: str
    function: str


class ImmediateWorkers:
    """Implements ``system.ports.Workers`` without suspending the caller."""

    async def run(self, call: Callable[[], T]) -> T:
        return call()


class PathWatch:
    """Records each change of the running function, from ``Runtime.send`` on.

    Recording ends when ``messages`` messages have been applied to the history of an inbox.
    """

    def __init__(self, messages: int) -> None:
        self.visits: list[Visit] = []
        self._messages = messages
        self._files: dict[str, str | None] = {}

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if event not in ("call", "return") or not self._messages:
            return
        visit = self._visit(frame)
        if visit is None or not (self.visits or visit == _START):
            return
        self.visits.append(visit)
        if event == "return":
            if visit == _INBOX:
                self._messages -= 1
            if (caller := self._caller(frame)) is not None and self._messages:
                self.visits.append(caller)

    def _visit(self, frame: FrameType) -> Visit | None:
        name = frame.f_code.co_filename
        if name not in self._files:
            # The host is behind the ports, where a path ends.
            is_ours = name.startswith(_SYSTEM) and name != _HOST
            self._files[name] = Path(name).relative_to(_SYSTEM).as_posix() if is_ours else None
        file = self._files[name]
        return None if file is None else Visit(file, frame.f_code.co_name)

    def _caller(self, frame: FrameType) -> Visit | None:
        caller = frame.f_back
        while caller is not None and self._visit(caller) is None:
            caller = caller.f_back
        return None if caller is None else self._visit(caller)


def watched_message() -> list[Visit]:
    """Let one agent write to another, and return the visits on the way.

    The operator's message reaches the first agent, whose turn calls ``send_message``.
    """
    world = World(simulated_host, PlainChoices())
    host = replace(world.boot(), workers=ImmediateWorkers())
    run = world.loop.run_until_complete
    runtime = run(Runtime.open(host, {"scripted": ScriptedProvider()}, Options(recording=None)))
    ada = run(runtime.create_agent("Ada"))
    spawn: Json = {"do": [["spawn_agent", {"name": "Bob"}]]}
    letter: Json = {"do": [["send_message", {"to": "Bob", "payload": "hello"}]]}
    for payload in (spawn, "a message before, so that the conversation is open"):
        run(runtime.send(ada, payload))
        world.loop.run_until_idle()
    watch = PathWatch(messages=2)
    sys.setprofile(watch)
    try:
        run(runtime.send(ada, letter))
        world.loop.run_until_idle()
    finally:
        sys.setprofile(None)
    world.kill()
    return watch.visits


def moves(visits: list[Visit]) -> list[str]:
    """Return the files in the order in which they were entered; one more than the moves."""
    files = [visits[0].file]
    for visit in visits:
        if visit.file != files[-1]:
            files.append(visit.file)
    return files


def test_a_message_reaches_another_agent_in_few_moves_between_files() -> None:
    visits = watched_message()

    assert visits[0] == _START
    assert visits[-1] == _INBOX
    assert ("agents/tools.py", "send_message") in visits
    assert len(moves(visits)) - 1 <= MOST_MOVES


def test_the_files_of_the_path_are_those_of_the_page() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    shown = [file for files, _ in table_rows(page, "files") for file in quoted(files)]
    assert len(shown) == len(set(shown)) == 19
    assert set(shown) == set(moves(watched_message()))


if __name__ == "__main__":
    path = watched_message()
    last = None
    for step in path:
        if step != last:
            sys.stdout.write(f"{step.file} {step.function}\n")
        last = step
    sys.stdout.write(f"moves between files: {len(moves(path)) - 1}\n")
