"""What an oracle proves: one class per property, because failures are told apart by class.

A violation carries its evidence as plain data, so that a reproducer can keep it and a
report can show expected beside actual.
"""

from __future__ import annotations

from typing import Final

_SHOWN_CHARACTERS: Final = 160


def shown(value: object) -> str:
    """Return ``repr(value)``, cut in the middle when it is too long to read."""
    text = repr(value)
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    half = _SHOWN_CHARACTERS // 2
    return f"{text[:half]} … {len(text) - 2 * half} more … {text[-half:]}"


class Violation(Exception):
    """A property of the system under test does not hold.

    ``statement`` says what happened, in one sentence; ``evidence`` names the values.
    """

    def __init__(self, statement: str, **evidence: object) -> None:
        super().__init__(statement)
        self.statement = statement
        self.evidence = evidence

    @property
    def property_name(self) -> str:
        """The short name of the broken property, as it stands in reproducers."""
        return type(self).__name__

    def __str__(self) -> str:
        named = " ".join(f"{name}={shown(value)}" for name, value in self.evidence.items())
        return f"{self.statement} ({named})" if named else self.statement


class LostAck(Violation):
    """Something acknowledged is gone."""


class TornRecord(Violation):
    """Something is there in part, or mixed from two writes."""


class Resurrected(Violation):
    """Something is back that an earlier look had shown to be gone or replaced."""


class Reordered(Violation):
    """Everything is there, in an order in which it was not written."""


class Overtaken(Violation):
    """Something is there without what was written before it."""


class Duplicated(Violation):
    """Something written once is there twice."""


class Invented(Violation):
    """Something is there that nobody ever wrote."""


class SilentEmpty(Violation):
    """All data is gone, and the store opens as if there had never been any."""


class UnreadableAfterCrash(Violation):
    """After a crash alone, with no fault left, the system does not come up."""


class NotIdempotent(Violation):
    """A second recovery changed what the first one left."""


class Garbage(Violation):
    """A file is left that nothing will ever read."""


class NotContained(Violation):
    """One damaged file keeps the others from being served."""


class InvalidState(Violation):
    """A record is in a state that it must not be in at this point."""


class FalseAlarm(Violation):
    """The system reports damage, or fails, although nothing was damaged."""


class CorruptLog(Violation):
    """After recovery a log holds something that is not one of its lines (V-5)."""


class BrokenTree(Violation):
    """An agent has no parent that lives, or a session belongs to no agent (V-3)."""


class NameTwice(Violation):
    """Two living agents have one name."""


class Misdelivered(Violation):
    """A message is in the log of somebody else than its recipient."""


class OutOfReach(Violation):
    """A message went to somebody whom its sender may not address."""


class LostMessage(Violation):
    """A committed turn sent a message that neither arrived nor came back."""


class LostSpawn(Violation):
    """A committed turn spawned a child that is not there, or lacks its first message (R16)."""


class LostControl(Violation):
    """A committed turn gated, ungated or permitted a child whose log does not say so."""


class UnfinishedEnd(Violation):
    """A committed turn ended its agent, and nothing has finished that (Y10)."""


class UntoldError(Violation):
    """A message is dead or was returned, and its sender was not told."""


class UntoldNotice(Violation):
    """An agent has ended, and a subscriber was not told."""


class UntoldTurn(Violation):
    """A turn was lost by a crash, and its agent was not told."""


class LateReminder(Violation):
    """A reminder is due, and it has not come."""


class EarlyReminder(Violation):
    """A reminder came before it was due."""


class ForgottenReturn(Violation):
    """An agent ended, and what it left unread is not what was returned."""


class SkippedMessage(Violation):
    """A message was presented while an older one waited."""


class DeliveredUnseen(Violation):
    """A message counts as delivered that the agent was never shown (R4)."""


class DeliveredTwice(Violation):
    """A message was presented again after a turn had consumed it."""


class WrongPresented(Violation):
    """A turn's line does not name what the turn has shown, or the prompt shows something else."""


class EarlyDeath(Violation):
    """A message is dead that was presented too few times."""


class TwoCompletions(Violation):
    """An agent ended twice, or gave two responses (R12)."""


class RanAfterEnd(Violation):
    """An agent did something, or was sent something, after its end."""


class TurnsOverlap(Violation):
    """Two turns of one agent ran at once."""


class GateIgnored(Violation):
    """A gated agent ran a turn without a permit."""


class UnfinishedTurn(Violation):
    """A turn counts as complete whose answer never was (R7)."""


class WrongEffects(Violation):
    """A turn's line promises something else than what was called in the turn."""


class WrongConversation(Violation):
    """A model was told another conversation than the log's (V-6, R15)."""


class LeakedConversation(Violation):
    """More conversations of a provider are open than there are slots for it."""


class OutOfSync(Violation):
    """The running system shows something else than its logs (V-8)."""


class Starved(Violation):
    """All is quiet, and accepted work is not done (V-9)."""
