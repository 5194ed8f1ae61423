"""Even shares: a bound on the work of reading a journal, spread evenly over its operations."""

from __future__ import annotations


class EvenShare:
    """Counts work, and decides which crash points of a journal are left out.

    At operation ``n`` of ``operations``, at most the part ``n / operations`` of ``most`` units
    may have been spent; otherwise the crash point is passed over. So those that are visited are
    spread over the whole journal. ``passed_over`` is True once one was passed over.
    """

    def __init__(self, most: int, operations: int) -> None:
        self.passed_over = False
        self._most = most
        self._operations = operations
        self._spent = 0

    def spend(self, work: int) -> None:
        """Count work."""
        self._spent += work

    def begin_again(self, most: int, operation: int) -> None:
        """Allow as much work from an operation on as if ``most`` had been spent evenly by then."""
        self._most = most
        self._spent = most * (operation + 1) // (self._operations + 1)

    def is_left(self, operation: int) -> bool:
        """Return whether there is work left for the crash point after an operation, from 0 on."""
        is_left = self._spent * self._operations <= self._most * operation
        self.passed_over = self.passed_over or not is_left
        return is_left

    def left(self, operation: int) -> int:
        """Return the work that the crash points up to an operation, from 0 on, may still take."""
        return self._most * (operation + 1) // (self._operations + 1) - self._spent
