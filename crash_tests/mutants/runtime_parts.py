"""The parts of a runtime, so that a mutant can replace one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from crash_tests.targets.runtime import RuntimeTarget
from powercut.fuzz.mutant import Mutant
from system.agents.dispatcher import Dispatcher
from system.agents.multiplexer import Multiplexer, Pool
from system.agents.orchestrator import Orchestrator
from system.agents.tools import TurnTools
from system.agents.turns import Turns
from system.ports import Host, Provider
from system.providers.bounded import bounded
from system.recovery.recovery import PASSES, Pass, recover
from system.runtime import Options, Runtime
from system.sessions.session_store import SessionStore


@dataclass(frozen=True, slots=True)
class RuntimeParts:
    """The parts; by default those of the system."""

    store: type[SessionStore] = SessionStore
    pool: type[Pool] = Pool
    dispatcher: type[Dispatcher] = Dispatcher
    passes: Sequence[Pass] = PASSES
    turns: type[Turns] = Turns
    tools: type[TurnTools] = TurnTools

    async def recover(
        self, host: Host, providers: Mapping[str, Provider], options: Options
    ) -> Runtime:
        """Recover a runtime that is made of these parts, as ``Runtime.recover`` does."""
        patient = bounded(providers, host.clock, options.provider_timeout_ns)
        multiplexer = Multiplexer(patient, options.slots, self.pool)
        orchestrator = Orchestrator(host, self.store(host), multiplexer, options.framing)
        dispatcher = self.dispatcher(orchestrator)
        recovery = await recover(dispatcher, self.passes)
        turns = self.turns(dispatcher, options.turn_timeout_ns, self.tools)
        return Runtime(recovery, turns, options.resume)

    def mutant(self, title: str, *properties: type[Exception]) -> Mutant:
        """Return the mutant whose runtime consists of these parts."""
        return Mutant(title, partial(RuntimeTarget, "runtime", recover=self.recover), properties)
