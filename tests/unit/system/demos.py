"""Runs of the demo in this process, and their output."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from system import cli as command


def demo(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command.cli, ["demo", "--root", str(root), *arguments])


def acknowledgements(result: Result) -> list[str]:
    return [line for line in result.stdout.splitlines() if line.startswith(("ack", "received"))]


def received_jobs(result: Result) -> list[int]:
    received = [
        line.split(" ", 2)[2] for line in acknowledgements(result) if line.startswith("received")
    ]
    return sorted(json.loads(payload)["job"] for payload in received)


def contents(root: Path) -> dict[str, bytes]:
    """Every file but the lock, which counts the boots."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.name != "runtime.lock"
    }


def log_of(root: Path, name: str) -> Path:
    """The path of an agent's log, from the root on."""
    made = f'"name":"{name}"'.encode()
    logs = root.glob("agents/*/events.jsonl")
    found = next(log for log in logs if made in log.read_bytes().splitlines()[1])
    return found.relative_to(root)
