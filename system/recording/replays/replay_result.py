"""The result of a replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from system.ports import Json, JsonObject
from system.recording.records.frozen_json import EMPTY, FrozenJson
from system.recording.records.record import ExecutionRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """The response of an execution as it was recorded; every access returns new values.

    For an execution of a batch that cannot be replayed, ``original_timestamp`` is None and
    ``failure`` is the error.
    """

    original_execution_id: str
    original_timestamp: str | None = None
    frozen_response: FrozenJson | None = None
    frozen_metadata: FrozenJson = EMPTY
    warnings: tuple[str, ...] = ()
    failure: Exception | None = None
    from_replay: bool = True

    @classmethod
    def of(cls, record: ExecutionRecord, warnings: tuple[str, ...] = ()) -> ReplayResult:
        """Return the result of a record; it is empty if the record has no response."""
        response = record.final_response or {}
        metadata = response.get("metadata")
        return cls(
            original_execution_id=record.execution_id,
            original_timestamp=record.header.created_utc_iso,
            frozen_response=record.frozen_response,
            frozen_metadata=FrozenJson.of(metadata) if isinstance(metadata, dict) else EMPTY,
            warnings=warnings,
        )

    @property
    def response(self) -> JsonObject | None:
        """The final response exactly, or None."""
        return None if self.frozen_response is None else self.frozen_response.members()

    @property
    def payload(self) -> Json:
        """The payload of the response; None if it has none."""
        return (self.response or {}).get("payload")

    @property
    def metadata(self) -> JsonObject:
        """The metadata of the response, or of the failure."""
        return self.frozen_metadata.members()

    @property
    def status(self) -> Json:
        """The status of the response: ``success`` or ``error``; None without a response."""
        return (self.response or {}).get("status")

    @property
    def error(self) -> Json:
        """The error of the response, or None."""
        return (self.response or {}).get("error")

    def to_dict(self) -> JsonObject:
        """Return the result as JSON, with the names of the record format."""
        return {
            "payload": self.payload,
            "metadata": self.metadata,
            "response": cast("Json", self.response),
            "status": self.status,
            "error": self.error,
            "fromReplay": self.from_replay,
            "originalExecutionId": self.original_execution_id,
            "originalTimestamp": self.original_timestamp,
            "warnings": list[Json](self.warnings),
        }
