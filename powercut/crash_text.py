"""The text of a power cut: the unsynced micro-operations that it lost, with their paths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sim.disk.crash.micro_operation import MicroOperation
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk

_INODE: Final = re.compile(r"inode (\d+)")


def lost_lines(
    micros: Sequence[MicroOperation], survivors: SurvivorSet, names: Mapping[int, str]
) -> Iterator[str]:
    """Yield a line for each lost or torn micro-operation; ``names`` are paths by inode number."""
    texts = [_INODE.sub(lambda found: _name(found, names), str(micro)) for micro in micros]
    for index in survivors.lost:
        stale = ", its place shows stale bytes" if index in survivors.stale else ""
        yield f"lost   {texts[index]}{stale}"
    for index, kept in survivors.torn:
        yield f"torn   {texts[index]}: {kept} bytes survived"
    if micros and not (survivors.lost or survivors.torn):
        yield f"lost   nothing of {len(micros)} unsynced"


def names_on(disk: Disk) -> dict[int, str]:
    """Return the path of every inode that has one in the page cache of this disk."""
    return {inode.number: path for path, inode in disk.snapshot().tree()}


def _name(found: re.Match[str], names: Mapping[int, str]) -> str:
    return names.get(int(found[1]), f"{found[0]} (no name)")
