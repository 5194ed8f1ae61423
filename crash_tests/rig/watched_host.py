"""A host whose operations are traced to their places in ``system``."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

import system.host
from powercut.fuzz.coverage import Watch
from sim.disk.disk import Disk
from system.ports import Host, Workers

T = TypeVar("T")

_PACKAGE: Final = os.path.dirname(str(system.__file__))
_HOST: Final = str(system.host.__file__)


class WatchedWorkers:
    """Workers that keep the callers of each call; implements ``system.ports.Workers``."""

    def __init__(self, workers: Workers, watch: Watch) -> None:
        self._workers = workers
        self._watch = watch

    async def run(self, call: Callable[[], T]) -> T:
        """Run ``call`` on the wrapped workers."""
        return await self._workers.run(self._watch.hand_over(call))


def watched(host: Host, disk: Disk) -> tuple[Host, Watch]:
    """Return ``host`` with such workers, and the watch that records the sites of ``disk``."""
    watch = Watch(disk, _PACKAGE, _HOST)
    return replace(host, workers=WatchedWorkers(host.workers, watch)), watch
