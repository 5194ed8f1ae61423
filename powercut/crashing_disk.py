"""A disk for state machines of your own: it crashes inside a rule, and boots again.

``CrashingDisk.crash`` ends the running process at one operation of a ``with`` block::

    class StoreMachine(RuleBasedStateMachine):
        def __init__(self):
            super().__init__()
            self.disk = CrashingDisk(model="ext4-ordered")
            self.store = Store(self.disk.process)

        @rule(data=st.data(), value=st.binary())
        def put(self, data, value):
            self.expected.begin(value)
            with self.disk.crash(HypothesisChoices(data)):
                self.store.put(value)
                self.expected.acknowledge()
            self.store = Store(self.disk.process)
            self.expected.settle(self.store.get(), "the value")

The block may be the recovery, which crashes it. Nothing here needs Hypothesis: any
``Choices`` decide where the crash happens and which unsynced operations survive it.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final

from faults.crash_counter import CrashCounter
from faults.crash_point import CrashKind, CrashPoint, Phase
from powercut.crash_text import lost_lines, names_on
from sim.choices import Choices
from sim.disk.calls.process import Process
from sim.disk.crash.choose_survivors import choose_survivors
from sim.disk.crash.image import CREATION_NS, Image
from sim.disk.crash.persistence import PersistenceModel, model_named
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import TICK_NS, Disk
from sim.errors import HarnessError, PowerOff, SimulatedCrash

_OLD_PROCESS: Final = (
    "the block used a process that an earlier crash has ended; start the system again after each "
    "crash, on disk.process"
)


class CrashingDisk:
    """One disk from crash to crash; ``process`` is the process that runs on it now.

    ``model`` is a persistence model or its name, ``image`` the disk of the first boot (empty
    if omitted). ``most_operations`` bounds the operations that a ``crash`` block may do before
    it is interrupted; a crash planned later than the end of the block happens at its end.

    ``crashes`` are the crash points so far. ``last_crash`` is the latest one as text: the
    operation it interrupted and each micro-operation that it lost.
    """

    def __init__(
        self,
        model: PersistenceModel | str = "posix",
        image: Image | None = None,
        most_operations: int = 15,
    ) -> None:
        self.model = model_named(model) if isinstance(model, str) else model
        self.most_operations = most_operations
        self.crashes: list[CrashPoint] = []
        self.last_crash = "no crash yet"
        self._now_ns = count(CREATION_NS, TICK_NS).__next__
        self.process = self._boot(image or Image.empty())

    @contextmanager
    def crash(self, choices: Choices) -> Iterator[None]:
        """Run the block until the crash that ``choices`` decide; then boot the next process.

        The crash is a kill or a power cut. It happens before, during or after one of the
        block's mutating operations, or when the block has ended. The ``SimulatedCrash`` that
        interrupts the block does not leave it. After the block ``process`` is a new one, on
        the disk that the crash left; objects that use the old one raise ``PowerOff``.

        An exception of the block that is no crash is raised, and the process continues. Raises
        ``HarnessError`` if the block uses the process of before an earlier crash.
        """
        if not hasattr(choices, "pick"):
            raise HarnessError(
                f"crash takes choices, such as HypothesisChoices(data), and not {choices!r:.100}"
            )
        disk = self.process.disk
        kind = choices.pick("crash", tuple(CrashKind))
        operation = choices.integer("operation", 0, self.most_operations)
        counter = None
        behind = disk.interposer
        if operation:
            counter = CrashCounter(disk, operation, choices.pick("phase", tuple(Phase)))
            disk.interposer = counter
        try:
            yield
        except BaseException as error:
            if not disk.off:
                disk.interposer = behind
                if _is_all(error, PowerOff):
                    raise HarnessError(_OLD_PROCESS) from None
                raise
            # The clean-up of a dead process may fail in any way, which no other process observes.
            if not _is_all(error, (Exception, CancelledError, SimulatedCrash, PowerOff)):
                raise
        self._end(choices, kind, counter)

    def _end(self, choices: Choices, kind: CrashKind, counter: CrashCounter | None) -> None:
        disk = self.process.disk
        unsynced = disk.unsynced()
        if kind is CrashKind.KILL:
            survivors, image = SurvivorSet(), disk.snapshot()
        else:
            survivors = choose_survivors(choices, unsynced.ordering)
            image = disk.power_cut(survivors)
        hit = counter.hit if counter is not None else None
        lines = []
        if hit is not None:
            number, phase, path = hit.number, hit.phase, hit.operation.path
            lines.append(f"{kind} {phase} {type(hit.operation).__name__.lower()} {path}".rstrip())
        else:
            number, phase = max(disk.operations, 1), Phase.AFTER
            lines.append(f"{kind} at the end of the block")
        if kind is CrashKind.POWER_CUT:
            lines += lost_lines(unsynced.micros, survivors, names_on(disk))
        self.crashes.append(CrashPoint(number, phase, kind, survivors))
        self.last_crash = "\n".join(lines)
        disk.power_off()
        self.process = self._boot(image)

    def _boot(self, image: Image) -> Process:
        return Process(Disk(image, self.model, self._now_ns))


def _is_all(
    error: BaseException, kinds: type[BaseException] | tuple[type[BaseException], ...]
) -> bool:
    """Return whether an exception, or each one of a group, as of a ``TaskGroup``, is of a kind."""
    if isinstance(error, BaseExceptionGroup):
        return all(_is_all(each, kinds) for each in error.exceptions)
    return isinstance(error, kinds)
