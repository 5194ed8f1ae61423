"""A litmus test: a few calls, and the outcomes that each model allows."""

from __future__ import annotations

from dataclasses import dataclass

from sim.disk.crash.persistence import MODELS
from tests.litmus.body import Body


@dataclass(frozen=True)
class Litmus:
    """``end`` has the outcomes of a power cut after the last call, separated by bars.

    Its keys are names of models, several in one key.
    """

    name: str
    setup: Body
    body: Body
    end: dict[str, str]

    def allowed(self, model: str) -> set[str]:
        for models, outcomes in self.end.items():
            if model in models.split() or models == "all":
                return {outcome.strip() for outcome in outcomes.split("|")}
        raise KeyError(model)

    @property
    def models(self) -> list[str]:
        return [m for m in MODELS if any(m in key.split() or key == "all" for key in self.end)]
