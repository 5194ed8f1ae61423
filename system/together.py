"""Coroutines that are done at the same time, and end together."""

from __future__ import annotations

from asyncio import gather
from collections.abc import Coroutine, Iterable
from typing import Any


async def together(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do works at the same time; return, or raise the first exception, when all have ended.

    ``gather`` alone raises while the others go on. A recovery that is cancelled would free the
    lock of the root, and its threads would still write to logs that another process has opened.
    """
    for failure in await gather(*works, return_exceptions=True):
        if failure is not None:
            raise failure
