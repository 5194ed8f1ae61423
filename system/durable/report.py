"""Reports: messages that must be appended to logs, kept in ``state.db`` until they are.

A trigger that is FAILED or DEAD and an activity that is UNCERTAIN are reported to the operator,
the outcome of an activity to its agent. A report is written in the transaction of the status that
it reports, and removed by a later one, when its message is durable in the log. So no crash loses a
report.
"""

from __future__ import annotations

import json
from itertools import count
from typing import Final, NamedTuple, cast

from system.durable.errors import RowDamaged
from system.durable.state import Transaction
from system.durable.table import Table
from system.durable.trigger import Sessions
from system.ports import Json, JsonObject
from system.storage.codec import canonical


class Report(NamedTuple):
    """A row of ``reports``: a message to the agent of ``session_id``, or to the operator (None)."""

    message_id: str
    session_id: str | None
    payload_json: str

    @property
    def payload(self) -> Json:
        """The payload of the message."""
        return cast("Json", json.loads(self.payload_json))


REPORTS: Final = Table("reports", Report)


class ReportStore:
    """The reports of a root in boot ``epoch``.

    ``kept`` are the reports in the database, by message id, oldest first; no snapshot of a log
    may omit these ids. ``sessions`` says which messages have arrived.
    """

    def __init__(self, epoch: int, sessions: Sessions) -> None:
        self._sessions = sessions
        self._epoch = epoch
        self._numbers = count(1)
        self.kept: dict[str, Report] = {}
        self._waiting: dict[str, Report] = {}
        # The last transaction in which a report was added.
        self._adding: Transaction | None = None

    @property
    def has_waiting(self) -> bool:
        """Whether there are reports that ``take`` has not returned."""
        return bool(self._waiting)

    def take(self) -> list[Report]:
        """Return the reports that have not been returned before, oldest first."""
        waiting, self._waiting = self._waiting, {}
        return list(waiting.values())

    def is_taken(self, message_id: str) -> bool:
        """Whether the operator has a report with this id, or will get one."""
        return message_id in self.kept or self._sessions.has_message(None, message_id)

    def another_id(self, message_id: str) -> str:
        """Return an id for one more report about a row, after a person has decided about it."""
        return f"{message_id}.{self._epoch}.{next(self._numbers)}"

    def add(
        self, transaction: Transaction, message_id: str, session_id: str | None, payload: JsonObject
    ) -> None:
        """Add a report; the first one of a transaction removes those that have arrived meanwhile.

        If a report with this id exists, damaged or not, it stays unchanged.
        """
        report = Report(message_id, session_id, canonical(payload).decode("ascii"))
        try:
            is_there = REPORTS.read(transaction, message_id) is not None
        except RowDamaged:
            return
        if transaction is not self._adding:
            self._adding = transaction
            self.remove_arrived(transaction)
        if not is_there:
            REPORTS.insert(transaction, report)
            transaction.after_commit(lambda: self._keep(report))

    def load(self, transaction: Transaction) -> list[RowDamaged]:
        """Read all reports; remove those whose messages have arrived. Return the damaged rows."""
        damaged = []
        for _, report in REPORTS.select(transaction, "1 ORDER BY rowid"):
            if isinstance(report, RowDamaged):
                damaged.append(report)
            elif report.message_id not in self.kept:
                self._keep(report)
        self.remove_arrived(transaction)
        return damaged

    def _keep(self, report: Report) -> None:
        self.kept[report.message_id] = self._waiting[report.message_id] = report

    def remove_arrived(self, transaction: Transaction) -> None:
        """Remove the reports whose messages have arrived."""
        arrived = [
            report.message_id
            for report in self.kept.values()
            if self._sessions.has_message(report.session_id, report.message_id)
        ]
        for message_id in arrived:
            REPORTS.delete(transaction, message_id)
        transaction.after_commit(lambda: self._forget(arrived))

    def _forget(self, arrived: list[str]) -> None:
        for message_id in arrived:
            self.kept.pop(message_id, None)
            self._waiting.pop(message_id, None)
