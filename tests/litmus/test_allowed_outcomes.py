"""Explored exhaustively, each litmus test has exactly the outcomes that its model allows."""

from __future__ import annotations

import pytest

from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS
from sim.disk.disk import Disk
from tests.litmus.allowed import KILLED, LITMUS
from tests.litmus.body import Calls, killed, line_of, outcomes, paths_ever, prepared
from tests.litmus.litmus import Litmus
from tests.litmus.naive import NaiveDisk, Tree, killed_trees

CASES = [(litmus, model) for litmus in LITMUS for model in litmus.models]


@pytest.mark.parametrize(
    ("litmus", "model"), CASES, ids=[f"{litmus.name} [{model}]" for litmus, model in CASES]
)
def test_observed_outcomes_equal_the_allowed_ones(litmus: Litmus, model: str) -> None:
    assert outcomes(MODELS[model], litmus.setup, litmus.body) == litmus.allowed(model)


@pytest.mark.parametrize(
    ("litmus", "model"), CASES, ids=[f"{litmus.name} [{model}]" for litmus, model in CASES]
)
def test_the_naive_enumeration_finds_the_allowed_outcomes(litmus: Litmus, model: str) -> None:
    image = prepared(litmus.setup)
    disk = Disk(image, MODELS[model])
    litmus.body(Calls(Process(disk)))
    naive = NaiveDisk(MODELS[model], image)
    for number, operation in enumerate(disk.journal, 1):
        naive.advance(operation, number)
    names = sorted(paths_ever(disk))
    assert {_line(tree, names) for tree in naive.trees()} == litmus.allowed(model)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("litmus", KILLED, ids=lambda litmus: litmus.name)
def test_kills_leave_the_allowed_outcomes_in_both_implementations(
    litmus: Litmus, model: str
) -> None:
    image = prepared(litmus.setup)
    disk = Disk(image, MODELS[model])
    litmus.body(Calls(Process(disk)))
    names, trees = sorted(paths_ever(disk)), killed_trees(MODELS[model], image, [*disk.journal])
    assert killed(MODELS[model], litmus.setup, litmus.body) == litmus.allowed(model)
    assert {_line(tree, names) for tree in trees} == litmus.allowed(model)


def _line(tree: Tree, names: list[str]) -> str:
    contents = {path: content for path, _, _, content in tree}
    return line_of(names, contents)


@pytest.mark.parametrize("model", MODELS)
def test_each_model_has_at_least_eight_litmus_tests(model: str) -> None:
    assert sum(model in litmus.models for litmus in LITMUS) >= 8
