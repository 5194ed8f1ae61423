"""A root with records, and the commands that are run on it."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from system.cli import cli
from system.host import real_host
from system.runtime import Options, Runtime
from tests.unit.recording.test_wal_cases import files_below
from tests.unit.system.agents.fake_provider import FakeProvider

OPTIONS = Options()


async def team(root: Path, *, kill: bool = False, options: Options = OPTIONS) -> list[str]:
    """Run two turns on a root, the first of which fails once; return the execution ids."""
    runtime = await Runtime.open(real_host(str(root)), {"scripted": FakeProvider()}, options)
    ada = await runtime.create_agent("Ada", "Answer.")
    for text in ("one", "two"):
        await runtime.send(ada, text)
        await runtime.idle()
    ids = [] if runtime.records is None else list(runtime.records.list_all())
    if kill:
        runtime._root.close()
    else:
        await runtime.close()
    return ids


def invoke(root: Path, *arguments: str) -> Result:
    """Run a command on a root, which must not change."""
    before = files_below(root)
    result = CliRunner().invoke(cli, [*arguments, "--root", str(root)])
    assert files_below(root) == before
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result
