"""Source patches apply exactly, in a second copy of the modules, and are undone afterwards."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from powercut.fuzz.source_patch import SourcePatch, patched
from sim.errors import HarnessError

STORE = """\
from shop.prices import price

LIMIT = 3


class Store:
    def total(self, names):
        if len(names) > LIMIT:
            return None

        return sum(price(name) for name in names)
"""
PRICES = """\
def price(name):
    return len(name)
"""
FREE = SourcePatch("shop.prices", "return len(name)", "return 0")


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of two modules."""
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "store.py").write_text(STORE)
    (package / "prices.py").write_text(PRICES)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop"]:
        monkeypatch.delitem(sys.modules, name)
    return package


def total(store: ModuleType, *names: str) -> object:
    return store.Store().total(names)


def test_patch_is_in_force_for_what_is_imported_inside_and_ends_with_the_context() -> None:
    original = import_module("shop.store")
    with patched([FREE]):
        copy = import_module("shop.store")
        assert total(copy, "tea") == 0
        assert total(original, "tea") == 3
    assert import_module("shop.store") is original
    assert total(copy, "tea") == 0


def test_modules_that_were_not_loaded_before_are_not_loaded_afterwards() -> None:
    with patched([FREE]):
        import_module("shop.store")
    assert not [name for name in sys.modules if name.partition(".")[0] == "shop"]


def test_patch_is_undone_when_the_context_ends_by_an_exception() -> None:
    original, finders = import_module("shop.prices"), list(sys.meta_path)
    with pytest.raises(ZeroDivisionError), patched([FREE]):
        raise ZeroDivisionError
    assert sys.modules["shop.prices"] is original
    assert sys.meta_path == finders


def test_patches_nest() -> None:
    with patched([FREE]):
        with patched([SourcePatch("shop.prices", "return 0", "return 7")]):
            assert total(import_module("shop.store"), "tea") == 7
        assert total(import_module("shop.store"), "tea") == 0


def test_packages_that_refer_to_the_program_are_imported_anew(tmp_path: Path) -> None:
    (tmp_path / "clerk.py").write_text("from shop.store import Store\n")
    original = import_module("clerk")
    with patched([FREE], ["clerk"]):
        assert import_module("clerk").Store().total(["tea"]) == 0
    assert import_module("clerk") is original
    assert original.Store().total(["tea"]) == 3


def test_block_is_found_at_any_indentation_and_replaced_at_the_same() -> None:
    patch = SourcePatch(
        "shop.store",
        """
        if len(names) > LIMIT:
            return None

        return sum(price(name) for name in names)
        """,
        """
        for name in names:
            return name

        return None
        """,
    )
    assert patch.apply(STORE).endswith(
        "    def total(self, names):\n"
        "        for name in names:\n"
        "            return name\n"
        "\n"
        "        return None\n"
    )


def test_an_empty_replacement_removes_the_lines() -> None:
    assert "LIMIT = 3" not in SourcePatch("shop.store", "LIMIT = 3", "").apply(STORE)


def test_several_patches_of_one_module_are_applied_in_order() -> None:
    twice = [FREE, SourcePatch("shop.prices", "return 0", "return -1")]
    with patched(twice):
        assert total(import_module("shop.store"), "tea") == -1


@pytest.mark.parametrize(
    ("patch", "complaint"),
    [
        (SourcePatch("shop.prices", "return 9", ""), "shop.prices fits 0 times instead of once"),
        (SourcePatch("shop.prices", "len(name)", "0"), "shop.prices fits 0 times instead of once"),
        (SourcePatch("shop.prices", "", "pass"), "shop.prices fits 0 times instead of once"),
        (
            SourcePatch("shop.twice", "pass", ""),
            "shop.twice fits 2 times instead of once; adapt its old text, which begins 'pass'",
        ),
        (
            SourcePatch("shop.prices", "return len(name)", "return ("),
            "leaves shop.prices malformed",
        ),
        (SourcePatch("shop.cellar", "a", "b"), "names an unknown module: No module named 'shop.c"),
        (SourcePatch("zlib", "a", "b"), "module 'zlib' has no source and cannot be patched"),
        (SourcePatch("sim.disk.disk", "a", "b"), "sim is part of the engine and cannot be patched"),
    ],
    ids=[
        "absent",
        "part of a line",
        "empty",
        "twice",
        "malformed",
        "unknown",
        "no source",
        "engine",
    ],
)
def test_patch_that_does_not_apply_is_refused_in_one_sentence(
    shop: Path, patch: SourcePatch, complaint: str
) -> None:
    (shop / "twice.py").write_text("if __name__:\n    pass\nelse:\n    pass\n")
    loaded, finders = dict(sys.modules), list(sys.meta_path)
    with pytest.raises(HarnessError) as refused, patched([patch]):
        pass
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)
    assert (sys.modules, sys.meta_path) == (loaded, finders)
