"""What gets installed is written down: exact versions, no place to fetch them from."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distribution, requires, version
from itertools import chain

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.meta.source_tree import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
CONSTRAINTS = [
    Requirement(line)
    for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]
PINNED: dict[str, Requirement] = {
    canonicalize_name(constraint.name): constraint for constraint in CONSTRAINTS
}


def wanted() -> set[str]:
    """Names of all distributions that ``.[dev,bench]`` brings in here, transitive ones too."""
    project = PROJECT["project"]
    waiting = [Requirement(line) for line in project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        waiting += [Requirement(line) for line in extra if not line.startswith("powercut")]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement = waiting.pop()
        if not applies(requirement, frozenset()):
            continue
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        for line in installed_requirements(requirement.name):
            needed = Requirement(line)
            if applies(needed, frozenset(requirement.extras)):
                waiting.append(needed)
    return {name for name, _ in seen}


def applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def installed_requirements(name: str) -> list[str]:
    try:
        return requires(name) or []
    except ModuleNotFoundError:
        # The bench extra is not part of a plain installation; its own name is pinned all the same.
        return []


def test_every_constraint_is_one_exact_version_without_a_host() -> None:
    for constraint in CONSTRAINTS:
        assert constraint.url is None, constraint
        assert re.fullmatch(r"==[0-9][0-9a-z.]*", str(constraint.specifier)), constraint


def test_no_requirement_file_names_a_place_to_fetch_from() -> None:
    for name in ("constraints.txt", "Makefile", ".ci/run", "pyproject.toml"):
        text = (ROOT / name).read_text("utf-8")
        found = re.findall(r"\w+://\S+|index-url|find-links|trusted-host", text)
        assert found == [], name


def test_everything_that_gets_installed_is_pinned() -> None:
    assert sorted(wanted() - PINNED.keys()) == []


def test_what_is_installed_is_what_is_pinned() -> None:
    differing = {
        name: version(name)
        for name in sorted(wanted() & PINNED.keys())
        if is_installed(name) and not PINNED[name].specifier.contains(version(name))
    }
    assert differing == {}


def is_installed(name: str) -> bool:
    try:
        distribution(name)
    except ModuleNotFoundError:
        return False
    return True


def test_hypothesis_is_pinned_here_and_free_for_users() -> None:
    (declared,) = [
        Requirement(line)
        for line in PROJECT["project"]["optional-dependencies"]["fuzz"]
        if line.startswith("hypothesis")
    ]
    assert "==" not in str(declared.specifier)
    assert str(PINNED["hypothesis"].specifier) == "==6.170.15"
    assert version("hypothesis") == "6.170.15"


def test_no_user_is_given_an_exact_version() -> None:
    project = PROJECT["project"]
    lines = [
        *project["dependencies"],
        *chain.from_iterable(project["optional-dependencies"].values()),
    ]
    assert [line for line in lines if "==" in line.partition(";")[0]] == []
