"""The parts of a path. They are kept: each of a root's few paths is taken apart many times."""

from __future__ import annotations

from functools import lru_cache
from posixpath import basename, dirname
from typing import Final

_KEPT: Final = 4096


@lru_cache(maxsize=_KEPT)
def parent_of(path: str) -> str:
    """Return the directory that a path is in; empty for a name alone."""
    return dirname(path)


@lru_cache(maxsize=_KEPT)
def name_of(path: str) -> str:
    """Return the last part of a path."""
    return basename(path)
