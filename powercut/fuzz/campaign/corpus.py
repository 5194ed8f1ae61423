"""The corpus: runs that reached something first, kept from one campaign to the next.

A campaign with a corpus begins half of its runs with a prefix of one of these runs, performed
as nearly as the target permits, and goes on at random from there. So a state that took a night
to reach is where the next night begins. At the end the runs that reached something new are
added. A corpus only grows; delete its directory to begin anew.

Each file is a reproducer of a run that passed (``powercut replay`` repeats it), with the
**features** that the run reached first: marks with the magnitude of their counts, crash points,
and pairs of consecutive actions with their outcomes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from powercut.fuzz.reproducer import (
    BadReproducer,
    Reproducer,
    read_reproducer,
    versions,
    write_reproducer,
)
from powercut.fuzz.run_log import RecordedStep
from powercut.fuzz.target_run import TargetRun

LONGEST_STEPS: Final = 100
"""The most steps of a run in a corpus; longer ones would take most of a campaign's time."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """The runs in a directory as the campaign found them: steps and features, by target."""

    runs: Mapping[str, Sequence[Sequence[RecordedStep]]]
    features: Mapping[str, Collection[str]]

    def prefix(self, target: str, seed: int) -> Sequence[RecordedStep]:
        """Return the beginning of a run that ``seed`` chooses; empty for every other seed."""
        runs = self.runs.get(target, ())
        odd, number = seed & 1, seed >> 1
        if not (odd and runs):
            return ()
        steps = runs[number % len(runs)]
        return steps[: 1 + number // len(runs) % len(steps)]


@cache
def corpus_in(folder: Path) -> Corpus:
    """Read a corpus, once in each process; a missing directory is an empty one.

    Raises ``BadReproducer`` for a file that is not a run of a corpus.
    """
    runs: dict[str, list[Sequence[RecordedStep]]] = {}
    features: dict[str, set[str]] = {}
    for path in sorted(folder.glob("*.json")):
        log = read_reproducer(path).log
        if log.steps:
            runs.setdefault(log.target, []).append(log.steps)
            features.setdefault(log.target, set()).update(_features_in(path))
    return Corpus(runs, features)


def _features_in(path: Path) -> Sequence[str]:
    found = json.loads(path.read_text(encoding="ascii")).get("features")
    if not isinstance(found, list):
        raise BadReproducer(f"{path} is not a run of a corpus: it has no list of features")
    return [str(feature) for feature in found]


def features_of(run: TargetRun) -> Iterator[str]:
    """Yield the features that a run has reached; one may come twice."""
    tally = run.tally
    for mark, count in tally.marks.reached.items():
        for magnitude in range(count.bit_length()):
            yield f"{mark} {1 << magnitude}"
    for during, operation, phase in tally.crash_points:
        yield f"crash {phase} {operation} during {during}"
    done = [
        " ".join((*step.action.kind_names, *step.outcome.split()[:2])) for step in run.log.steps
    ]
    for before, after in pairwise(done):
        yield f"{before}, {after}"


def add_run(folder: Path, run: TargetRun, features: Collection[str]) -> Path:
    """Add a run that passed; return its file. Raises ``HarnessError`` as reproducers do."""
    reproducer = Reproducer(run.log, "", versions())
    return write_reproducer(reproducer, folder, {"features": sorted(features)})
