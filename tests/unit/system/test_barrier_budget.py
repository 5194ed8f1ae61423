"""The cost of each operation: the tables of docs/runtime.md, line by line, on a real directory.

The numbers are in those tables and nowhere else; each operation is defined here.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from system.agents.turn_recorder import RecordingOptions
from system.collector import CollectionOptions
from system.ports import JsonObject
from system.storage.framing import Framing
from tests.unit.system.agents.acting import FakeEffects
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.barrier_bench import Bench, NewBench, Operation
from tests.unit.system.barrier_table import table

BARRIERS: Final = ("fsync", "fdatasync")


def turn(
    *calls: tuple[str, JsonObject], children: int = 0, fails: bool = False, has_state: bool = False
) -> Operation:
    """A turn of Ada until all agents are idle, without the message that causes it.

    If it ``has_state``, the root has its ``state.db`` already.
    """

    async def measured(new_bench: NewBench) -> int:
        bench = new_bench()
        await bench.with_ada(children)
        if has_state:
            await bench.emit()
        bench.start_counting()
        await bench.show(bench.ada, script(*calls))
        if fails:
            bench.provider.fail("sent")
        bench.answer.set()
        await (bench.clock.paused.wait() if fails else bench.runtime.idle())
        return bench.barriers() - await send(new_bench)

    return measured


def call(perform: Callable[[Bench], Awaitable[object]], children: int = 0) -> Operation:
    """A call of the operator, with Ada's conversation open and her children gated."""

    async def measured(new_bench: NewBench) -> int:
        bench = new_bench()
        await bench.with_ada(children)
        bench.start_counting()
        await perform(bench)
        return bench.barriers()

    return measured


send = call(lambda bench: bench.runtime.send(bench.child(), "hello"), children=1)


async def first_turn_of_a_root(new_bench: NewBench) -> int:
    bench = new_bench()
    await bench.open()
    ada = await bench.runtime.create_agent("Ada")
    bench.start_counting()
    await bench.runtime.send(ada, "hello")
    await bench.runtime.idle()
    return bench.barriers() - await send(new_bench)


async def first_turn_of_a_boot(new_bench: NewBench) -> int:
    bench = new_bench()
    await bench.with_ada()
    await bench.runtime.close()
    await bench.open()
    bench.start_counting()
    await bench.runtime.send(bench.ada, "hello")
    await bench.runtime.idle()
    return bench.barriers() - await send(new_bench)


async def boot_after_a_turn(new_bench: NewBench) -> int:
    bench = new_bench()
    await bench.with_ada()
    bench.runtime._root.close()
    bench.start_counting()
    await bench.open()
    return bench.barriers()


async def completion(new_bench: NewBench) -> int:
    """The turn in which a child completes, and the message to its parent."""
    bench = new_bench()
    await bench.with_ada(1)
    await bench.runtime.send(bench.ada, script(("ungate", {"name": "child 0"})))
    await bench.runtime.idle()
    child = bench.runtime.view().agents[-1].agent_id
    bench.start_counting()
    await bench.show(child, script(("complete", {"result": 42})))
    bench.answer.set()
    await bench.runtime.idle()
    # The parent is shown the result at once, in a turn that touches nothing.
    return bench.barriers() - await turn()(new_bench) - await send(new_bench)


async def restore(new_bench: NewBench) -> int:
    """From a message to the request to the provider, without the cost of the message."""
    bench = new_bench()
    await bench.with_ada()
    await bench.runtime.suspend(bench.ada)
    bench.start_counting()
    await bench.show(bench.ada, "hello")
    barriers = bench.barriers()
    bench.answer.set()
    await bench.runtime.idle()
    return barriers - await send(new_bench)


async def activity(new_bench: NewBench) -> int:
    """From the request to the provider to the message with the outcome, which is not read yet."""
    bench = new_bench()
    bench.host = replace(bench.host, effects=FakeEffects())
    await bench.with_ada()
    await bench.emit()
    bench.clock.is_prompt = True
    bench.start_counting()
    await bench.show(bench.ada, script(("perform", {"action": "mail"})))
    bench.answer.set()
    await bench.runtime.idle()
    # The agent reads the outcome in a turn that touches nothing.
    return bench.barriers() - await turn()(new_bench) - await send(new_bench)


async def segment(new_bench: NewBench) -> int:
    """What a turn costs more if a new segment follows it; the root has a database."""
    bench = new_bench()
    bench.options = replace(bench.options, snapshot_lines=4)
    bench.clock.is_prompt = True
    await bench.open()
    ada = await bench.runtime.create_agent("Ada")
    await bench.emit()
    bench.start_counting()
    await bench.runtime.send(ada, "hello")
    await bench.runtime.idle()
    return bench.barriers() - await first_turn_of_a_root(new_bench) - await send(new_bench)


async def first_emit(new_bench: NewBench) -> int:
    bench = new_bench()
    await bench.with_ada()
    bench.start_counting()
    await bench.emit()
    return bench.barriers()


def emit_of(*keys: str | None) -> Operation:
    """The last of these triggers."""

    async def measured(new_bench: NewBench) -> int:
        bench = new_bench()
        await bench.with_ada()
        for key in keys:
            bench.start_counting()
            await bench.emit(key)
        return bench.barriers()

    return measured


async def with_claim(bench: Bench) -> int:
    """The barriers from the call of ``emit`` to that of the provider, but for the emission's."""
    await bench.with_ada()
    bench.clock.is_prompt = True
    await bench.emit()
    shown = bench.hold()
    bench.start_counting()
    await bench.emit(fire_at=0.0)
    await shown.wait()
    return bench.barriers() - 1


async def claim(new_bench: NewBench) -> int:
    return await with_claim(new_bench())


async def settlement(new_bench: NewBench) -> int:
    bench = new_bench()
    await with_claim(bench)
    bench.start_counting()
    bench.answer.set()
    await bench.runtime.idle()
    return bench.barriers()


async def collecting(bench: Bench, agents: int) -> int:
    """The collection of agents that have just ended; they have never taken a turn."""
    for number in range(agents):
        agent_id = await bench.runtime.create_agent(f"agent {number}")
        await bench.runtime.suspend(agent_id)
        await bench.runtime.terminate(agent_id)
    collector = bench.runtime._collector
    assert collector is not None
    bench.start_counting()
    assert await collector.collect() == agents
    return bench.barriers()


async def with_collection(new_bench: NewBench) -> Bench:
    """A runtime whose timers never go off, and which collects at once when it is asked."""
    bench = new_bench()
    bench.options = replace(bench.options, collection=CollectionOptions(0))
    await bench.open()
    return bench


async def first_collection(new_bench: NewBench) -> int:
    return await collecting(await with_collection(new_bench), 1)


def collection_of(agents: int) -> Operation:
    async def measured(new_bench: NewBench) -> int:
        bench = await with_collection(new_bench)
        await collecting(bench, 1)
        return await collecting(bench, agents)

    return measured


async def acknowledgement(new_bench: NewBench) -> int:
    bench = new_bench()
    await bench.with_ada()
    await bench.runtime.send(bench.ada, script(("send_message", {"to": "USER", "payload": 1})))
    await bench.runtime.idle()
    message_id = bench.runtime.view().user[0].message_id
    bench.start_counting()
    await bench.runtime.acknowledge(message_id)
    return bench.barriers()


async def first_boot(new_bench: NewBench) -> int:
    bench = new_bench()
    await bench.open()
    return bench.barriers()


async def boot_of(bench: Bench, agents: int, *, killed: bool) -> int:
    """The boot of a root with this number of agents, whose last runtime was closed, or killed."""
    await bench.open()
    for number in range(agents):
        await bench.runtime.create_agent(f"agent {number}")
    if killed:
        # The lock goes with the process; nothing else of it does.
        bench.runtime._root.close()
    else:
        await bench.runtime.close()
    bench.start_counting()
    await bench.open()
    return bench.barriers()


async def boot_of_one(new_bench: NewBench) -> int:
    return await boot_of(new_bench(), 1, killed=False)


async def boot_of_another(new_bench: NewBench) -> int:
    three = await boot_of(new_bench(), 3, killed=False)
    return three - await boot_of(new_bench(), 2, killed=False)


async def boot_after_a_kill(new_bench: NewBench) -> int:
    killed = await boot_of(new_bench(), 1, killed=True)
    return killed - await boot_of(new_bench(), 1, killed=False)


def _to(*names: str) -> list[tuple[str, JsonObject]]:
    return [("send_message", {"to": name, "payload": "hello"}) for name in names]


OPERATIONS: Final[dict[str, Operation]] = {
    "first boot, in an empty directory": first_boot,
    "boot of a root with one session": boot_of_one,
    "boot, for each further session": boot_of_another,
    "boot, for each session that a crash left ACTIVE, besides": boot_after_a_kill,
    "boot after a kill, with one conversation open and one execution in the log": (
        boot_after_a_turn
    ),
    "`create_agent`": call(lambda bench: bench.runtime.create_agent("Bob")),
    "`create_agent` again, with the same `request_id`": call(lambda bench: bench.again()),
    "`send`": send,
    "`acknowledge`": acknowledgement,
    "`terminate` of a leaf whose conversation is not open": call(
        lambda bench: bench.runtime.terminate(bench.child()), children=1
    ),
    "`suspend`, or an eviction": call(lambda bench: bench.runtime.suspend(bench.ada)),
    "`close`, with one conversation open": call(lambda bench: bench.runtime.close()),
    "the first `emit` of a root": first_emit,
    "`emit`": emit_of(None, None),
    "`emit` again, with a key that is taken": emit_of("immediate:a", "immediate:a"),
    "taking up a suspended conversation": restore,
    "the first turn of a root": first_turn_of_a_root,
    "the first turn of a boot, whose conversation is suspended": first_turn_of_a_boot,
    "a turn that touches no other session": turn(),
    "a turn that subscribes, sets metadata": turn(
        ("subscribe", {"name": "child 0"}),
        ("set_agent_metadata", {"key": "k", "value": 1}),
        children=1,
    ),
    "a turn that reminds": turn(("remind_me", {"delay_ns": 10**15, "payload": 1}), has_state=True),
    "a turn that begins a task, emits a trigger, creates a schedule": turn(
        ("begin_task", {"todos": []}),
        ("emit", {"payload": 1, "delay_ns": 10**15}),
        ("schedule", {"kind": "every", "spec": "60"}),
        has_state=True,
    ),
    "a turn with an activity, until its agent has the outcome": activity,
    "a turn that sends a message to another agent": turn(*_to("child 0"), children=1),
    "a turn that sends three messages to another agent": turn(
        *_to("child 0", "child 0", "child 0"), children=1
    ),
    "a turn that sends messages to two other agents": turn(*_to("child 0", "child 1"), children=2),
    "a turn that sends a message to USER": turn(*_to("USER")),
    "a turn that gates a child": turn(("gate", {"name": "child 0"}), children=1),
    "a turn that spawns a child": turn(("spawn_agent", {"name": "Kim"}), ("gate", {"name": "Kim"})),
    "a turn that completes a child": completion,
    "the claim of a trigger, before its turn": claim,
    "the line of a turn with a trigger, and its settlement": settlement,
    "a turn that fails": turn(fails=True),
    "a new segment of a log, behind a turn": segment,
    "the first collection of a root, of one agent": first_collection,
    "a collection of one agent": collection_of(1),
    "a collection of three agents": collection_of(3),
}


def _counted(name: str, calls: list[str]) -> Callable[[int], None]:
    function: Callable[[int], None] = getattr(os, name)

    def barrier(descriptor: int) -> None:
        function(descriptor)
        calls.append(name)

    return barrier


def test_every_operation_of_the_table_is_measured_and_no_other() -> None:
    assert list(table()) == list(OPERATIONS)


@pytest.mark.parametrize("recording", [RecordingOptions(), None], ids=["recorded", "off"])
@pytest.mark.parametrize("framing", list(Framing))
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_costs_what_the_table_says(
    name: str, framing: Framing, recording: RecordingOptions | None, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    numbers = count()
    calls: list[str] = []
    for barrier in BARRIERS:
        monkeypatch.setattr(os, barrier, _counted(barrier, calls))

    async def cost() -> int:
        return await OPERATIONS[name](
            lambda: Bench(tmp_path / str(next(numbers)), framing, calls, recording)
        )

    costs = table()[name]
    expected = costs.framed if framing is Framing.FRAMED else costs.pending
    assert asyncio.run(cost()) == expected + (costs.recording if recording else 0)
