# ruff: noqa: N802 - the methods carry SQLite's own names.
"""A runtime on a real directory whose barriers are counted: those of files, and SQLite's.

Barriers of files are counted at the functions of ``os``, below the real host; SQLite's are the
syncs that it asks of its VFS.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import apsw

from system.agents.turn_recorder import RecordingOptions
from system.durable.trigger import TriggerSpec
from system.host import RealClock, real_host
from system.ports import Host, Json, JsonObject
from system.runtime import Options, Runtime
from system.storage.database_pragmas import DATABASE_PRAGMAS
from system.storage.framing import Framing
from tests.unit.system.agents.fake_provider import FakeProvider, script

_NUMBERS = count()


class CountingDatabase:
    """The databases below ``root``; each sync of SQLite is appended to ``calls``."""

    def __init__(self, root: Path, calls: list[str]) -> None:
        self._root = root
        self._vfs = CountingVfs(f"counting-{next(_NUMBERS)}", calls)

    def open(self, path: str) -> apsw.Connection:
        connection = apsw.Connection(str(self._root / path), vfs=self._vfs.name)
        for pragma in DATABASE_PRAGMAS:
            connection.execute(pragma).fetchall()
        return connection


class CountingVfs(apsw.VFS):
    """SQLite's own VFS, whose files count their syncs."""

    def __init__(self, name: str, calls: list[str]) -> None:
        self.name = name
        self._calls = calls
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> CountingFile:
        return CountingFile(name, flags, self._calls)


class CountingFile(apsw.VFSFile):
    """A file of SQLite."""

    def __init__(
        self, name: str | apsw.URIFilename | None, flags: list[int], calls: list[str]
    ) -> None:
        self._calls = calls
        super().__init__("", name, flags)

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self._calls.append("xSync")


class PatientClock(RealClock):
    """A clock whose pauses do not end; ``paused`` says that one has begun.

    If it ``is_prompt``, a pause that is over already does end.
    """

    def __init__(self) -> None:
        super().__init__()
        self.paused = asyncio.Event()
        self.is_prompt = False

    async def sleep(self, delay_ns: int) -> None:
        if self.is_prompt and delay_ns == 0:
            return
        self.paused.set()
        await asyncio.Event().wait()


class Bench:
    """A runtime on a real directory: Ada and her gated children, all idle.

    Everything before ``start_counting`` is free. ``calls`` receives the barriers.
    """

    def __init__(
        self, root: Path, framing: Framing, calls: list[str], recording: RecordingOptions | None
    ) -> None:
        self.clock = PatientClock()
        database = CountingDatabase(root, calls)
        self.host: Host = replace(real_host(str(root)), clock=self.clock, database=database)
        self.calls = calls
        self.start_counting()
        self.provider = FakeProvider()
        self.options = Options(framing=framing, recording=recording)
        self.answer = asyncio.Event()
        self.runtime: Runtime
        self.ada = ""

    async def open(self) -> None:
        self.runtime = await Runtime.open(self.host, {"scripted": self.provider}, self.options)

    async def with_ada(self, children: int = 0) -> None:
        await self.open()
        self.ada = await self.runtime.create_agent("Ada", request_id="r")
        names = [f"child {number}" for number in range(children)]
        spawns: list[tuple[str, JsonObject]] = [("spawn_agent", {"name": name}) for name in names]
        gates: list[tuple[str, JsonObject]] = [("gate", {"name": name}) for name in names]
        await self.runtime.send(self.ada, script(*spawns, *gates))
        await self.runtime.idle()

    def child(self) -> str:
        return self.runtime.view().agents[-1].agent_id

    async def show(self, agent_id: str, payload: Json) -> None:
        """Begin a turn with a message; the provider does not answer yet."""
        shown = self.hold()
        await self.runtime.send(agent_id, payload)
        await shown.wait()

    def hold(self) -> asyncio.Event:
        """Return an event that the next turn sets; its provider waits for ``answer``."""
        shown = asyncio.Event()

        async def wait() -> None:
            shown.set()
            await self.answer.wait()

        self.provider.hooks["send"] = wait
        return shown

    async def emit(self, key: str | None = None, fire_at: float | None = None) -> None:
        """Emit a trigger for Ada, by default for a time to come."""
        agent = self.runtime.view().agents[0]
        fire_at = time.time() + 3600 if fire_at is None else fire_at
        spec = TriggerSpec("IMMEDIATE", "hello", None, agent.session_id, fire_at, key)
        await self.runtime.emit(spec)

    async def again(self) -> None:
        """A creation that was done already; it must cost nothing."""
        await self.runtime.create_agent("Ada", request_id="r")

    def start_counting(self) -> None:
        self.calls.clear()

    def barriers(self) -> int:
        return len(self.calls)


NewBench = Callable[[], Bench]
Operation = Callable[[NewBench], Awaitable[int]]
