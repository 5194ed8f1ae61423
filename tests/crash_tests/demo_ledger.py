"""The output of a demo over all its processes, compared with the files of its root."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.shadow_runtime import ShadowRuntime
from system.demo.jobs import INSTRUCTIONS, LEAD, REQUEST_ID, TEAM_ID, job, job_id, result, team


def files_of(root: Path) -> Mapping[str, bytes]:
    """Return the files of a root as the oracle reads them; an empty directory ends with a slash."""
    files: dict[str, bytes] = {}
    for path in root.rglob("*"):
        name = path.relative_to(root).as_posix()
        if path.is_file():
            files[name] = path.read_bytes()
        elif path.is_dir() and not any(path.iterdir()):
            files[f"{name}/"] = b""
    return files


class DemoLedger:
    """Passes the output lines of the demo on to the runtime's shadow.

    The operator of the demo makes its calls one after the other, in a fixed order. The call
    after the last line of a killed process is therefore in flight.
    """

    def __init__(self, root: Path) -> None:
        self.shadow = ShadowRuntime(turns=None)
        self.lines: set[str] = set()
        self._root = root
        self._lead = ""
        self._received: set[str] = set()
        self._acknowledged: set[str] = set()

    def begin_process(self) -> None:
        """Begin the first call of a new process, which creates the lead."""
        self.shadow.operator.creates.begin(REQUEST_ID, LEAD, INSTRUCTIONS, "scripted", "")

    def add(self, line: str) -> None:
        """Record one line of output."""
        operator = self.shadow.operator
        match line.split(" "):
            case ["ack", "create", request_id, agent_id]:
                operator.acknowledge_create(request_id, agent_id)
                self._lead = agent_id
                operator.sends.begin(TEAM_ID, agent_id, team())
            case ["ack", "send", message_id]:
                operator.sends.acknowledge(message_id)
                number = 0 if message_id == TEAM_ID else int(message_id.rpartition(".")[2])
                operator.sends.begin(job_id(number + 1), self._lead, job(number + 1))
            case ["received", message_id, *_payload]:
                assert message_id not in self._acknowledged, "received again, though acknowledged"
                self._received.add(message_id)
                operator.deliveries.begin(message_id)
            case ["ack", "acknowledge", message_id]:
                operator.deliveries.acknowledge(message_id)
                self._acknowledged.add(message_id)
            case _:
                return
        self.lines.add(line)

    def read(self) -> RootSnapshot:
        """Read the root while no process runs, and check it."""
        snapshot = self.shadow.read(files_of(self._root))
        self.shadow.check(snapshot, time.time_ns())
        assert self._received <= set(snapshot.user.enqueued), "a shown message is gone"
        return snapshot

    def settle(self) -> None:
        """Read the root after a recovery, and resolve the calls in flight."""
        self.shadow.settle(self.read(), time.time_ns())

    def check_done(self, snapshot: RootSnapshot, jobs: int) -> None:
        """Check that USER got each result exactly once and has acknowledged all of them."""
        results = [json.dumps(message.payload) for message in snapshot.user.enqueued.values()]
        expected = [json.dumps(result(number)) for number in range(1, jobs + 1)]
        assert sorted(results) == sorted(expected)
        assert self._acknowledged <= set(snapshot.user.delivered) == set(snapshot.user.enqueued)
