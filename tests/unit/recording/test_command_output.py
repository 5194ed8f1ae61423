"""The output of commands: it cannot be written, it is interrupted, it has odd texts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from system.host import real_host
from system.ports import Json, JsonObject
from system.recording.open_recording import open_recording
from system.recording.records.envelope_hash import hash_of_envelope
from system.recording.records.frozen_json import FrozenJson
from system.recording.records.record import ExecutionRecord
from system.recording.stores.record_file import encode_record
from system.recording.wal_store import WalExecutionRecorder
from tests.meta.source_tree import ROOT
from tests.unit.recording.command_root import invoke
from tests.unit.recording.executions import (
    ENVELOPE,
    EVENTS,
    FAILURE,
    finished,
    record_events,
    run,
)
from tests.unit.recording.test_commands import interrupted


@pytest.mark.parametrize(
    "command",
    [
        "records list --root ROOT",
        "records show ID --root ROOT",
        "replay ID --root ROOT",
        "diff ID ID2 --root ROOT",
        "demo --root ROOT",
        "demo --help",
        "records -h",
        "--help",
    ],
)
def test_an_output_that_is_full_is_a_mistake(root: Path, ids: list[str], command: str) -> None:
    words = command.replace("ID2", ids[1]).replace("ID", ids[0]).replace("ROOT", str(root)).split()
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "system", *words],
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "the output: No space left on device; write it to another place\n"


@pytest.mark.parametrize(
    ("command", "code"), [("records list --root nothere", 2), ("records list --odd", 2)]
)
def test_an_error_stream_that_is_full_changes_no_exit_code(command: str, code: int) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "system", *command.split()],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=full, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (code, b"")


@pytest.mark.parametrize("command", ["records list", "replay ID"])
def test_a_command_whose_output_has_no_reader_ends_with_141(
    root: Path, ids: list[str], command: str
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "system", *command.replace("ID", ids[0]).split(), "--root", root],
        cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, check=False,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


async def odd_agents(root: Path, *envelopes: JsonObject) -> list[str]:
    """Start executions on a root; return their ids."""
    host = real_host(str(root))
    recording, _ = await open_recording(host)
    ids = [WalExecutionRecorder(host, recording).start(envelope) for envelope in envelopes]
    await recording.close()
    return ids


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
@pytest.mark.parametrize("command", ["records list", "diff ID ID2"])
def test_a_character_that_the_output_lacks_is_escaped(
    root: Path, command: str, encoding: str
) -> None:
    ids = run(odd_agents(root, {"agent": "\u65e5\u672c"}, {"agent": "a", "\u65e5\u672c": 1}))
    words = command.replace("ID2", ids[1]).replace("ID", ids[0]).split()
    done = subprocess.run(
        [sys.executable, "-m", "system", *words, "--root", root], cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": encoding}, capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (int(command.startswith("diff")), b"")
    shown = "\u65e5\u672c" if encoding == "utf-8" else r"\u65e5\u672c"
    assert shown.encode(encoding) in done.stdout


def test_a_replay_that_is_interrupted_exits_with_130(
    root: Path, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_value: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("system.commands.replay.echo_json", interrupt)
    assert invoke(root, "replay", ids[0]).exit_code == 130


def test_a_row_has_one_line_whatever_a_record_has(root: Path, ids: list[str]) -> None:
    run(odd_agents(root, {"agent": "Zo\u00eb\n\x1b[31m"}))
    result = invoke(root, "records", "list")
    assert len(result.stdout.splitlines()) == len(ids) + 2
    assert "Zo\\xeb\\n\\x1b[31m" in result.stdout


@pytest.mark.parametrize(
    "command",
    [
        "records list",
        "records show a\nb",
        "triggers show a\nb",
        "activities resolve a\nb --by C --again",
    ],
)
@pytest.mark.usefixtures("ids")
def test_a_sentence_has_one_line_whatever_names_it_has(
    root: Path, tmp_path_factory: pytest.TempPathFactory, command: str
) -> None:
    odd = root.rename(tmp_path_factory.mktemp("moved") / "odd\n\x1b[31m")
    (odd / "wal" / "notes\n\x1b[31m").write_bytes(b"")
    result = invoke(odd, *command.split(" "))
    (sentence,) = result.stderr.splitlines()
    assert "\\n" in sentence
    assert "\x1b" not in sentence


def test_a_difference_has_one_line_whatever_the_keys_are(root: Path, tmp_path: Path) -> None:
    one = finished(envelope={"Zo\u00eb": {"a\nb\x1b[31m": 1}})
    header = replace(one.header, execution_id="exec-" + "2" * 16)
    envelope = '{"Zo\u00eb": {"a\\nb\\u001b[31m": 2, "c\\rd": "e\\nf"}}'
    other = replace(one, header=header, frozen_envelope=FrozenJson.of(json.loads(envelope)))
    hashed = hash_of_envelope(other.frozen_envelope)
    other = replace(other, header=replace(header, envelope_hash=hashed)).sealed()
    save(root, one, other)
    expected = [
        "Zo\u00eb.a\\nb\\x1b[31m: 1 -> 2",
        'Zo\u00eb.c\\rd: (missing) -> "e\\nf"',
    ]
    result = invoke(root, "diff", one.execution_id, other.execution_id)
    assert result.stdout.splitlines() == [f"envelope.{line}" for line in expected]
    file = tmp_path / "envelope.json"
    file.write_text(envelope, "utf-8")
    options = ("--verify-envelope", str(file), "--show-diff")
    assert invoke(root, "replay", one.execution_id, *options).stdout.splitlines() == expected


def test_the_types_of_unknown_events_are_on_one_line(root: Path) -> None:
    record = finished()
    events = (*record.events[:3], replace(record.events[3], type="A\nB"), *record.events[4:])
    odd = replace(record, events=events).sealed()
    save(root, odd)
    result = invoke(root, "records", "verify", odd.execution_id)
    assert result.stdout == (
        f"{odd.execution_id}  sound (record, hash version 2, unknown events: A\\nB)\n"
    )


def save(root: Path, *records: ExecutionRecord) -> None:
    """Write records into files of their own."""
    for record in records:
        path = root / "records" / f"{record.execution_id}.json"
        path.write_bytes(encode_record(record))


def test_a_difference_has_a_path_and_times_do_not_count(root: Path) -> None:
    one = finished()
    route = replace(one.events[1], frozen_payload=FrozenJson.of({"agent": "b"}))
    odd = replace(one.events[3], type="NEWS", timestamp="2026-01-01T00:00:00.000000Z")
    header = replace(one.header, execution_id="exec-" + "2" * 16)
    events = one.events[0], route, one.events[2], odd
    two = replace(one, header=header, events=events, frozen_response=None).sealed()
    save(root, one, two)
    result = invoke(root, "diff", one.execution_id, two.execution_id)
    assert (result.exit_code, result.stderr) == (1, "")
    final = '{"metadata":{"provider":"scripted"},"payload":{"response":"Hello"},"status":"success"}'
    agent = '"' + "a" * 32 + '"'
    assert result.stdout.splitlines() == [
        f'events[1].payload.agent: {agent} -> "b"',
        'events[1].payload.name: "Ada" -> (missing)',
        "events[1].payload.retryOf: null -> (missing)",
        'events[3].type: "AGENT_ATTEMPT_END" -> "NEWS"',
        f'events[4]: {{"payload":{final},"type":"FINAL_RESPONSE"}} -> (missing)',
        f"finalResponse: {final} -> null",
        f'routerDecision.agent: {agent} -> "b"',
        'routerDecision.name: "Ada" -> (missing)',
        "routerDecision.retryOf: null -> (missing)",
    ]


def test_an_output_file_is_kept_if_the_replay_fails(
    root: Path, ids: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    output = tmp_path_factory.mktemp("results") / "out.json"
    output.write_text("earlier")
    envelope = output.with_name("envelope.json")
    envelope.write_text("{}")
    for execution_id, more, code in (
        (ids[0], ("--verify-envelope", str(envelope)), 11),
        (run(interrupted(root)), (), 10),
        ("exec-" + "0" * 16, (), 2),
    ):
        failed = invoke(root, "replay", execution_id, *more, "--output", str(output))
        assert (failed.exit_code, output.read_text()) == (code, "earlier")


def test_a_result_is_not_written_into_the_root(
    root: Path, ids: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("links")
    (place / "root").symlink_to(root)
    (place / "checkpoint").symlink_to(root / "checkpoint")
    for output in (
        root / "root.json",
        root / "new.json",
        root / "records" / ".." / "checkpoint",
        place / "root" / "wal" / "new",
        place / "checkpoint",
    ):
        for path in (root, place / "root"):
            refused = invoke(path, "replay", ids[0], "--output", str(output))
            assert (refused.exit_code, refused.stdout) == (2, "")
            assert refused.stderr.endswith(
                ": replay writes nothing in the root; name another directory\n"
            )
    beside = root.parent / f"{root.name}.json"
    assert invoke(root, "replay", ids[0], "--output", str(beside)).exit_code == 0
    beside.unlink()


def test_executions_that_were_retried_are_shown_and_not_found(root: Path) -> None:
    async def retried(first: str) -> None:
        host = real_host(str(root))
        recording, _ = await open_recording(host)
        recorder = WalExecutionRecorder(host, recording)
        recorder.start(ENVELOPE)
        decision: Json = {"agent": "a", "retryOf": first}
        record_events(recorder, [EVENTS[0], (EVENTS[1][0], decision)])
        await recorder.finalize(FAILURE)

    first = run(interrupted(root))
    run(retried(first))
    assert (invoke(root, "incomplete").output, invoke(root, "incomplete").exit_code) == ("", 0)
    shown = invoke(root, "incomplete", "--all")
    assert (first in shown.stdout, shown.exit_code) == (True, 0)
