"""Imports the triggers of an older program from a list of JSON objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from system.durable.dedup import holder_of
from system.durable.emitter import (
    CheckedTrigger,
    Emitter,
    check_recipient,
    checked_description,
    checked_payload,
    checked_time,
)
from system.durable.errors import BadTrigger, NoRecipient
from system.durable.producers import LEGACY, priority_of
from system.durable.state import Transaction
from system.durable.trigger import Sessions, TriggerSource
from system.ports import Json, JsonObject
from system.storage.codec import canonical

LEGACY_TYPES: Final = (
    ("scheduled", TriggerSource.SCHEDULED),
    ("memory_processing", TriggerSource.MEMORY),
    ("proactive_", TriggerSource.PROACTIVE),
    ("living_ui_", TriggerSource.LIVING_UI),
    ("restart_notice", TriggerSource.SYSTEM),
)
"""The beginnings of ``payload.type``, and the source of each; all others are MESSAGE."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import: ids of new triggers, the number of known ones, and refusals.

    ``refused`` has the position and the reason of each trigger without a session to take it.
    """

    created: tuple[str, ...]
    known: int
    refused: tuple[tuple[int, str], ...]


def checked_legacy(triggers: Sequence[Json]) -> list[CheckedTrigger]:
    """Return all legacy triggers in their order.

    Raises ``BadTrigger``, ``NotPlainJson`` or ``PayloadTooLarge`` if one is malformed.
    """
    return [_checked(position, legacy) for position, legacy in enumerate(triggers)]


def import_legacy(
    transaction: Transaction, emitter: Emitter, sessions: Sessions,
    triggers: Sequence[CheckedTrigger],
) -> Imported:  # fmt: skip
    """Emit all legacy triggers in one transaction; a second import of them changes nothing."""
    created: list[str] = []
    refused: list[tuple[int, str]] = []
    known = 0
    for position, checked in enumerate(triggers):
        assert checked.key is not None
        if holder_of(transaction, checked.key) is not None:
            known += 1
            continue
        try:
            is_routable = checked.source is TriggerSource.MESSAGE
            check_recipient(sessions, checked.session_id, routable=is_routable)
        except NoRecipient as reason:
            refused.append((position, str(reason)))
            continue
        created.append(emitter.insert(transaction, checked).trigger_id)
    return Imported(tuple(created), known, tuple(refused))


def _checked(position: int, legacy: Json) -> CheckedTrigger:
    if not isinstance(legacy, dict):
        raise BadTrigger(f"the legacy trigger at position={position} is not an object")
    payload = legacy.get("payload")
    members: JsonObject = dict(payload) if isinstance(payload, dict) else {"content": payload}
    source = _source(members.get("type"))
    if "waiting_for_reply" in legacy:
        members["waiting_for_reply"] = legacy["waiting_for_reply"]
    producer = replace(LEGACY, source=source)
    return CheckedTrigger(
        producer,
        source,
        checked_payload(members),
        checked_description(_text(position, legacy, "next_action_description")),
        _text(position, legacy, "session_id"),
        _fire_at(position, legacy),
        f"{LEGACY.prefix}:{sha256(canonical(legacy)).hexdigest()}",
        priority_of(producer, _priority(position, legacy)),
    )


def _source(legacy_type: Json) -> TriggerSource:
    for beginning, source in LEGACY_TYPES:
        if isinstance(legacy_type, str) and legacy_type.startswith(beginning):
            return source
    return TriggerSource.MESSAGE


def _text(position: int, legacy: JsonObject, member: str) -> str | None:
    value = legacy.get(member)
    if value is None or isinstance(value, str):
        return value
    raise BadTrigger(f"{member} of the legacy trigger at position={position} is not a text")


def _fire_at(position: int, legacy: JsonObject) -> float:
    value = legacy.get("fire_at")
    if isinstance(value, int | float):
        return checked_time(value)
    raise BadTrigger(f"fire_at of the legacy trigger at position={position} is not a number")


def _priority(position: int, legacy: JsonObject) -> int | None:
    value = legacy.get("priority")
    if value is None or isinstance(value, int):
        return value
    raise BadTrigger(f"priority of the legacy trigger at position={position} is not a number")
