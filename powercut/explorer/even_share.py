"""Even shares: a bound on the work of reading a journal, spread evenly over its operations."""

from __future__ import annotations


class EvenShare:
    """Counts work, and decides which crash points of a journal are left out.

    Of ``most`` units, so many may have been spent when an operation is reached as its place in
    the journal allows. A crash point for which none is left is passed over, so those that are
    visited are spread over the whole journal. ``passed_over`` is whether there was one.
    """

    def __init__(self, most: int, operations: int) -> None:
        self.passed_over = False
        self._most = most
        self._operations = operations
        self._spent = 0

    def spend(self, work: int) -> None:
        """Count work."""
        self._spent += work

    def is_left(self, operation: int) -> bool:
        """Return whether there is work left for the crash point after an operation, from 0 on."""
        is_left = self._spent * self._operations <= self._most * operation
        self.passed_over = self.passed_over or not is_left
        return is_left
