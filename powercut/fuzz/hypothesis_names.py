"""Private names of Hypothesis that powercut uses, and the effect if one is missing.

Any version of Hypothesis may be installed; only the one in ``constraints.txt`` is known to
have all of them. This module imports nothing of Hypothesis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Final

CONSTANTS: Final = "the examples of a derandomized profile depend on the modules imported"
MUTATIONS: Final = "most examples are near copies of others"
ENGINE: Final = "failures are reduced by leaving out steps only"
DRIVER: Final = "state machines of targets cannot run"

_NAMES: Final[Mapping[str, Sequence[str]]] = {
    CONSTANTS: (
        "hypothesis.internal.conjecture.providers:_get_local_constants",
        "hypothesis.internal.conjecture.providers:CONSTANTS_CACHE.cache",
        "hypothesis.internal.constants_ast:Constants",
    ),
    MUTATIONS: ("hypothesis.internal.conjecture.engine:ConjectureRunner.generate_mutations_from",),
    ENGINE: (
        "hypothesis.internal.conjecture.data:ConjectureData.for_choices",
        "hypothesis.internal.conjecture.data:ConjectureResult",
        "hypothesis.internal.conjecture.engine:ConjectureRunner.cached_test_function",
        "hypothesis.internal.conjecture.engine:ConjectureRunner.new_shrinker",
        "hypothesis.internal.conjecture.engine:RunIsComplete",
        "hypothesis.internal.escalation:InterestingOrigin",
    ),
    DRIVER: (
        "hypothesis.control:current_build_context",
        "hypothesis.internal.conjecture.data:ConjectureData.draw_integer",
        "hypothesis.stateful:RuleStrategy.do_draw",
    ),
}


def missing_names() -> list[str]:
    """Return one sentence for each private name that the installed Hypothesis lacks.

    The list is empty if Hypothesis is not installed.
    """
    if find_spec("hypothesis") is None:
        return []
    return [
        f"Hypothesis has no {name.replace(':', '.')}: {effect}"
        for effect, names in _NAMES.items()
        for name in names
        if not _exists(name)
    ]


def has_names_for(effect: str) -> bool:
    """Return whether Hypothesis is installed with all names whose absence has this effect."""
    return find_spec("hypothesis") is not None and all(map(_exists, _NAMES[effect]))


def _exists(name: str) -> bool:
    module, _, attributes = name.partition(":")
    try:
        found: object = import_module(module)
        for attribute in attributes.split("."):
            found = getattr(found, attribute)
    except (ImportError, AttributeError):
        return False
    return True
