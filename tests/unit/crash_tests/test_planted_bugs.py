"""``docs/planted-bugs.md`` shows the mutants as they are, with the figures that were measured."""

from __future__ import annotations

from crash_tests.mutants.planted_bugs import (
    PAGE,
    SEEDS,
    catalogue,
    page,
    read_figures,
    reproduced,
)
from tests.registry import REGISTRY

MUTANTS = catalogue(REGISTRY)
FIGURES = read_figures()


def test_page_has_the_table_of_the_registered_mutants() -> None:
    text = PAGE.read_text("ascii")
    assert text == page(text, MUTANTS, FIGURES)


def test_every_mutant_was_measured_and_no_other() -> None:
    assert list(FIGURES) == list(MUTANTS)
    for tag, mutant in MUTANTS.items():
        assert 1 <= len(FIGURES[tag]) <= (1 if mutant.tests else len(SEEDS)), tag


def test_every_mutant_was_found_by_what_it_declares() -> None:
    for tag, mutant in MUTANTS.items():
        declared = {failure.__name__ for failure in mutant.properties}
        declared |= {test.rpartition("::")[2] for test in mutant.tests}
        found_by = {figures.found_by for figures in FIGURES[tag]} - {""} | reproduced(tag)
        assert found_by, f"nothing finds {tag}"
        assert found_by <= declared, tag


def test_campaigns_of_a_minute_find_nine_of_ten_mutants() -> None:
    searches = [FIGURES[tag] for tag, mutant in MUTANTS.items() if not mutant.tests]
    found = [tag for tag in searches if any(figures.found_by for figures in tag)]
    assert len(found) >= 0.9 * len(searches)
    assert len(found) >= 0.8 * len(MUTANTS)
