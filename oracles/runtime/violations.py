"""The violations of the agent runtime's contract; the generic ones are in ``oracles.violation``."""

from __future__ import annotations

from oracles.violation import Violation


class BrokenTree(Violation):
    """An agent has no living parent, or a session has no agent."""


class DuplicateName(Violation):
    """Two living agents have the same name."""


class MisroutedMessage(Violation):
    """A message is in the log of an agent that is not its recipient."""


class ForbiddenRecipient(Violation):
    """A message is addressed to an agent that its sender may not address."""


class ForbiddenControl(Violation):
    """An agent was gated, ungated or permitted by an agent other than its parent."""


class LostMessage(Violation):
    """A message of a committed turn neither arrived nor was answered by an error."""


class PrematureWatermark(Violation):
    """The watermark of a turn covers outbox entries that are missing in the other logs."""


class UnsettledTrigger(Violation):
    """After a recovery, a trigger that a durable line settles is open, or a trigger is CLAIMED."""


class TornLine(Violation):
    """``state.db`` has only a part of the outbox of a line, or has it before the line is there."""


class LostReport(Violation):
    """The status of a row must be reported, and the log that it concerns lacks the message."""


class LostTask(Violation):
    """A task is ACTIVE after a recovery, and its agent has no reason to run."""


class WrongSnapshot(Violation):
    """A snapshot in a log differs from the lines before it."""


class LostSpawn(Violation):
    """A child of a committed turn does not exist, or lacks its bootstrap message."""


class LostControl(Violation):
    """A gate, ungate or permit of a committed turn is missing in the log of the child."""


class LostErrorMessage(Violation):
    """A message is dead or returned, and its sender got no error message."""


class LostNotice(Violation):
    """An agent has ended, and a subscriber got no notice."""


class UnreportedTurnLoss(Violation):
    """A crash interrupted a turn, and no recovery notice names it."""


class UnfinishedTermination(Violation):
    """A committed turn ended its agent, and the log has no ``agent.terminated`` line."""


class LateReminder(Violation):
    """A reminder is due and was not shown."""


class EarlyReminder(Violation):
    """A reminder was shown before it was due."""


class UnreturnedMessages(Violation):
    """The messages that an ended agent returned are not those that it left pending."""


class SkippedMessage(Violation):
    """A message was presented while an older one was pending."""


class UnpresentedDelivery(Violation):
    """A message is delivered although no prompt contained it."""


class DuplicateDelivery(Violation):
    """A message was presented again after a committed turn had consumed it."""


class PresentedMismatch(Violation):
    """The messages that a turn's line names are not those that its prompt contained."""


class PrematureDeadLetter(Violation):
    """A message is dead although it was presented fewer than five times."""


class EndlessPresentation(Violation):
    """A message is presented again although it has been presented as often as it may."""


class DuplicateCompletion(Violation):
    """An agent ended twice, or gave two responses."""


class WriteAfterEnd(Violation):
    """The log of an ended agent contains a later turn, message or control."""


class OverlappingTurns(Violation):
    """Two turns of one agent ran at the same time."""


class GateIgnored(Violation):
    """A gated agent ran a turn without a permit."""


class PrematureCommit(Violation):
    """A turn was committed before its response was complete."""


class EffectsMismatch(Violation):
    """The effects in a turn's line are not those of the tool calls in the turn."""


class ConversationMismatch(Violation):
    """A provider was given another conversation than the one in the log."""


class LeakedConversation(Violation):
    """More conversations of a provider are open than the provider has slots."""
