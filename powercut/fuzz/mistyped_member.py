"""Mistyped members of a target: ``check_recoverd`` would never be called, and check nothing.

A public name is refused if it resembles a member of ``Target`` that the class does not define,
and the modules of the class do not use it. A method ``check...`` resembles ``check_recovered``.
All other names are free.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from powercut.place import defined_at
from sim.errors import HarnessError

_SIMILAR: Final = 0.8
_CHECK: Final = "check_recovered"


def refuse_mistyped(reference: str, target: object, base: type) -> None:
    """Raise ``HarnessError`` for a mistyped member of ``target``.

    ``base`` has all members that a target can have.
    """
    own = [each for each in type(target).__mro__ if each not in base.__mro__]
    missing = {name for name in dir(base) if _is_missing(name, target, base)}
    for owner in (*own, target):
        for name, member in vars(owner).items():
            if name.startswith("_") or hasattr(base, name):
                continue
            meant = _meant(name, base, is_method=callable(member))
            if meant in missing and not _is_used(name, own):
                at = defined_at(member) if callable(member) else ""
                raise HarnessError(
                    f"{reference} has {name}, which nothing uses, and has no {meant}: correct the "
                    f"name, or begin it with an underscore{at}"
                )


def _is_missing(name: str, target: object, base: type) -> bool:
    """Return whether ``target`` has left a member as ``base`` defines it."""
    return name not in vars(target) and getattr(type(target), name) is getattr(base, name)


def _meant(name: str, base: type, *, is_method: bool) -> str:
    """Return the public member of ``base`` that ``name`` resembles most, empty for none."""
    members = {_plain(each): each for each in dir(base) if not each.startswith("_")}
    similar = get_close_matches(_plain(name), members, 1, _SIMILAR)
    if similar:
        return members[similar[0]]
    return _CHECK if is_method and name.startswith("check") else ""


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _is_used(name: str, classes: Sequence[type]) -> bool:
    """Return whether a module of ``classes`` mentions ``name`` other than to define it.

    True as well if there is no source to read.
    """
    use = re.compile(rf"(?<!\bdef )\b{name}\b(?!\s*(:[^=\n]*)?=[^=])")
    try:
        sources = [inspect.getsource(sys.modules[each.__module__]) for each in classes]
    except (OSError, TypeError):
        return True
    return any(map(use.search, sources))
