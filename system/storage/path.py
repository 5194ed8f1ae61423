"""The parts of a path, cached: a root has few paths, and each is split many times."""

from __future__ import annotations

from functools import lru_cache
from posixpath import basename, dirname
from typing import Final

_KEPT: Final = 4096


@lru_cache(maxsize=_KEPT)
def parent_of(path: str) -> str:
    """Return the directory of a path; empty for a bare name."""
    return dirname(path)


@lru_cache(maxsize=_KEPT)
def name_of(path: str) -> str:
    """Return the last part of a path."""
    return basename(path)
