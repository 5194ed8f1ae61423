"""The tasks of a root: checkpoints by compare-and-set, and the triggers that resume them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from system.durable.emitter import Emitter, checked_payload
from system.durable.errors import BadTask, RowDamaged, StaleCheckpoint
from system.durable.producers import RESUME
from system.durable.state import Transaction
from system.durable.task import (
    FINAL,
    TASK_EVENTS,
    TASKS,
    Checkpoint,
    Task,
    TaskEvent,
    TaskStatus,
)
from system.durable.trigger import TriggerSource, TriggerSpec, has_open_trigger

_OPEN: Final = (TaskStatus.ACTIVE, TaskStatus.WAITING, TaskStatus.BLOCKED)


class TaskStore:
    """Changes the tasks of a root; ``emitter`` takes the triggers that resume them.

    ``blocked`` are the tasks that this boot has found BLOCKED, or has made so.
    """

    def __init__(self, emitter: Emitter) -> None:
        self._emitter = emitter
        self.blocked: set[str] = set()

    def checkpoint(self, transaction: Transaction, checkpoint: Checkpoint) -> Task:
        """Record the progress of a task; the first checkpoint of a task creates it.

        Raises ``StaleCheckpoint``, ``BadTask``, ``NotPlainJson``, ``PayloadTooLarge`` or
        ``RowDamaged``.
        """
        if not checkpoint.events or checkpoint.status is TaskStatus.BLOCKED:
            raise BadTask(
                f"task {checkpoint.task_id!r:.100}: a checkpoint has an event, and no"
                f" status={TaskStatus.BLOCKED}; give it at least one event"
            )
        old = TASKS.read(transaction, checkpoint.task_id)
        _check(checkpoint, old)
        now = transaction.now
        events = [
            TaskEvent(checkpoint.task_id, seq, now, event, checked_payload(data))
            for seq, (event, data) in enumerate(checkpoint.events, checkpoint.last_seq + 1)
        ]
        task = Task(
            checkpoint.task_id, checkpoint.session_id, checkpoint.status,
            checked_payload(checkpoint.todos), events[-1].seq, checkpoint.turn_id, None,
            now if old is None else old.created_at, now,
        )  # fmt: skip
        for event in events:
            TASK_EVENTS.insert(transaction, event)
        if old is None:
            TASKS.insert(transaction, task)
        else:
            TASKS.update(transaction, task)
        self._note(transaction, task)
        return task

    def resume(self, transaction: Transaction, may_resume: Callable[[str], bool]) -> list[str]:
        """Emit RESUME for each ACTIVE task of a session without open triggers; return their ids.

        ``may_resume`` says whether a session is living and has no pending message. A task is
        resumed however old it is; the payload has its age in seconds.
        """
        emitted = []
        for _, task in TASKS.select(transaction, "status='ACTIVE' ORDER BY rowid"):
            if isinstance(task, RowDamaged) or not may_resume(task.session_id):
                continue
            if has_open_trigger(transaction, task.session_id):
                continue
            spec = TriggerSpec(
                TriggerSource.RESUME,
                {"task_id": task.task_id, "last_seq": task.last_seq,
                 "age_s": max(0, round(transaction.now - task.updated_at))},
                session_id=task.session_id,
                key=f"{RESUME.prefix}:{task.task_id}",
            )  # fmt: skip
            with suppress(RowDamaged):
                # A damaged key stays, and its task waits.
                emit = partial(self._emitter.emit, transaction, spec)
                emitted.append(transaction.part(emit).trigger_id)
        return emitted

    def open_tasks(self, transaction: Transaction) -> list[Task | RowDamaged]:
        """Return the tasks that have not ended, oldest first; damaged rows as errors."""
        rows = TASKS.select(
            transaction, "status IN ('ACTIVE', 'WAITING', 'BLOCKED') ORDER BY rowid"
        )
        tasks = [task for _, task in rows]
        for task in tasks:
            if isinstance(task, Task):
                self._note(transaction, task)
        return tasks

    def block(self, transaction: Transaction, task_id: str, reason: str) -> None:
        """Block an ACTIVE task, because resuming it has failed too often."""
        self._move(transaction, task_id, TaskStatus.ACTIVE, TaskStatus.BLOCKED, reason)

    def unblock(self, transaction: Transaction, task_id: str) -> None:
        """Make a BLOCKED task ACTIVE, by the decision of a person."""
        self._move(transaction, task_id, TaskStatus.BLOCKED, TaskStatus.ACTIVE, None)

    def end_session(self, transaction: Transaction, session_id: str) -> None:
        """Cancel the tasks of a session that has ended."""
        for status in _OPEN:
            rows = TASKS.select(
                transaction, "session_id=? AND status=? ORDER BY rowid", (session_id, str(status))
            )
            for _, task in rows:
                if not isinstance(task, RowDamaged):
                    self._move(
                        transaction, task.task_id, status, TaskStatus.CANCELLED,
                        "its session has ended",
                    )  # fmt: skip

    def _move(
        self, transaction: Transaction, task_id: str, before: TaskStatus, after: TaskStatus,
        reason: str | None,
    ) -> None:  # fmt: skip
        try:
            task = TASKS.read(transaction, task_id)
        except RowDamaged:
            return
        if task is not None and task.status is before:
            moved = task._replace(status=after, reason=reason, updated_at=transaction.now)
            TASKS.update(transaction, moved)
            self._note(transaction, moved)

    def _note(self, transaction: Transaction, task: Task) -> None:
        is_blocked = task.status is TaskStatus.BLOCKED
        change = self.blocked.add if is_blocked else self.blocked.discard
        transaction.after_commit(lambda: change(task.task_id))


def _check(checkpoint: Checkpoint, old: Task | None) -> None:
    task_id, found = checkpoint.task_id, 0 if old is None else old.last_seq
    if old is not None and old.session_id != checkpoint.session_id:
        raise BadTask(f"task {task_id!r:.100} belongs to session={old.session_id}; use its own")
    if old is not None and old.status in FINAL:
        raise BadTask(f"task {task_id!r:.100} is {old.status}; begin another task")
    if checkpoint.last_seq != found:
        raise StaleCheckpoint(task_id, checkpoint.last_seq, found)
