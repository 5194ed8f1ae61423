"""The line of the program for each operation of a disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from inspect import currentframe
from typing import Any

from powercut.place import Place, Stack
from sim.disk.disk import Disk


class PlaceRecorder:
    """Records in ``places`` the line of the program for each operation of ``disk``.

    ``adapters`` are source files that make the calls of the disk for the program; their lines
    are no places.
    """

    def __init__(self, disk: Disk, adapters: Collection[str] = ()) -> None:
        self.places: dict[int, Place] = {}
        self._stack = Stack(adapters)
        self._submitted = threading.local()
        disk.observe(self._record)

    def here(self) -> Place | None:
        """Return the line of the program that is running."""
        return self._stack.place(currentframe()) or getattr(self._submitted, "place", None)

    def follow_executors(self) -> None:
        """Give an operation of a thread pool the line that submitted its call.

        The stack of the thread has no line of the program if the call is one of ``os``, as those
        of ``asyncio.to_thread(os.replace, ...)`` and of aiofiles are. This process keeps the
        change of ``ThreadPoolExecutor`` to its end.
        """
        submit = ThreadPoolExecutor.submit

        def followed(
            executor: ThreadPoolExecutor, call: Callable[..., Any], /, *args: Any, **options: Any
        ) -> Future[Any]:
            place = self.here()

            def run(*args: Any, **options: Any) -> Any:
                self._submitted.place = place
                return call(*args, **options)

            return submit(executor, run, *args, **options)

        type.__setattr__(ThreadPoolExecutor, "submit", followed)

    def _record(self, number: int) -> None:
        place = self.here()
        if place is not None:
            self.places[number] = place
