"""The providers that come with the runtime, each behind ``system.ports.Provider``."""

from system.providers.agentic import AgenticProvider, AgentService
from system.providers.bare import BareProvider, Model
from system.providers.scripted import ScriptedProvider, run_scripts

__all__ = [
    "AgentService",
    "AgenticProvider",
    "BareProvider",
    "Model",
    "ScriptedProvider",
    "run_scripts",
]
