"""The commands on recorded executions: output, exit codes, and that they write nothing."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from system.cli import cli
from system.host import real_host
from system.ports import Ids, Json
from system.recording.open_recording import open_recording
from system.recording.records.record import ExecutionRecord
from system.recording.stores.file_store import FileExecutionStore
from system.recording.stores.record_file import encode_record
from system.recording.wal_store import WalExecutionRecorder
from system.runtime import Runtime
from tests.unit.recording.command_root import invoke, team
from tests.unit.recording.executions import (
    ENVELOPE,
    EVENTS,
    finished,
    record_events,
    run,
)
from tests.unit.system.agents.fake_provider import FakeProvider


def record_of(root: Path, execution_id: str) -> ExecutionRecord:
    return FileExecutionStore(real_host(str(root))).load(execution_id)


def spoil(root: Path, execution_id: str) -> None:
    """Write a damaged record into a file of its own, which counts."""
    content = encode_record(record_of(root, execution_id))
    path = root / "records" / f"{execution_id}.json"
    path.write_bytes(content.replace(b"scripted", b"scriptum"))


def test_records_are_listed(root: Path, ids: list[str]) -> None:
    result = invoke(root, "records", "list")
    assert result.exit_code == 0
    header, *rows = result.stdout.splitlines()
    assert header.split() == ["executionId", "createdUtcIso", "status", "agent", "response"]
    assert [row.split()[0] for row in rows] == ids
    assert {tuple(row.split()[2:]) for row in rows} == {("completed", "Ada", "success")}
    listed = json.loads(invoke(root, "records", "list", "--json").stdout)
    assert [row["executionId"] for row in listed] == ids


def test_a_damaged_record_is_listed_and_the_others_are_served(root: Path, ids: list[str]) -> None:
    spoil(root, ids[0])
    result = invoke(root, "records", "list")
    assert result.exit_code == 1
    assert "corrupted" in result.stdout
    assert "completed" in result.stdout
    assert f"{ids[0]}.json" in result.stderr
    verified = invoke(root, "records", "verify")
    assert verified.exit_code == 1
    assert f"{ids[0]}  damaged" in verified.stdout
    assert f"{ids[1]}  sound (record, hash version 2)" in verified.stdout
    assert invoke(root, "records", "verify", ids[1]).exit_code == 0
    shown = invoke(root, "records", "show", ids[0])
    assert shown.exit_code == 1
    assert json.loads(shown.stdout)["header"]["executionId"] == ids[0]
    (root / "records" / f"{ids[0]}.json").write_bytes(b"")
    assert invoke(root, "records", "show", ids[0]).exit_code == 1


def test_a_record_is_shown(root: Path, ids: list[str]) -> None:
    result = invoke(root, "records", "show", ids[0])
    assert json.loads(result.stdout) == record_of(root, ids[0]).to_dict()


def test_unknown_events_are_named(root: Path) -> None:
    record = finished()
    events = (*record.events[:3], replace(record.events[3], type="NEWS"), *record.events[4:])
    odd = replace(record, events=events).sealed()
    (root / "records" / f"{odd.execution_id}.json").write_bytes(encode_record(odd))
    result = invoke(root, "records", "verify", odd.execution_id)
    assert "unknown events: NEWS" in result.stdout


@pytest.mark.parametrize(
    "command",
    [("records", "show"), ("records", "verify"), ("replay",), ("records", "invalidate")],
)
@pytest.mark.parametrize(
    "unknown", ["exec-" + "0" * 16, "exec-../../etc/pass", "EXEC-1", "exec-\udcff"]
)
def test_an_unknown_id_is_a_mistake(root: Path, command: tuple[str, ...], unknown: str) -> None:
    more = ("--reason", "x", "--by", "Ada") if "invalidate" in command else ()
    result = CliRunner().invoke(cli, [*command, unknown, *more, "--root", str(root)])
    assert ("there is no record of execution" in result.stderr, result.exit_code) == (True, 2)
    assert "Traceback" not in result.output


@pytest.mark.parametrize("command", ["records list", "records verify", "incomplete"])
def test_a_directory_that_is_no_root_is_a_mistake(tmp_path: Path, command: str) -> None:
    cure = "; name a root of this runtime"
    for root, reason in (
        ("", f"it is empty{cure}"),
        (str(tmp_path), f"neither root.json nor wal{cure}"),
    ):
        result = CliRunner().invoke(cli, [*command.split(), "--root", root])
        assert result.exit_code == 2
        assert reason in result.stderr
    missing = CliRunner().invoke(cli, [*command.split(), "--root", str(tmp_path / "none")])
    assert missing.exit_code == 2
    assert not (tmp_path / "none").exists()


def test_a_root_in_use_can_be_read_and_not_changed(tmp_path: Path) -> None:
    async def work() -> None:
        runtime = await Runtime.open(real_host(str(tmp_path)), {"scripted": FakeProvider()})
        ada = await runtime.create_agent("Ada")
        await runtime.send(ada, "one")
        await runtime.idle()
        listed = invoke(tmp_path, "records", "list")
        assert "completed" in listed.stdout
        (execution_id,) = [row.split()[0] for row in listed.stdout.splitlines()[1:]]
        assert invoke(tmp_path, "replay", execution_id).exit_code == 0
        await runtime.close()

    run(work())


def test_an_invalidation_needs_the_root(root: Path, ids: list[str]) -> None:
    arguments = ["records", "invalidate", ids[0], "--reason", "wrong", "--by", "Ada"]

    async def opened() -> Runtime:
        return await Runtime.open(real_host(str(root)), {"scripted": FakeProvider()})

    runtime = run(opened())
    refused = CliRunner().invoke(cli, [*arguments, "--root", str(root)])
    assert refused.exit_code == 2
    assert "another runtime holds it" in refused.stderr
    runtime._root.close()
    done = CliRunner().invoke(cli, [*arguments, "--root", str(root)])
    assert (done.exit_code, done.stdout) == (0, f"invalidated {ids[0]}\n")
    assert "invalidated" in invoke(root, "records", "list").stdout
    refused = invoke(root, "replay", ids[0])
    assert refused.exit_code == 10
    assert "not replayable: manually_invalidated" in refused.stderr


def test_an_argument_that_is_not_utf_8_is_a_mistake(root: Path, ids: list[str]) -> None:
    for command in (
        ["records", "invalidate", ids[0], "--reason", "\udcff", "--by", "Ada"],
        ["triggers", "show", "\udcff"],
        ["triggers", "resolve", "\udcff", "--retry"],
        ["activities", "resolve", "\udcff", "--again", "--by", "Ada"],
    ):
        refused = CliRunner().invoke(cli, [*command, "--root", str(root)])
        assert refused.exit_code == 2
        assert "give arguments in UTF-8" in refused.stderr
    assert "invalidated" not in invoke(root, "records", "list").stdout


def test_an_invalidation_recovers_the_root_first(tmp_path: Path) -> None:
    ids = run(team(tmp_path, kill=True))
    arguments = ["records", "invalidate", ids[0], "--reason", "wrong", "--by", "Ada"]
    assert CliRunner().invoke(cli, [*arguments, "--root", str(tmp_path)]).exit_code == 0
    listed = json.loads(invoke(tmp_path, "records", "list", "--json").stdout)
    assert {row["status"] for row in listed} == {"invalidated", "completed"}
    empty = CliRunner().invoke(
        cli, ["records", "invalidate", ids[1], "--reason", "", "--by", "A", "--root", str(tmp_path)]
    )
    assert empty.exit_code == 2


def test_a_replay_prints_the_result(
    root: Path, ids: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    result = json.loads(invoke(root, "replay", ids[0]).stdout)
    assert result["originalExecutionId"] == ids[0]
    assert result["status"] == "success"
    place = tmp_path_factory.mktemp("results")
    output = place / "out.txt"
    done = invoke(root, "replay", ids[0], "--output", str(output))
    assert (done.exit_code, done.stdout) == (0, "")
    assert json.loads(output.read_text()) == result
    refused = invoke(root, "replay", ids[0], "--output", str(place / "none" / "out.json"))
    assert refused.exit_code == 2
    assert "nothing was written" in refused.stderr


def test_a_result_takes_the_place_of_no_pipe_and_no_link(
    root: Path, ids: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("results")
    pipe, link, target = place / "pipe", place / "link", place / "target"
    os.mkfifo(pipe)
    link.symlink_to(target)
    refused = invoke(root, "replay", ids[0], "--output", str(pipe))
    assert (refused.exit_code, pipe.is_fifo()) == (2, True)
    assert "it is not a regular file; nothing was written" in refused.stderr
    assert invoke(root, "replay", ids[0], "--output", str(link)).exit_code == 0
    assert link.is_symlink()
    assert json.loads(target.read_text())["originalExecutionId"] == ids[0]


def envelope_of(root: Path, execution_id: str) -> Any:
    return record_of(root, execution_id).envelope


def test_an_envelope_is_verified(root: Path, ids: list[str]) -> None:
    path = root / "envelope.json"
    envelope = envelope_of(root, ids[0])
    path.write_text(json.dumps(envelope))
    assert invoke(root, "replay", ids[0], "--verify-envelope", str(path)).exit_code == 0
    envelope["agent"] = "Bob"
    del envelope["model"]
    envelope["payload"] = [*envelope["payload"], 1]
    envelope["more"] = [1]
    path.write_text(json.dumps(envelope))
    plain = invoke(root, "replay", ids[0], "--verify-envelope", str(path))
    assert (plain.exit_code, plain.stdout) == (11, "")
    assert "Envelope modified since original execution" in plain.stderr
    shown = invoke(root, "replay", ids[0], "--verify-envelope", str(path), "--show-diff", "--force")
    assert shown.exit_code == 11
    assert shown.stdout.splitlines() == [
        'agent: "Ada" -> "Bob"',
        'model: "" -> (missing)',
        "more: (missing) -> [1]",
        "payload[1]: (missing) -> 1",
    ]
    assert invoke(root, "replay", ids[0], "--show-diff").exit_code == 2


def test_differences_to_the_envelope_of_a_damaged_record_are_shown(
    root: Path, ids: list[str]
) -> None:
    spoil(root, ids[0])
    path = root / "envelope.json"
    path.write_text('{"agent": "Bob"}')
    options = ("--verify-envelope", str(path), "--show-diff")
    assert invoke(root, "replay", ids[0], *options).exit_code == 1
    shown = invoke(root, "replay", ids[0], *options, "--force")
    assert shown.exit_code == 11
    assert 'agent: "Ada" -> "Bob"' in shown.stdout


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b'{"a":NaN}', b'{"a":1,"a":2}', b"\xff", b'{"a":"\\ud800"}']
)
def test_a_bad_envelope_file_is_a_mistake(root: Path, ids: list[str], content: bytes) -> None:
    path = root / "envelope.json"
    path.write_bytes(content)
    result = invoke(root, "replay", ids[0], "--verify-envelope", str(path))
    assert result.exit_code == 2
    assert str(path) in result.stderr
    assert "give a file with one JSON object" in result.stderr


def test_an_envelope_file_that_is_no_file_is_a_mistake(root: Path, ids: list[str]) -> None:
    os.mkfifo(root / "fifo")
    for name in ("fifo", "none", "records"):
        result = CliRunner().invoke(
            cli,
            ["replay", ids[0], "--verify-envelope", str(root / name), "--root", str(root)],
        )
        assert result.exit_code == 2
        assert name in result.stderr


async def interrupted(root: Path, retry_of: str | None = None, ids: Ids | None = None) -> str:
    """Leave an execution in the log of a root; return its id."""
    host = real_host(str(root))
    host = host if ids is None else replace(host, ids=ids)
    recording, _ = await open_recording(host)
    recorder = WalExecutionRecorder(host, recording)
    execution_id = recorder.start(ENVELOPE)
    decision: Json = {"agent": "a", "retryOf": retry_of}
    record_events(recorder, [EVENTS[0], (EVENTS[1][0], decision)])
    await recorder.barrier()
    record_events(recorder, EVENTS[2:3])
    return execution_id


def test_interrupted_executions_are_listed_until_they_are_retried(root: Path) -> None:
    none = invoke(root, "incomplete")
    assert (none.exit_code, none.output) == (0, "")
    first = run(interrupted(root))
    found = invoke(root, "incomplete")
    assert found.exit_code == 1
    assert found.stdout.splitlines()[1].split() == [
        first, "during_agent_execution", "check_agent_idempotency", "confirm",
        "a" * 32, "-",
    ]  # fmt: skip
    second = run(interrupted(root, first))
    listed = json.loads(invoke(root, "incomplete", "--json").stdout)
    assert [each["executionId"] for each in listed] == [second]
    everything = json.loads(invoke(root, "incomplete", "--all", "--json").stdout)
    assert {each["executionId"]: each["retriedBy"] for each in everything} == {
        first: second, second: None,
    }  # fmt: skip
    spoil(root, first)
    damaged = invoke(root, "incomplete")
    assert damaged.exit_code == 1


def test_a_forced_replay_says_so(root: Path) -> None:
    execution_id = run(interrupted(root))
    refused = invoke(root, "replay", execution_id)
    assert refused.exit_code == 10
    assert "not replayable: execution_incomplete; --force" in refused.stderr
    forced = invoke(root, "replay", execution_id, "--force")
    assert forced.exit_code == 0
    assert json.loads(forced.stdout)["payload"] is None
    assert forced.stderr == "Forced replay of non-replayable record\n"


def test_a_replay_names_the_other_reasons(root: Path, ids: list[str]) -> None:
    execution_id = run(interrupted(root))
    CliRunner().invoke(
        cli,
        [
            "records",
            "invalidate",
            execution_id,
            "--reason",
            "x",
            "--by",
            "Ada",
            "--root",
            str(root),
        ],
    )
    refused = invoke(root, "replay", execution_id)
    assert "not replayable: execution_incomplete (also: manually_invalidated)" in refused.stderr
    assert len(ids) == 2


def test_damage_of_the_log_is_found(root: Path) -> None:
    run(interrupted(root))
    (segment,) = (root / "wal").glob("*.wal")
    content = segment.read_bytes()
    segment.write_bytes(content[:9] + b"?" + content[10:])
    result = invoke(root, "records", "verify")
    assert result.exit_code == 1
    assert "26 damaged bytes at offset 0: its header is damaged" in result.stderr
    middle = bytearray(content)
    middle[60] ^= 1
    segment.write_bytes(bytes(middle))
    (root / "wal" / "notes.txt").write_bytes(b"")
    again = invoke(root, "records", "verify")
    assert "it is no part of the log" in again.stderr


def test_executions_are_compared(root: Path, ids: list[str]) -> None:
    assert invoke(root, "diff", ids[0], ids[0]).exit_code == 0
    result = invoke(root, "diff", *ids)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert any(line.startswith("envelope.payload[0].payload: ") for line in lines)
    assert not any(line.startswith("header") for line in lines)
    shorter = invoke(root, "diff", run(interrupted(root)), ids[0])
    assert "events[3]: (missing) -> " in shorter.stdout
    longer = invoke(root, "diff", ids[0], run(interrupted(root)))
    assert "-> (missing)" in longer.stdout


def test_an_interrupted_command_exits_with_130(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_root: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("system.commands.records.records_of", interrupt)
    assert invoke(root, "records", "list").exit_code == 130


@pytest.mark.parametrize("command", [("records", "list"), ("records", "verify"), ("incomplete",)])
def test_records_that_a_damaged_pack_hides_are_reported(
    root: Path, command: tuple[str, ...]
) -> None:
    (pack,) = (root / "records").glob("*.pack")
    assert invoke(root, *command).exit_code == 0
    pack.write_bytes(pack.read_bytes()[:60])
    result = invoke(root, *command)
    assert result.exit_code == 1
    assert "00000001.pack: it does not end with the trailer of a pack" in result.output
    assert "the sessions' logs have the other responses" in result.output
