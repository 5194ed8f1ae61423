"""The provider's part of a session record: the conversation's identity, and a blob.

The blob only makes a restore faster. It is used only if it was taken after exactly the number of
turns that the log has now; with an older blob the conversation would lose turns.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import NamedTuple

from system.errors import BadSeal
from system.storage.codec import seal, unseal


class ProviderState(NamedTuple):
    """``turns`` is the number of completed turns of the session when ``blob`` was taken."""

    identity: str
    turns: int = 0
    blob: bytes = b""

    def encoded(self) -> bytes:
        """Return the bytes that the record stores."""
        blob = b64encode(self.blob).decode("ascii")
        return seal({"blob": blob, "identity": self.identity, "turns": self.turns})

    @classmethod
    def of_encoded(cls, encoded: bytes) -> ProviderState:
        """Decode the result of ``encoded``; other bytes give a state without identity and blob."""
        try:
            members = unseal(encoded)
        except BadSeal:
            return cls("")
        match members:
            case {"blob": str(blob), "identity": str(identity), "turns": int(turns)}:
                return cls(identity, turns, b64decode(blob))
            case _:
                return cls("")
