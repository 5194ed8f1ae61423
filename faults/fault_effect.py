"""What a fault rule does when it strikes: one small value per effect.

==================  ==================================================================
``ENOSPC``          the call fails with this errno and changes nothing
``EIO:ext4``        fsync fails under this policy: ext4, xfs, ext4-journal, btrfs, lying
``short:10B``       the call transfers at most so many bytes
``rot:4``           sector 4 of the file reads damaged, always in the same way
``misdirected:4``   the data goes to sector 4 of the file, not where it belongs
``back:90s``        the clock steps back
==================  ==================================================================
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Final, TypeAlias

from faults.fault_units import duration_ns, duration_word, number, size_bytes, size_word
from sim.disk.cache.operation import SyncFailure
from sim.errors import HarnessError

_ERRNOS: Final = {
    name: getattr(errno, name) for name in ("EIO", "ENOSPC", "EINTR", "EROFS", "EMFILE")
}


@dataclass(frozen=True, slots=True)
class Refuse:
    """The call fails with ``errno`` and changes nothing."""

    errno: int

    def __post_init__(self) -> None:
        if self.errno not in _ERRNOS.values():
            raise HarnessError(f"errno={self.errno} is none of {', '.join(_ERRNOS)}")

    def __str__(self) -> str:
        return errno.errorcode[self.errno]


@dataclass(frozen=True, slots=True)
class FailSync:
    """The barrier makes nothing durable, and behaves as ``policy`` says."""

    policy: SyncFailure

    def __str__(self) -> str:
        return f"EIO:{self.policy}"


@dataclass(frozen=True, slots=True)
class Short:
    """The call transfers at most ``most_bytes``, of which there is at least one."""

    most_bytes: int

    def __post_init__(self) -> None:
        if self.most_bytes < 1:
            raise HarnessError(f"a short call transfers a byte, got most_bytes={self.most_bytes}")

    def __str__(self) -> str:
        return f"short:{size_word(self.most_bytes)}"


@dataclass(frozen=True, slots=True)
class Rot:
    """Sector ``sector`` of the file, from 0 and of 512 bytes, reads damaged."""

    sector: int

    def __str__(self) -> str:
        return f"rot:{self.sector}"


@dataclass(frozen=True, slots=True)
class Misdirect:
    """The data of the write shows at sector ``sector`` of the file; its place shows the old."""

    sector: int

    def __str__(self) -> str:
        return f"misdirected:{self.sector}"


@dataclass(frozen=True, slots=True)
class StepBack:
    """The clock steps back by ``back_ns``."""

    back_ns: int

    def __str__(self) -> str:
        return f"back:{duration_word(self.back_ns)}"


Effect: TypeAlias = "Refuse | FailSync | Short | Rot | Misdirect | StepBack"


def parse_effect(word: str) -> Effect:
    """Read what ``str`` wrote; ``HarnessError`` names the piece that is wrong."""
    name, colon, value = word.partition(":")
    match name:
        case _ if name in _ERRNOS and not colon:
            return Refuse(_ERRNOS[name])
        case "EIO":
            return FailSync(_policy(value))
        case "short":
            return Short(size_bytes(value))
        case "rot":
            return Rot(number(value, "sector"))
        case "misdirected":
            return Misdirect(number(value, "sector"))
        case "back":
            return StepBack(duration_ns(value))
    raise HarnessError(
        f"{word!r} in a fault rule is no effect; write {', '.join(_ERRNOS)}, EIO:policy, "
        "short:10B, rot:4, misdirected:4 or back:90s"
    )


def _policy(word: str) -> SyncFailure:
    try:
        return SyncFailure(word)
    except ValueError:
        known = ", ".join(SyncFailure)
        raise HarnessError(
            f"fsync failure policy {word!r} in a fault rule is none of {known}"
        ) from None
