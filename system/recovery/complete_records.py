"""The part of pass 6 that concerns recording: a record for every committed turn.

The line of a turn has the final response of its execution. Executions of sessions that
cannot be read in this lifetime stay open, because their lines cannot be read either.
"""

from __future__ import annotations

import json
from contextlib import suppress

from system.agents.agent import Agent
from system.agents.session_data import RecordedTurn
from system.agents.turn_payloads import SIDE_EFFECTS, TurnPayloads
from system.errors import StorageError
from system.ports import Clock
from system.recording.executions.execution import Execution
from system.recording.open_recording import resume_recording
from system.recording.records.event import EventType
from system.recording.stores.file_store import FileExecutionStore
from system.recording.wal.checkpoint import CHECKPOINT, Checkpoint
from system.recording.wal.recovery import ReadLog, has_segments_or_snapshots
from system.recovery.root_recovery import RootRecovery


async def complete_records(recovery: RootRecovery) -> None:
    """Complete the records of committed turns, write all records, and open the recording.

    If the disk refuses records, they wait for the next checkpoint, and the log is unchanged.
    """
    log, orchestrator = recovery.recording_log, recovery.orchestrator
    if log is None:
        await _release_turns(recovery)
        return
    # A turn is committed after a barrier of the log, and segments are removed after one of the
    # checkpoint, so one of them is there.
    is_proved = any(agent.history.recorded for agent in recovery.agents())
    if is_proved and not log.segments and log.checkpoint == Checkpoint():
        log = log._replace(missing_paths=(*log.missing_paths, CHECKPOINT))
        log.report.findings.append(
            f"{CHECKPOINT}: it is missing, or all segments of the log are; turns were recorded, and"
            " it is not known which packs of records there were"
        )
    for agent in recovery.agents():
        _complete(recovery, log, agent)
    running = [
        execution_id
        for execution_id, execution in log.executions.all().items()
        if not execution.is_finished and _session_of(execution) in orchestrator.unserved
    ]
    recording = resume_recording(recovery.host, log, running=running)
    executions = log.executions.all()
    waiting = [executions[each] for each in recording.waiting]
    recovery.interrupted = [each.record() for each in waiting if not each.is_finished]
    orchestrator.recording = recording
    try:
        if waiting or not log.is_settled:
            await recording.checkpoint()
        else:
            await recovery.host.workers.run(recording.files.settle)
    except (OSError, StorageError) as error:
        log.report.findings.append(f"the records wait for the next checkpoint ({error})")


async def _release_turns(recovery: RootRecovery) -> None:
    """Forget the recorded turns unless a later boot with recording may need their lines."""
    agents, host = recovery.agents(), recovery.host
    if not any(agent.history.recorded for agent in agents):
        return
    with suppress(OSError):
        if not await host.workers.run(lambda: has_segments_or_snapshots(host.files)):
            for agent in agents:
                agent.history.recorded.clear()


def _complete(recovery: RootRecovery, log: ReadLog, agent: Agent) -> None:
    """Complete the executions of an agent that are in the log, or were lost with its end."""
    store = FileExecutionStore(recovery.host)
    executions, settled = log.executions, log.checkpoint.sequence
    is_end = True
    for recorded in reversed(agent.history.recorded):
        execution_id, entry = recorded.execution
        execution = executions.get(execution_id)
        if execution is None:
            # Turns of one agent follow one another, so the lost ones are the last ones. A record in
            # a file of its own says nothing about the turns before it: a person may have written
            # it before any checkpoint.
            is_written = entry <= settled and not executions.may_lack(execution_id)
            is_end = is_end and not (is_written or store.has_in_pack(execution_id))
            if not is_end or store.has_own_record(execution_id):
                continue
            execution = _made_again(recovery.host.clock, agent, recorded)
            executions.add(execution)
            log.report.findings.append(
                f"execution {execution_id}: it was lost, and its record was made again"
                f" from session {agent.session_id}"
            )
        if not execution.is_finished:
            _finish(execution, _payloads(agent, recorded), recorded)
    agent.history.recorded.clear()


def _made_again(clock: Clock, agent: Agent, recorded: RecordedTurn) -> Execution:
    return Execution.new(
        clock, recorded.execution.execution_id, _payloads(agent, recorded).envelope(None),
        SIDE_EFFECTS, created_utc_iso=recorded.begun.ts,
    )  # fmt: skip


def _finish(execution: Execution, turn: TurnPayloads, recorded: RecordedTurn) -> None:
    """Add the missing events up to the attempt, and the final response.

    An execution that has lost an event has those of its start, which are written together.
    """
    for event_type, payload in turn.beginning(None)[execution.event_count :]:
        execution.add_event(event_type, payload, recorded.begun.ts)
    execution.add_event(EventType.FINAL_RESPONSE, turn.response(recorded.turn), recorded.ts)


def _payloads(agent: Agent, recorded: RecordedTurn) -> TurnPayloads:
    session = agent.history.session
    assert session is not None
    return TurnPayloads(
        recorded.turn.turn_id, agent.agent_id, agent.session_id, agent.name(), session.provider,
        session.model, json.loads(recorded.begun.prompt),
    )  # fmt: skip


def _session_of(execution: Execution) -> object:
    metadata = execution.record().envelope.get("routingMetadata")
    return metadata.get("session_id") if isinstance(metadata, dict) else None
