"""The events of one execution: in memory, but for those of a long one, which are in a spool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from json.encoder import encode_basestring_ascii as _quoted
from typing import Final, NamedTuple

from system.recording.event import EventType, ExecutionEvent
from system.recording.event_chain import event_chain
from system.recording.frozen_json import FrozenJson
from system.recording.spool import Extent, Spool

MOST_BYTES: Final = 1 << 20
"""Payloads of so many bytes are kept in memory."""


class StoredJson(NamedTuple):
    """A long JSON value in a spool; its bytes are canonical."""

    spool: Spool
    extent: Extent

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes in pieces; raises ``OSError``."""
        return self.spool.read(self.extent)

    def frozen(self) -> FrozenJson:
        """Return the whole value in memory; raises ``OSError``."""
        return FrozenJson(b"".join(self.pieces()))


class StoredEvent(NamedTuple):
    """An event with a long payload; ``parts`` are all of it, ``link`` is its hash in the chain."""

    seq: int
    type: str
    timestamp: str
    frozen_payload: StoredJson
    parts: tuple[Extent, ...]
    link: str


class Events(NamedTuple):
    """The events of one moment: those in ``runs`` of a spool, then the ``recent`` ones.

    ``link`` is the last one of the chain over the runs; each event there ends with a line end.
    """

    spool: Spool | None
    runs: tuple[Extent, ...]
    link: str
    recent: tuple[ExecutionEvent, ...]
    number: int

    def runs_in_pieces(self) -> Iterator[Iterator[bytes]]:
        """Yield the bytes of each run in pieces, which raise ``OSError``."""
        for extent in self.runs:
            assert self.spool is not None
            yield self.spool.read(extent)


class EventList:
    """The events that an execution has taken so far.

    ``last`` is the last one, without its payload if that is long, and ``route`` the payload of
    the last ROUTER_DECISION, or None. Executions are long if ``make_spool`` is set and their
    payloads have more than ``most_bytes``, or one of them is a long text.
    """

    def __init__(self, envelope_hash: str) -> None:
        self.last: ExecutionEvent | StoredEvent | None = None
        self.route: FrozenJson | StoredJson | None = None
        self.make_spool: Callable[[], Spool] | None = None
        self.most_bytes = MOST_BYTES
        self._link = envelope_hash
        self._spool: Spool | None = None
        self._runs: tuple[Extent, ...] = ()
        self._recent: list[ExecutionEvent] = []
        self._recent_bytes = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def last_type(self) -> str | None:
        """The type of the last event, or None."""
        return None if self.last is None else self.last.type

    def now(self) -> Events:
        """Return the events as they are now; later ones do not change it."""
        return Events(self._spool, self._runs, self._link, tuple(self._recent), self._count)

    def append(self, event: ExecutionEvent | StoredEvent) -> None:
        """Take the next event."""
        self.last, self._count = event, self._count + 1
        if event.type == EventType.ROUTER_DECISION:
            self.route = event.frozen_payload
        if isinstance(event, StoredEvent):
            assert not self._recent, "store has moved them into the spool"
            self._runs, self._link = (*self._runs, *event.parts), event.link
            return
        self._recent.append(event)
        self._recent_bytes += len(event.frozen_payload.encoded)
        if self._recent_bytes > self.most_bytes and self.make_spool is not None:
            try:
                self._spill()
            except OSError:
                # They stay in memory, like all later ones.
                self.make_spool = None

    def store(
        self, seq: int, event_type: str, timestamp: str, payload: Iterable[bytes]
    ) -> StoredEvent:
        """Write the next event, with the canonical JSON of its payload in pieces, to the spool.

        Raises ``OSError``, and what ``payload`` raises; then the event is not stored.
        """
        self._spill()
        spool, digest = self._opened(), sha256(self._link.encode())

        def hashed(pieces: Iterable[bytes]) -> Iterator[bytes]:
            for piece in pieces:
                digest.update(piece)
                yield piece

        tail = f',"seq":{seq},"timestamp":{_quoted(timestamp)},"type":{_quoted(event_type)}}}'
        head = spool.write(hashed([b'{"payload":']))
        stored = StoredJson(spool, spool.write(hashed(payload)))
        parts = (head, stored.extent, spool.write(hashed([tail.encode()])), spool.write([b"\n"]))
        link = f"sha256:{digest.hexdigest()}"
        return StoredEvent(seq, event_type, timestamp, stored, parts, link)

    def close(self) -> None:
        """Give back the spool."""
        if self._spool is not None:
            self._spool.close()

    def _spill(self) -> None:
        """Move the recent events into the spool; raises ``OSError`` with nothing moved."""
        if self._recent:
            run = self._opened().write(event.encoded() + b"\n" for event in self._recent)
            self._link = event_chain(self._link, self._recent)
            self._runs = (*self._runs, run)
            self._recent, self._recent_bytes = [], 0

    def _opened(self) -> Spool:
        if self._spool is None:
            assert self.make_spool is not None, "only executions with a spool store events"
            self._spool = self.make_spool()
        return self._spool
