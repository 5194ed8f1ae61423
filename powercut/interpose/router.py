"""The router: the object whose bound methods replace the functions of ``os``.

A bound method, unlike a plain function, binds nothing when a class has it as an attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from powercut.interpose.lifetime import Lifetime


class Guard(Protocol):
    """Refuses uses of the real machine."""

    def check(self, event: str, arguments: tuple[object, ...]) -> None:
        """Raise ``EscapedSimulation`` for an audit event that must not happen."""
        ...


class Router:
    """``lifetime`` is that of the interposed process, None while there is none.

    ``guard`` watches the audit events, None if nothing is refused.
    """

    __slots__ = ("guard", "lifetime")

    def __init__(self) -> None:
        self.lifetime: Lifetime | None = None
        self.guard: Guard | None = None

    def __repr__(self) -> str:
        return "powercut"

    def __deepcopy__(self, _copied: object) -> Router:
        return self

    def __reduce__(self) -> str:
        return "ROUTER"


ROUTER: Final = Router()
"""The router of this process."""
