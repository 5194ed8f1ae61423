"""All specimens by their identity, in the order of the specification's rows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from faults.specimens.event_log import (
    encoding_of_lines_is_guessed,
    failed_barrier_is_forgotten,
    partial_line_stays,
    stale_pending_is_appended,
    torn_pending_is_appended,
    torn_tail_stays_without_pending,
)
from faults.specimens.session_store import new_directory_has_no_barrier, one_bad_record_stops_all
from faults.specimens.specimen import LogSpecimen, Specimen, StoreSpecimen
from sim.errors import HarnessError

_FRAMED: Final = "event-log-framed"
_PENDING: Final = "event-log-pending"
_STORE: Final = "session-store"

SPECIMENS: Final[Mapping[str, Specimen]] = MappingProxyType(
    {
        specimen.identity: specimen
        for specimen in (
            LogSpecimen(
                "R1",
                "a torn pending entry is appended unvalidated",
                _PENDING,
                torn_pending_is_appended,
            ),
            LogSpecimen(
                "R2",
                "a torn tail stays when there is no pending entry",
                _PENDING,
                torn_tail_stays_without_pending,
            ),
            LogSpecimen(
                "R3",
                "a stale pending entry is appended again",
                _PENDING,
                stale_pending_is_appended,
            ),
            StoreSpecimen(
                "R8",
                "one unreadable session record stops the recovery of all",
                _STORE,
                one_bad_record_stops_all,
            ),
            LogSpecimen(
                "R9",
                "a region of NULs ends the recovery",
                _FRAMED,
                encoding_of_lines_is_guessed,
            ),
            StoreSpecimen(
                "R18",
                "the entry of a new session's directory is never made durable",
                _STORE,
                new_directory_has_no_barrier,
            ),
            LogSpecimen(
                "R19",
                "a partial line stays in a running log",
                _FRAMED,
                partial_line_stays,
            ),
            LogSpecimen(
                "R19-fsync",
                "a failed fsync is forgotten and the log goes on",
                _FRAMED,
                failed_barrier_is_forgotten,
            ),
        )
    }
)


def specimen_named(identity: str) -> Specimen:
    """Return the specimen of this identity; ``HarnessError`` names the known ones."""
    try:
        return SPECIMENS[identity]
    except KeyError:
        known = ", ".join(SPECIMENS)
        raise HarnessError(f"unknown specimen {identity!r}; known are {known}") from None
