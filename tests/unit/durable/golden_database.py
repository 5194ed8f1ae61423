"""Writes ``golden/state-1.db.gz``; run it once for each new version, and keep the older files."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from system.durable.applied import apply_line
from system.durable.schema import VERSION
from system.durable.state import STATE, open_state
from system.host import real_host
from tests.unit.durable.durable_bench import ROOT
from tests.unit.system.faulty_files import FaultyHost


class GoldenIds:
    """Ids for a root that is always the same."""

    def uuid_hex(self) -> str:
        return ROOT

    def random_hex(self, digits: int) -> str:
        return "0" * digits


def write(directory: str, target: Path) -> None:
    """Write the database of this version to ``target``."""
    host = real_host(directory)
    here = FaultyHost.of(directory, host.files, host.database, host.workers)
    state = open_state(replace(here.host, files=host.files, ids=GoldenIds()), None)
    state.transact(lambda transaction: apply_line(transaction, "s", 41))
    state.close()
    content = Path(directory, STATE).read_bytes()
    target.write_bytes(gzip.compress(content, mtime=0))


if __name__ == "__main__":
    golden = Path(__file__).parent / "golden"
    with TemporaryDirectory() as made_in:
        write(made_in, golden / f"state-{VERSION}.db.gz")
