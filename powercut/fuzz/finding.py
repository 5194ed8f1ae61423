"""What came out of a run: the one place where any exception of the system under test is caught."""

from __future__ import annotations

from collections.abc import Callable

from oracles.violation import Violation
from sim.errors import HarnessError


def failure_of(run: Callable[[], object]) -> Exception | None:
    """Run something; return the violation, or whatever else, that it raised, or None.

    What the harness raises about itself goes through, and so does the end of a lifetime.
    """
    try:
        run()
    except HarnessError:
        raise
    except Exception as failure:  # noqa: BLE001 - whatever comes out of the system is the finding
        return failure
    return None


def name_of(failure: BaseException) -> str:
    """Return the short name under which a failure is known: its property, or its type."""
    return failure.property_name if isinstance(failure, Violation) else type(failure).__name__
