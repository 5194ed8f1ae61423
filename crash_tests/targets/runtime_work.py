"""The durable work of a runtime under test: the rows of its ``state.db``, and their shadow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from crash_tests.rig.database import SimulatedDatabase
from crash_tests.rig.effect_ledger import EffectLedger
from oracles.durable.rows import NO_ROWS, Rows, read_rows
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.shadow_work import ShadowWork
from system.ports import Host


class ObservedWork(NamedTuple):
    """The rows, and the effects and requests of each key, at one moment."""

    rows: Rows
    effects: Counter[str]
    requests: Counter[str]


class RuntimeWork:
    """Passes the rows of a runtime to ``shadow``.

    ``ledger`` are the effects in the outside world, None if the runtime has no actions.
    """

    def __init__(self, shadow: ShadowWork, ledger: EffectLedger | None = None) -> None:
        self.shadow = shadow
        self.ledger = ledger

    def observe(self, host: Host) -> ObservedWork | None:
        """Return all rows of this moment; None if a transaction of the database is failing.

        They are read on the connection of the runtime, between two of its transactions. Raises
        ``apsw.Error``.
        """
        database, ledger = host.database, self.ledger
        assert isinstance(database, SimulatedDatabase)
        connection = database.connection
        if connection is not None and connection.in_transaction:
            return None
        rows = NO_ROWS
        if connection is not None:
            rows = read_rows(lambda statement: connection.execute(statement).fetchall())
        if ledger is None:
            return ObservedWork(rows, Counter(), Counter())
        return ObservedWork(rows, Counter(ledger.effects), Counter(ledger.requests))

    def settle(
        self, snapshot: RootSnapshot, observed: ObservedWork, latest_ns: int, now_ns: int
    ) -> None:
        """Check the rows after a recovery; the crash may have interrupted any request."""
        effects = self.shadow.effects
        effects.crash()
        for key in observed.rows.activities:
            if not effects.knows(key):
                effects.doubt(key)
        self.shadow.settle(snapshot, observed.rows, latest_ns)
        self._check_effects(observed, now_ns)

    def check(
        self, snapshot: RootSnapshot, observed: ObservedWork, latest_ns: int, now_ns: int
    ) -> None:
        """Check a snapshot that is not older than ``observed``."""
        self.shadow.check(snapshot, observed.rows, latest_ns)
        self._check_effects(observed, now_ns)

    def check_quiesced(
        self,
        snapshot: RootSnapshot,
        observed: ObservedWork,
        now_ns: int,
        is_unfit: Callable[[str], bool],
    ) -> int:
        """Check that everything is done; return the number of triggers that turns have settled."""
        self.shadow.effects.check_performed(observed.rows, observed.effects)
        return self.shadow.check_quiesced(snapshot, observed.rows, now_ns, is_unfit)

    def _check_effects(self, observed: ObservedWork, now_ns: int) -> None:
        if self.ledger is None:
            return
        self.ledger.check()
        effects = self.shadow.effects
        for key in self.ledger.doubted:
            effects.doubt(key)
        for key in self.ledger.refused:
            effects.refuse(key)
        self.ledger.doubted.clear()
        self.ledger.refused.clear()
        self.shadow.check_effects(observed.rows, observed.effects, observed.requests, now_ns)
