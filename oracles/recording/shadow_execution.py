"""The specification of one execution: its facts, and those that a crash may leave of it.

A fact is the start, an event, a reason of ``mark_not_replayable``, or the final response. It
survives every crash once a barrier has covered it, and a kill once its call has returned. A fact
whose call failed, or is under way, may survive or not (docs/recording.md, The recorder).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import product
from typing import Final

from oracles.recording.record_reader import SeenRecord

INCOMPLETE: Final = "execution_incomplete"
FAILURE: Final = "recording_failure"
CORRUPTED: Final = "record_corrupted"
INVALIDATED: Final = "manually_invalidated"


class FactKind(Enum):
    """The kinds of fact."""

    START = auto()
    EVENT = auto()
    REASON = auto()
    FINAL = auto()


class Safety(Enum):
    """Where a fact is: perhaps nowhere, in the page cache, on the disk."""

    DOUBTFUL = auto()
    WRITTEN = auto()
    DURABLE = auto()


@dataclass(slots=True, eq=False)
class Fact:
    """One fact; ``name`` is the type of an event, or the reason.

    ``position`` counts the facts of all executions in the order of their calls. ``live`` is
    set if a running system must show the fact.
    """

    kind: FactKind
    name: str
    payload: bytes
    position: int
    safety: Safety = Safety.DOUBTFUL
    live: bool = False


@dataclass(slots=True)
class ShadowExecution:
    """One execution; ``facts`` are in the order of their calls.

    ``lost`` is set when an event could not be written, ``loss_kept`` when that fact is durable,
    ``doubted`` when a barrier of another execution has failed. ``decided`` is empty, or has the
    one reason that the first read after a crash has shown. ``invalidated`` has the reason and
    the author of each invalidation that may be in force, and None for no invalidation; if it
    has one element, that one is acknowledged. ``damaged`` is set when a fault has destroyed a
    part of the record: then missing parts are no violations, and wrong parts are.
    """

    envelope: bytes
    side_effects: str
    facts: list[Fact] = field(default_factory=list)
    lost: bool = False
    loss_kept: bool = False
    doubted: bool = False
    ended: bool = False
    decided: frozenset[str | None] = frozenset()
    invalidated: list[tuple[str, str] | None] = field(default_factory=lambda: [None])
    damaged: bool = False

    @property
    def is_finished(self) -> bool:
        """Whether a running system must show a final response."""
        return self.response is not None and self.response.live

    @property
    def response(self) -> Fact | None:
        """The final response that was finalized, if there is one."""
        return next((fact for fact in self.facts if fact.kind is FactKind.FINAL), None)

    def survivors(self, record: SeenRecord | None, *, kept: bool) -> list[Fact] | None:
        """Return the facts that a record shows; None if no crash can leave that record.

        ``record`` is None if the execution is missing in the store. With ``kept`` every fact
        whose call has returned must be in it.
        """
        required = {Safety.DURABLE, Safety.WRITTEN} if kept else {Safety.DURABLE}
        if record is None:
            # If the start is lost, there is no record, whatever followed it.
            return None if self.facts[0].safety in required else []
        if record.envelope != self.envelope or record.side_effects != self.side_effects:
            return None
        for facts in self._candidates(required):
            if self._is_shown(facts, record):
                return facts
        return None

    def is_live(self, record: SeenRecord | None) -> bool:
        """Return whether a running system may show this record."""
        if record is None:
            return not any(fact.live for fact in self.facts)
        return any(
            self._is_shown(facts, record, live=True)
            for facts in self._candidates({Safety.DURABLE, Safety.WRITTEN})
            if all(fact in facts for fact in self.facts if fact.live)
        )

    def is_wrong(self, record: SeenRecord) -> bool:
        """Return whether a record contains anything that was never recorded, or conceals a loss.

        Such a record is a violation for damaged executions too.
        """
        if record.envelope != self.envelope:
            return True
        recorded = [(fact.name, fact.payload) for fact in self._events()]
        remaining = iter(recorded)
        shown = [(event.type, event.payload) for event in record.events]
        if not all(event in remaining for event in shown):
            return True
        # A reason whose call was refused is not set.
        has_reason = any(
            fact.kind is FactKind.REASON and fact.safety is not Safety.DOUBTFUL
            for fact in self.facts
        )
        return record.reason is None and (shown != recorded or has_reason)

    def _events(self) -> Iterator[Fact]:
        """Yield the events and the final response."""
        return (fact for fact in self.facts if fact.kind in (FactKind.EVENT, FactKind.FINAL))

    def _candidates(self, required: set[Safety]) -> Iterator[list[Fact]]:
        """Yield every set of facts that may survive: a prefix of the written, any doubtful ones.

        If a barrier has failed inside a call, its segment is abandoned: events in it may be lost,
        and reasons in the next segment survive.
        """
        durable = [fact for fact in self.facts if fact.safety is Safety.DURABLE]
        written = [fact for fact in self.facts if fact.safety is Safety.WRITTEN]
        doubtful = [fact for fact in self.facts if fact.safety is Safety.DOUBTFUL]
        least = len(written) if Safety.WRITTEN in required else 0
        for size in range(len(written), least - 1, -1):
            later = [fact for fact in written[size:] if fact.kind is FactKind.REASON]
            possible = [*doubtful, *later] if self.doubted else doubtful
            for present in product((True, False), repeat=len(possible)):
                chosen = [
                    fact for fact, is_there in zip(possible, present, strict=True) if is_there
                ]
                kept = set(map(id, (*durable, *written[:size], *chosen)))
                facts = [fact for fact in self.facts if id(fact) in kept]
                if facts and facts[0].kind is FactKind.START:
                    yield facts

    def _is_shown(self, facts: Sequence[Fact], record: SeenRecord, *, live: bool = False) -> bool:
        kinds = (FactKind.EVENT, FactKind.FINAL)
        expected = [(fact.name, fact.payload) for fact in facts if fact.kind in kinds]
        if [(event.type, event.payload) for event in record.events] != expected:
            return False
        if record.invalidated not in self.invalidated:
            return False
        if record.invalidated is not None:
            return record.reason == INVALIDATED
        return record.reason in self._reasons(facts, live=live)

    def _reasons(self, facts: Sequence[Fact], *, live: bool) -> AbstractSet[str | None]:
        """Return the reasons that a record of these facts may have."""
        if self.decided:
            return self.decided
        marks = [fact.name for fact in facts if fact.kind is FactKind.REASON]
        has_final = facts[-1].kind is FactKind.FINAL
        base = marks[-1] if marks else None if has_final else INCOMPLETE
        if self._has_gap(facts):
            return {FAILURE, CORRUPTED, *marks[-1:]}
        if self.loss_kept or (self.lost and live):
            return {FAILURE, *marks[-1:]}
        return {FAILURE, base} if self.lost or self.doubted else {base}

    def _has_gap(self, facts: Sequence[Fact]) -> bool:
        """Return whether an event is missing before one of the facts."""
        last = facts[-1].position
        return any(
            fact.kind is FactKind.EVENT and fact.position < last and fact not in facts
            for fact in self.facts
        )
