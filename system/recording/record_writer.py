"""Writing the record of an execution in one pass, in constant memory.

Each event is encoded once: the hash of the whole record is taken while the lines are written,
and is complete when that of the header is due.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from system.recording.event import ExecutionEvent
from system.recording.event_chain import event_chain
from system.recording.event_list import Events, StoredJson
from system.recording.frozen_json import FrozenJson
from system.recording.header import ExecutionHeader
from system.recording.record import VERSION, ExecutionRecord
from system.recording.record_members import event_from_dict
from system.storage.codec import canonical

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

NULL: Final = FrozenJson(b"null")


class RecordView(NamedTuple):
    """An execution at one moment; long parts are in the spool of ``events``."""

    header: ExecutionHeader
    envelope: FrozenJson
    events: Events
    response: FrozenJson | StoredJson | None
    route: FrozenJson | StoredJson | None

    @property
    def execution_id(self) -> str:
        """The id of the execution."""
        return self.header.execution_id

    def record(self, events: tuple[ExecutionEvent, ...] | None = None) -> ExecutionRecord:
        """Return the sealed record, all of it in memory; ``OSError`` if long parts are gone.

        ``events`` are those of the view, if the caller has them.
        """
        events = whole_events(self.events) if events is None else events
        response = self.response
        if isinstance(response, StoredJson):
            response = events[-1].frozen_payload
        return ExecutionRecord(self.header, self.envelope, events, response).sealed()

    def pieces(self, seal: Callable[[ExecutionHeader], object]) -> Iterator[bytes]:
        """Yield the content of the record's file, and call ``seal`` with its header on the way.

        Raises ``OSError`` if long parts are gone.
        """
        digest, events = sha256(b'{"envelope":'), self.events
        yield b'{\n  "envelope": '
        yield from _hashed(self.envelope, digest)
        digest.update(b',"events":[')
        yield b',\n  "events": ['
        yield from self._event_pieces(digest)
        digest.update(b'],"finalResponse":')
        yield b'],\n  "finalResponse": '
        yield from _hashed(self.response or NULL, digest)
        header = replace(
            self.header,
            event_count=events.number,
            event_chain=event_chain(events.link, events.recent),
            record_hash=None,
        )
        digest.update(b',"header":%s,"routerDecision":' % canonical(header.to_dict()))
        # What follows the header is hashed before it is written.
        route = self.route or NULL
        for _ in _hashed(route, digest):
            pass
        digest.update(b',"v":%d}' % VERSION)
        header = replace(header, record_hash=f"sha256:{digest.hexdigest()}")
        seal(header)
        yield b',\n  "header": %s,\n  "routerDecision": ' % canonical(header.to_dict())
        yield from route.pieces()
        yield b',\n  "v": %d\n}\n' % VERSION

    def _event_pieces(self, digest: Hash) -> Iterator[bytes]:
        gap, indent, is_inside = b"", b"\n    ", False
        for piece in chain.from_iterable(self.events.runs_in_pieces()):
            # Canonical JSON has no line ends, so each is the end of an event.
            for line in piece.splitlines(keepends=True):
                text = line.removesuffix(b"\n")
                if not is_inside:
                    digest.update(gap)
                    yield gap + indent
                digest.update(text)
                yield text
                is_inside, gap = not line.endswith(b"\n"), b","
        for event in self.events.recent:
            encoded = gap + event.encoded()
            digest.update(encoded)
            yield gap + indent + encoded[len(gap) :]
            gap = b","


def _hashed(value: FrozenJson | StoredJson, digest: Hash) -> Iterator[bytes]:
    for piece in value.pieces():
        digest.update(piece)
        yield piece


def whole_events(events: Events) -> tuple[ExecutionEvent, ...]:
    """Return all events in memory; raises ``OSError`` if some of them are gone."""
    # Each extent is verified as a whole before it is parsed.
    stored = b"".join(b"".join(pieces) for pieces in events.runs_in_pieces())
    lines = stored.splitlines()
    return (*(event_from_dict(json.loads(line)) for line in lines), *events.recent)
