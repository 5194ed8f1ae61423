"""The parts of a runtime by their classes, so that a mutant can replace one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from crash_tests.targets.runtime import RuntimeTarget
from powercut.fuzz.mutant import Mutant
from system.agents.multiplexer import Multiplexer, Pool
from system.agents.orchestrator import Orchestrator
from system.agents.tools import TurnTools
from system.agents.turns import Turns
from system.ports import Host, Provider
from system.providers.bounded import bounded
from system.recovery.recovery import Recovery
from system.runtime import Options, Runtime
from system.sessions.session_store import SessionStore


@dataclass(frozen=True, slots=True)
class RuntimeParts:
    """The classes of the parts; those of the system where nothing else is said."""

    store: type[SessionStore] = SessionStore
    pool: type[Pool] = Pool
    orchestrator: type[Orchestrator] = Orchestrator
    recovery: type[Recovery] = Recovery
    turns: type[Turns] = Turns
    tools: type[TurnTools] = TurnTools

    async def recover(
        self, host: Host, providers: Mapping[str, Provider], options: Options
    ) -> Runtime:
        """Recover a runtime that is made of these parts, as ``Runtime.recover`` does."""
        patient = bounded(providers, host.clock, options.provider_timeout_ns)
        multiplexer = Multiplexer(patient, options.slots, self.pool)
        orchestrator = self.orchestrator(host, self.store(host), multiplexer, options.framing)
        recovery = self.recovery(orchestrator)
        await recovery.run()
        turns = self.turns(orchestrator, options.turn_timeout_ns, self.tools)
        return Runtime(recovery, turns, options.resume)

    def mutant(self, title: str, *properties: type[Exception]) -> Mutant:
        """Return the mutant whose runtime consists of these parts."""
        return Mutant(title, partial(RuntimeTarget, "runtime", recover=self.recover), properties)
