"""Recovery of roots as text cases: the logs that a crash left, then the report and the logs.

A line ``NAME:`` begins the log of a session; ``user:`` is that of USER. Ada, Bob and Eve have
the agent ids ``aaaa…``, ``bbbb…``, ``eeee…`` and the session ids ``1111…``, ``2222…``, ``3333…``.
The lines below it:

    created [parent=NAME]                     session.created and agent.created
    message ID from NAME                      message.enqueued
    started TURN shown=ID,ID                  turn.start
    completed TURN shown=ID [to=NAME:ID ...] [spawned=NAME] [terminate]
    delivered ID
    terminated
    gap                                       a line number is left out
    record STATE                              session.json with this state
    raw record b'...'                         session.json with these bytes
    torn b'...'                               bytes behind the last line

A session without a ``record`` line has no record. A second recovery must change nothing.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from system.host import real_host, run
from system.ports import Json, JsonObject
from system.providers.scripted import ScriptedProvider
from system.recovery.recovery_text import recovery_text
from system.runtime import Options, Runtime
from system.sessions.session import SessionRecord, SessionState, encode_record
from system.storage.line import Line, encode_line
from tests.unit.system.faulty_files import FaultyHost
from tests.unit.system.logs import NOW
from tests.unit.system.text_cases import Case, check_cases

CASES: Final = Path(__file__).parent / "root_cases"
AGENTS: Final = {"ada": "a" * 32, "bob": "b" * 32, "eve": "e" * 32}
SESSIONS: Final = {"ada": "1" * 32, "bob": "2" * 32, "eve": "3" * 32, "user": "0" * 32}
USER_LOG: Final = "user/events.jsonl"
NAMES: Final = {
    **{agent: name for name, agent in AGENTS.items()},
    **{session: name for name, session in SESSIONS.items()},
}
_ID: Final = re.compile(r"[0-9a-f]{32}")
_CREATED: Final = {"identity": "", "model": "", "provider": "scripted", "system_prompt": "be"}

Event = tuple[str, JsonObject]


def sender_of(name: str) -> str:
    """Return the id under which a name sends and receives."""
    return AGENTS.get(name, name)


def message(message_id: str, sender: str, recipient: str) -> JsonObject:
    """Return the members of a message."""
    return {
        "kind": "text",
        "message_id": message_id,
        "metadata": {},
        "payload": f"the text of {message_id}",
        "recipient": sender_of(recipient),
        "reply_to": None,
        "sender": sender_of(sender),
        "timestamp": NOW,
    }


def spawned(name: str) -> JsonObject:
    """Return the member of a turn's line that spawns an agent."""
    return {
        "agent_id": AGENTS[name],
        "bootstrap_id": f"bootstrap of {name}",
        "instructions": "be",
        "model": "",
        "name": name,
        "provider": "scripted",
        "session_id": SESSIONS[name],
    }


def completed(name: str, turn_id: str, words: list[str]) -> JsonObject:
    """Return the members of ``turn.complete``."""
    options = [word.partition("=") for word in words]
    outbox: list[Json] = []
    children: list[Json] = []
    shown: list[Json] = []
    for key, _, value in options:
        if key == "to":
            recipient, _, message_id = value.partition(":")
            outbox.append(message(message_id, name, recipient))
        elif key == "spawned":
            children.append(spawned(value))
        elif key == "shown":
            shown += value.split(",")
    return {
        "outbox": outbox,
        "presented": shown,
        "provider": {"identity": "", "name": "scripted"},
        "response": "done",
        "spawned": children,
        "terminate": "terminate" in words,
        "trigger_id": None,
        "turn_id": turn_id,
    }


def events_of(name: str, source: str) -> list[Event]:
    """Return the events that one line of a case stands for."""
    verb, *words = source.split()
    match verb:
        case "created":
            parent = words[0].removeprefix("parent=") if words else ""
            data: JsonObject = {
                "agent_id": AGENTS[name],
                "instructions": "be",
                "name": name,
                "parent_session_id": SESSIONS[parent] if parent else None,
                "request_id": None,
            }
            return [("session.created", {**_CREATED}), ("agent.created", data)]
        case "message":
            return [("message.enqueued", message(words[0], words[2], _recipient(name)))]
        case "started":
            shown: list[Json] = [*words[1].removeprefix("shown=").split(",")]
            prompt: JsonObject = {"presented": shown, "prompt": "[]", "turn_id": words[0]}
            return [("turn.start", prompt)]
        case "completed":
            return [("turn.complete", completed(name, words[0], words[1:]))]
        case "delivered":
            return [("message.delivered", {"message_id": words[0]})]
        case "terminated":
            return [("agent.terminated", {"agent_id": AGENTS[name]})]
    raise AssertionError(f"not a line of a case: {source!r}")


def _recipient(name: str) -> str:
    return "USER" if name == "user" else name


def write_root(here: FaultyHost, case: Case) -> None:
    """Write the files that a case describes."""
    name, seq = "", 0
    logs: dict[str, bytes] = {}
    for source in case.given:
        if source.endswith(":"):
            name, seq = source.removesuffix(":"), 0
            logs[name] = b""
        elif source == "gap":
            seq += 1
        elif source.startswith("torn "):
            logs[name] += ast.literal_eval(source.removeprefix("torn "))
        elif source.startswith(("record ", "raw record ")):
            here.write(f"agents/{SESSIONS[name]}/session.json", _record(name, source))
        else:
            for event, data in events_of(name, source):
                seq += 1
                logs[name] += encode_line(Line(seq, NOW, SESSIONS[name], event, data), "log")
    for name, content in logs.items():
        path = USER_LOG if name == "user" else f"agents/{SESSIONS[name]}/events.jsonl"
        here.write(path, content)


def _record(name: str, source: str) -> bytes:
    if source.startswith("raw record "):
        content = ast.literal_eval(source.removeprefix("raw record "))
        assert isinstance(content, bytes)
        return content
    state = SessionState(source.removeprefix("record "))
    return encode_record(SessionRecord(SESSIONS[name], "scripted", "", state))


def named(text: str) -> str:
    """Return a text with names instead of ids."""
    return _ID.sub(lambda found: NAMES.get(found[0], "<id>"), text)


def shown(here: FaultyHost) -> Iterator[str]:
    """Yield the state of the record and the events of each session."""
    for session_id in sorted(here.names("agents")) if "agents" in here.names() else ():
        yield f"{NAMES.get(session_id, '<id>')}:"
        folder = f"agents/{session_id}"
        for name in here.names(folder):
            if name == "session.json":
                yield f"record {json.loads(here.read(f'{folder}/{name}'))['state']}"
            elif name == "events.jsonl":
                yield from _events(here.read(f"{folder}/{name}"))
            else:
                yield f"file {name}"
    if user := list(_events(here.read(USER_LOG))):
        yield from ("user:", *user)


def _events(log: bytes) -> Iterator[str]:
    for encoded in log.splitlines():
        line = json.loads(encoded)
        data = line["data"]
        about = data.get("message_id") or data.get("turn_id") or data.get("name") or ""
        yield named(f"{line['seq']} {line['event']} {about}".rstrip())


def recovered(case: Case, root: Path) -> tuple[str, ...]:
    """Recover the case's root; return the report and the files, as the case shows them."""
    host = real_host(str(root))
    here = FaultyHost.of(str(root), host.files, host.database, host.workers)
    _recover(here)
    write_root(here, case)
    report = _recover(here)
    files = list(shown(here))
    again = _recover(here)
    assert list(shown(here)) == files
    assert "redone" not in again
    return (*report.splitlines(), *files)


def _recover(here: FaultyHost) -> str:
    async def recover() -> str:
        providers = {"scripted": ScriptedProvider()}
        runtime = await Runtime.recover(here.host, providers, Options())
        lines = list(recovery_text(runtime.report))
        await runtime.close()
        return named("\n".join(lines))

    return run(recover())


@pytest.mark.parametrize("path", sorted(CASES.glob("*.txt")), ids=lambda path: path.stem)
def test_recovery_of_a_root(
    path: Path,
    tmp_path: Path,
    subtests: pytest.Subtests,
    request: pytest.FixtureRequest,
) -> None:
    roots = (tmp_path / str(number) for number in range(10_000))
    rewrite = bool(request.config.getoption("--rewrite-cases"))
    check_cases(path, lambda case: recovered(case, next(roots)), subtests, rewrite=rewrite)
