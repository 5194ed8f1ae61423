"""The files that a recovery of the recording leaves (docs/recording.md, Recovery)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final
from zlib import crc32

from oracles.violation import Garbage, TornRecord

_QUARANTINE: Final = r"(\.quarantine\.\d+)?"
_KNOWN: Final = {
    "wal": re.compile(r"\d{8}\.wal" + _QUARANTINE),
    "snapshots": re.compile(r"\d{8}\.pack" + _QUARANTINE),
    "records": re.compile(r"exec-[0-9a-f]{16}\.json(\.gz)?" + _QUARANTINE + r"|\d{8}\.pack"),
}
_SEAL: Final = re.compile(rb'(?P<body>\{.*),"crc":"(?P<crc>[0-9a-f]{8})"\}\n?', re.DOTALL)


def check_recovered_names(names: Mapping[str, Iterable[str]]) -> None:
    """Check the names in each directory after a recovery without a fault; raise ``Garbage``.

    The recovery has moved the contents of the log to records, so there is no segment, no snapshot
    and no temporary file.
    """
    for directory, pattern in _KNOWN.items():
        for name in names.get(directory, ()):
            if directory == "wal" and name == "current":
                continue
            is_known = pattern.fullmatch(name)
            if is_known is None or (directory != "records" and is_known[1] is None):
                raise Garbage("a file is left that is never read", directory=directory, name=name)


def checkpoint_number(content: bytes) -> int:
    """Return the number in a sealed checkpoint; raise ``TornRecord`` for other bytes."""
    return _member(content, "sequence")


def first_segment(content: bytes) -> int:
    """Return the number of the first segment that is read; raise as ``checkpoint_number``."""
    return _member(content, "segment")


def _member(content: bytes, name: str) -> int:
    sealed = _SEAL.fullmatch(content)
    body = b"" if sealed is None else sealed["body"] + b"}"
    if sealed is None or f"{crc32(body):08x}" != sealed["crc"].decode("ascii"):
        raise TornRecord("the checkpoint is not sealed", content=content)
    members = json.loads(body)
    number = members[name]
    if members["v"] != 1 or not isinstance(number, int):
        raise TornRecord("the checkpoint has other members", content=content)
    return number
