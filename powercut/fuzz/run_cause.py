"""The cause of a failed run, in the words of its report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from powercut.fuzz.action import Json


@dataclass(frozen=True, slots=True)
class RunCause:
    """Why a run fails: the barrier that is missing, or the disturbance that it needs.

    ``group`` is equal for runs with one cause. Of a missing barrier, ``harm`` is the harm that
    its lack does, and on which file systems; ``unsafe`` are the models that need the barrier at the
    power cut of the run, ``safe`` those under which nothing fails there; ``others`` are further
    missing barriers, with their harm, that other survivors of this power cut show; ``repair`` says
    how many of its states fail with all of them.

    A lower ``rank`` does harm under stronger models, and more of it.
    """

    text: str
    group: str
    harm: str = ""
    unsafe: tuple[str, ...] = ()
    safe: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    repair: str = ""
    rank: tuple[int, int] = (0, 0)

    def lines(self) -> Iterator[str]:
        """Yield the cause as lines of a report."""
        yield f"  cause   {self.text}"
        for other in self.others:
            yield f"  also    {other}"
        if self.repair:
            yield f"  harm    {self.harm}"
            yield f"  unsafe  on {', '.join(self.unsafe)}"
            if self.safe:
                yield f"  safe    at this power cut: {', '.join(self.safe)}"
            yield f"  repair  {self.repair}"

    def plain(self) -> dict[str, Json]:
        """Return the cause as JSON data."""
        missing = {
            "harm": self.harm,
            "models": list(self.unsafe),
            "other_causes": list(self.others),
            "repair": self.repair,
        }
        return {"cause": self.text, **(missing if self.repair else {})}
