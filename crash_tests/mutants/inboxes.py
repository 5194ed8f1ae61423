"""Mutants of inboxes: messages and errors that are lost, doubled, or never answered."""

from __future__ import annotations

from crash_tests.mutants.folders import AGENT_TESTS
from oracles.runtime.violations import (
    DuplicateDelivery,
    EndlessPresentation,
    LostControl,
    LostErrorMessage,
    LostMessage,
    LostNotice,
    LostSpawn,
    PrematureWatermark,
    PresentedMismatch,
    UnfinishedTermination,
    UnreturnedMessages,
)
from oracles.violation import Duplicated, LostAck, Starved
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

_LINE_IS_NEW = (
    "if key not in history.enqueued and key not in history.controls and key not in self.queue:"
)

repeated_message_is_appended = Mutant(
    "a message that the operator sends again under the same id is appended again",
    "runtime",
    (Duplicated,),
    (
        SourcePatch(
            "system.agents.agent_log",
            "if message.message_id in self.history.enqueued:",
            "if message.message_id in self.history.controls:",
        ),
    ),
)

watermark_is_ahead = Mutant(
    "the watermark covers a turn whose outbox is not dispatched yet",
    "runtime",
    (PrematureWatermark,),
    (
        SourcePatch(
            "system.agents.dispatcher",
            """
            self.enqueue_notices(agent, [added.subscription_id for added in turn.subscribed])
            await self.dispatch()
            self.pass_dispatched(agent)
            """,
            """
            agent.log.dispatched = agent.history.seq
            await self.dispatch()
            """,
        ),
    ),
)

controls_are_redone_twice = Mutant(
    "recovery writes controls that the log of the child has already",
    "runtime",
    (Duplicated,),
    (
        SourcePatch(
            "system.agents.agent_log",
            _LINE_IS_NEW,
            "if key not in history.enqueued and key not in self.queue:",
        ),
    ),
)

refused_lines_are_forgotten = Mutant(
    "lines leave the queue before the disk has taken them",
    "runtime",
    (LostControl, LostErrorMessage, LostMessage, LostNotice, LostSpawn, Starved),
    (
        SourcePatch(
            "system.agents.agent_log",
            """
            due = list(self.queue.values())
            try:
            """,
            """
            due = list(self.queue.values())
            self.queue.clear()
            try:
            """,
        ),
        SourcePatch(
            "system.agents.agent_log",
            """
            for key in [line.key for line in due if self.history.knows(line.key)]:
                del self.queue[key]
            """,
            "pass",
        ),
    ),
)

refused_lines_are_not_retried = Mutant(
    "lines that the disk has refused are tried again only once",
    patches=(
        SourcePatch(
            "system.agents.dispatcher",
            """
            except (OSError, StorageError, RuntimeRefused) as refused:
                work.trouble = str(refused)
            else:
            """,
            """
            except (OSError, StorageError, RuntimeRefused) as refused:
                work.trouble = str(refused)
                return
            else:
            """,
        ),
    ),
    tests=(
        (
            f"{AGENT_TESTS}/test_orchestrator.py"
            "::test_a_dispatch_that_a_full_disk_refuses_is_repeated_until_it_succeeds"
        ),
    ),
)

retried_message_wakes_nobody = Mutant(
    "an agent is not woken for a message that was written at the second attempt",
    "runtime",
    (Starved,),
    (
        SourcePatch(
            "system.agents.dispatcher",
            """
            if not agent.alive:
                await self._bounce(agent)
            await self.orchestrator.wake_or_park(agent)
            """,
            """
            if not agent.alive:
                await self._bounce(agent)
            """,
        ),
    ),
)

queue_of_an_ended_agent_is_dropped = Mutant(
    "messages on their way to an agent that ends are dropped without an error",
    patches=(
        SourcePatch(
            "system.agents.dispatcher",
            """
            except UnknownAgent:
                await self._bounce(agent)
            """,
            """
            except UnknownAgent:
                agent.log.queue.clear()
            """,
        ),
    ),
    tests=(
        (
            f"{AGENT_TESTS}/test_delivery.py"
            "::test_an_agent_that_receives_a_message_while_its_end_is_written_answers_it"
        ),
    ),
)

message_to_an_ended_agent_is_dropped = Mutant(
    "a message to an agent that has ended gets no error",
    patches=(
        SourcePatch(
            "system.agents.dispatcher",
            """
            if recipient.history.ended:
                self._enqueue_error(message, "the recipient has ended")
            else:
                self.enqueue(recipient, message)
            """,
            """
            if not recipient.history.ended:
                self.enqueue(recipient, message)
            """,
        ),
    ),
    tests=(
        (
            f"{AGENT_TESTS}/test_delivery.py"
            "::test_a_message_to_an_agent_that_ended_meanwhile_comes_back_as_an_error"
        ),
    ),
)

returned_messages_get_no_error = Mutant(
    "the senders of messages that an ended agent has not read get no error",
    "runtime",
    (LostErrorMessage,),
    (
        SourcePatch(
            "system.agents.dispatcher",
            """
            assert agent.history.ended
            self.enqueue_errors(agent)
            """,
            "assert agent.history.ended",
        ),
    ),
)

recovery_sends_no_errors = Mutant(
    "recovery does not send the errors that a crash has prevented",
    "runtime",
    (LostErrorMessage,),
    (
        SourcePatch(
            "system.recovery.dispatch_outboxes",
            """
            dispatcher.enqueue_errors(agent)
            dispatcher.enqueue_notices(agent, list(agent.history.subscriptions))
            """,
            "dispatcher.enqueue_notices(agent, list(agent.history.subscriptions))",
        ),
    ),
)

recovery_sends_no_notices = Mutant(
    "recovery does not send the notices that a crash has prevented",
    "runtime",
    (LostNotice,),
    (
        SourcePatch(
            "system.recovery.dispatch_outboxes",
            """
            dispatcher.enqueue_errors(agent)
            dispatcher.enqueue_notices(agent, list(agent.history.subscriptions))
            """,
            "dispatcher.enqueue_errors(agent)",
        ),
    ),
)

late_subscription_gets_no_notice = Mutant(
    "a subscription to an agent that has just ended gets no notice",
    patches=(
        SourcePatch(
            "system.agents.dispatcher",
            """
            self.enqueue_outbox(agent, turn.outbox)
            self.enqueue_notices(agent, [added.subscription_id for added in turn.subscribed])
            """,
            "self.enqueue_outbox(agent, turn.outbox)",
        ),
    ),
    tests=(
        (
            f"{AGENT_TESTS}/test_notices.py"
            "::test_a_subscription_to_who_ends_in_the_meantime_is_answered_at_once"
        ),
    ),
)

dead_letter_gets_no_error = Mutant(
    "the sender of a dead message gets no error",
    patches=(
        SourcePatch(
            "system.agents.turns",
            """
            if history.unreachable:
                self._dispatcher.enqueue_errors(agent)
                await self._dispatcher.dispatch()
            """,
            "",
        ),
    ),
    tests=(
        (
            f"{AGENT_TESTS}/test_failed_turns.py"
            "::test_a_message_over_which_five_turns_failed_is_a_dead_letter_and_its_sender_is_informed"
        ),
    ),
)

message_is_presented_once_more = Mutant(
    "a message is presented once more than it may",
    "runtime",
    (EndlessPresentation,),
    (
        SourcePatch(
            "system.agents.turns",
            "if history.presentations.get(message_id, 0) >= MOST_PRESENTATIONS",
            "if history.presentations.get(message_id, 0) > MOST_PRESENTATIONS",
        ),
    ),
)

refused_turn_counts_as_presented = Mutant(
    "a turn that the disk has refused counts as a presentation",
    patches=(
        SourcePatch(
            "system.agents.turns",
            "counts = isinstance(failure, TurnFailed)",
            "counts = True",
        ),
    ),
    tests=(
        (
            f"{AGENT_TESTS}/test_failed_turns.py"
            "::test_a_turn_that_the_disk_has_no_room_for_runs_again_and_counts_as_not_shown"
        ),
    ),
)

checked_messages_are_presented_again = Mutant(
    "a message that was read during a turn is not named in its line",
    "runtime",
    (DuplicateDelivery, PresentedMismatch),
    (
        SourcePatch(
            "system.agents.tools",
            "presented += [message.message_id for message in new]",
            "presented = [*presented, *(message.message_id for message in new)]",
        ),
    ),
)

end_is_not_finished = Mutant(
    "recovery does not finish the end of an agent",
    "runtime",
    (UnfinishedTermination,),
    (
        SourcePatch(
            "system.recovery.dispatch_outboxes",
            "if history.ended and not history.termination_logged:",
            "if history.ended and not history.turn_count and not history.termination_logged:",
        ),
    ),
)

read_messages_are_returned = Mutant(
    "an agent that completes returns the messages of its last turn as unread",
    "runtime",
    (UnreturnedMessages,),
    (
        SourcePatch(
            "system.agents.turn_complete",
            "returned = [key for key in pending if key not in self.presented]",
            "returned = list(pending)",
        ),
    ),
)

acknowledgement_is_volatile = Mutant(
    "the acknowledgement of a message to USER has no barrier",
    "runtime",
    (LostAck,),
    (
        SourcePatch(
            "system.agents.acknowledgement",
            "await user.log.commit(make)",
            """
            if events := make():
                await user.log.append_unsynced(events)
            """,
        ),
    ),
)
