"""Coroutines that run at the same time, and have all ended before the caller goes on."""

from __future__ import annotations

from asyncio import gather
from collections.abc import Coroutine, Iterable
from typing import Any


async def together(coroutines: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines at the same time; return, or raise the first exception, when all have ended.

    ``gather`` alone raises while the others go on. A recovery that is cancelled would free the
    lock of the root, and its threads would still write to logs that another process has opened.
    """
    for failure in await gather(*coroutines, return_exceptions=True):
        if failure is not None:
            raise failure
