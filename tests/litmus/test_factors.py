"""Factors: each way can be combined with every decision on other pieces."""

from __future__ import annotations

import pytest

from sim.choices import SeededChoices
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS, PersistenceModel
from sim.disk.crash.undecided import factor
from sim.disk.crash.undecided.factor import factors_of
from sim.disk.crash.undecided.layer import Layer
from sim.disk.crash.undecided.progress import Progress, undecided
from sim.disk.disk import Disk
from tests.litmus.observer import random_program, run_program
from tests.litmus.programs import SETUP

SEEDS = 100
_NEEDS_DEPENDENTS = (152, 265, 358, 524)


def _layer(choices: SeededChoices, model: PersistenceModel) -> Layer:
    disk = Disk(SETUP, model)
    run_program(random_program(choices, 7), Process(disk))
    return Layer((), disk.unsynced().ordering)


def _decided(choices: SeededChoices, layer: Layer, state: Progress, times: int) -> Progress:
    """Return a progress in which some more pieces have survived or are lost."""
    for _ in range(times):
        index = choices.integer("piece", 0, len(layer.micros) - 1)
        state = _limited(choices, layer, state, index)
    return state


def _limited(choices: SeededChoices, layer: Layer, state: Progress, index: int) -> Progress:
    length = layer.lengths[index]
    low, high = choices.pick("limits", ((length, length), (0, 0), (0, length - 1)))
    return state.limit(layer, index, low, high) or state


def _is_consistent(layer: Layer, state: Progress) -> bool:
    broken = sum(
        1 << index for index, (_, high) in state.parts.items() if high < layer.lengths[index]
    )
    return not state.survived & (state.lost | broken) and all(
        not state.survived >> index & 1 or not before & ~state.survived
        for index, before in enumerate(layer.order)
    )


def _ways(choices: SeededChoices, layer: Layer, before: Progress) -> list[tuple[Progress]]:
    """Return some ways to decide further pieces."""
    return [(_decided(choices, layer, before, choices.integer("times", 1, 3)),) for _ in range(4)]


def _all_combine(seed: int, model: PersistenceModel) -> bool:
    choices = SeededChoices(seed)
    layer = _layer(choices, model)
    if not layer.micros:
        return True
    before = _decided(choices, layer, undecided(layer), 1)
    for states, found in factors_of([layer], (before,), _ways(choices, layer, before)):
        if found is None:
            continue
        (state,) = states
        for index in range(len(layer.micros)):
            if not found.has(0, index):
                state = _limited(choices, layer, state, index)
        for way in range(len(found.ways)):
            if not all(_is_consistent(layer, each) for each in found.applied((state,), way)):
                return False
    return True


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_ways_of_a_factor_combine_with_other_decisions(model: PersistenceModel) -> None:
    assert all(_all_combine(seed, model) for seed in (*range(SEEDS), *_NEEDS_DEPENDENTS))


def test_pieces_that_depend_on_a_factor_belong_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factor, "_decided", lambda *_: -1)
    assert not any(_all_combine(seed, MODELS["btrfs"]) for seed in _NEEDS_DEPENDENTS)


def test_every_way_is_in_one_group() -> None:
    for seed in range(SEEDS):
        choices = SeededChoices(seed)
        layer = _layer(choices, MODELS["btrfs"])
        if not layer.micros:
            continue
        before = undecided(layer)
        ways = _ways(choices, layer, before)
        grouped: list[tuple[Progress, ...]] = []
        for states, found in factors_of([layer], (before,), ways):
            grouped += [states] if found is None else found.ways
        assert len(grouped) == len(ways)
        assert all(way in grouped for way in ways)
