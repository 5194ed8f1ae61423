"""A mutant: one known hole, and how to get the part of the system that has it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from system.ports import Host, Provider
from system.runtime import Options, Runtime
from system.sessions.session_store import SessionStore
from system.storage.event_log import EventLog

OpenLog: TypeAlias = Callable[[Host, str, str], EventLog]
"""Opens and recovers a log: host, path, session id."""

OpenStore: TypeAlias = Callable[[Host], SessionStore]
"""Returns the session store of a host, not yet recovered."""

RecoverRuntime: TypeAlias = Callable[[Host, Mapping[str, Provider], Options], Awaitable[Runtime]]
"""Recovers the root of a host, as ``Runtime.recover`` does."""


@dataclass(frozen=True, slots=True)
class LogMutant:
    """A hole in the event log.

    ``identity`` is the hole's row in the specification, ``machine`` the tag of the target
    whose machine must find it, ``build`` opens the log that has it.
    """

    identity: str
    title: str
    machine: str
    build: OpenLog


@dataclass(frozen=True, slots=True)
class StoreMutant:
    """A hole in the session store; the members are those of ``LogMutant``."""

    identity: str
    title: str
    machine: str
    build: OpenStore


@dataclass(frozen=True, slots=True)
class RuntimeMutant:
    """A hole in the runtime; the members are those of ``LogMutant``."""

    identity: str
    title: str
    machine: str
    build: RecoverRuntime


Mutant: TypeAlias = "LogMutant | StoreMutant | RuntimeMutant"
