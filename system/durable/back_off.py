"""The pauses between attempts."""

from __future__ import annotations

from typing import Final

from system.durable.seconds import SECOND_NS
from system.ports import Ids

MOST_ATTEMPTS: Final = 5
FIRST_PAUSE_NS: Final = 30 * SECOND_NS
LONGEST_PAUSE_NS: Final = 3_600 * SECOND_NS
_DIGITS: Final = 4


def pause_ns(ids: Ids, attempts: int) -> int:
    """Return the pause after attempt ``attempts``, from 1.

    It doubles each time, up to an hour, and is up to a quarter longer at random.
    """
    assert attempts > 0
    least_ns = min(LONGEST_PAUSE_NS, FIRST_PAUSE_NS << (attempts - 1))
    return least_ns + least_ns * int(ids.random_hex(_DIGITS), 16) // (4 * 16**_DIGITS)
