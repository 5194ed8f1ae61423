"""The failure of a turn, and its code in the record of the execution."""

from __future__ import annotations

from asyncio import CancelledError
from enum import StrEnum

from system.ports import ProviderError


class FailureCode(StrEnum):
    """Why a turn has failed, for the final response of its record."""

    AGENT_ERROR = "AGENT_ERROR"
    """The provider failed, or its answer is unusable."""
    TIMEOUT = "TIMEOUT"
    """The provider did not answer in time."""
    NOT_KEPT = "NOT_KEPT"
    """The answer cannot be kept in a line."""
    STORAGE = "STORAGE"
    """The disk refused; nothing counts as presented."""
    CANCELLED = "CANCELLED"
    """It was cancelled."""


class TurnFailed(Exception):
    """The turn has no effect; the message is the reason. Its prompt counts as presented."""

    def __init__(self, reason: str, code: FailureCode = FailureCode.AGENT_ERROR) -> None:
        super().__init__(reason)
        self.code = code


def code_of(failure: BaseException) -> FailureCode:
    """Return the code of an exception that has ended a turn."""
    match failure:
        case TurnFailed():
            return failure.code
        case CancelledError():
            return FailureCode.CANCELLED
        case ProviderError():
            return FailureCode.AGENT_ERROR
        case _:
            return FailureCode.STORAGE
