"""How hard Hypothesis looks: four named settings, and one fixed pool of constants.

``install_profiles`` registers the four under Hypothesis's own registry; ``select_profile``
makes one of them current, by its argument or by ``HYPOTHESIS_PROFILE``. Settings are read
when a test or a machine is *defined*, so both run before the first test module is imported
(``tests/conftest.py``) and before the command line imports a machine.

Left out: ``--hypothesis-profile`` and ``--hypothesis-seed`` belong to Hypothesis's own pytest
plugin, which comes later and therefore wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.internal.conjecture import providers
from hypothesis.internal.conjecture.engine import ConjectureRunner
from hypothesis.internal.constants_ast import Constants
from sortedcontainers import SortedSet

from sim.errors import HarnessError

PROFILE_VARIABLE = "HYPOTHESIS_PROFILE"

# Sizes at which a file system changes its mind: sector, block, page and WAL-header edges,
# the buffer of a Python file object, the longest name. Hypothesis's own pool starts at 2**16.
_EDGES = (128, 255, 512, 1024, 2048, 4096, 8192, 16384, 32768)


@dataclass(frozen=True, slots=True)
class Profile:
    """One budget: ``examples`` runs of at most ``steps`` actions each.

    A ``derandomized`` profile draws the same inputs every time, without a database.
    """

    name: str
    examples: int
    steps: int
    derandomized: bool = False


PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("default", examples=200, steps=30),
        Profile("ci", examples=50, steps=30, derandomized=True),
        Profile("nightly", examples=5_000, steps=50),
        Profile("torture", examples=50_000, steps=200),
    )
}


def install_profiles(root: Path) -> None:
    """Register every profile with its database under ``root``; fix what Hypothesis draws.

    Raises ``HarnessError`` if the installed Hypothesis is not one where that is possible.
    """
    freeze_constants()
    draw_every_example_afresh()
    database = DirectoryBasedExampleDatabase(root.absolute() / ".hypothesis" / "examples")
    # While CI is set, Hypothesis makes its own derandomized profile without a database the
    # current one, and the current one is the parent of whatever names no other. It is named.
    parent = settings(
        settings.get_profile("default"),
        deadline=None,
        print_blob=False,
        # It reads the wall clock, as a deadline does: a busy machine is no failure.
        suppress_health_check=[HealthCheck.too_slow],
    )
    for profile in PROFILES.values():
        if profile.derandomized:
            # Explaining a failure traces every line, which costs minutes on Python 3.11.
            phases = tuple(phase for phase in Phase if phase is not Phase.explain)
            chosen = settings(parent, derandomize=True, database=None, phases=phases)
        else:
            chosen = settings(parent, derandomize=False, database=database, phases=tuple(Phase))
        settings.register_profile(
            profile.name,
            chosen,
            max_examples=profile.examples,
            stateful_step_count=profile.steps,
        )


def select_profile(name: str) -> Profile:
    """Make the registered profile ``name`` current, and return its numbers.

    Raises ``HarnessError``, naming the known profiles, if there is none of that name.
    """
    if name not in PROFILES:
        message = (
            f"no settings profile is called {name!r}; "
            f"{PROFILE_VARIABLE} is one of {', '.join(PROFILES)}"
        )
        raise HarnessError(message)
    settings.load_profile(name)
    return PROFILES[name]


def freeze_constants() -> None:
    """Let Hypothesis mix in the edges of a disk, and nothing harvested from imported modules.

    Hypothesis draws one value in twenty from the literals of every local module that happens
    to be imported, so that ``pytest one_file.py`` and ``pytest .`` see different inputs even
    when derandomized. Only a private name reaches that pool: hence the pinned version.

    Raises ``HarnessError`` if the private name is gone.
    """
    if not hasattr(providers, "_get_local_constants"):
        message = (
            "this version of Hypothesis harvests its constants elsewhere; "
            "install the version that constraints.txt pins"
        )
        raise HarnessError(message)
    pool = Constants(
        integers=SortedSet(near for edge in _EDGES for near in (edge - 1, edge, edge + 1)),
        floats=SortedSet(),
        bytes=SortedSet(),
        strings=SortedSet(),
    )
    providers._get_local_constants = lambda: pool  # noqa: SLF001 - see the docstring
    # Whatever was drawn before this line may have cached the harvested pool.
    providers.CONSTANTS_CACHE.cache.clear()


def draw_every_example_afresh() -> None:
    """Keep Hypothesis from spending two thirds of a budget on near copies of earlier runs.

    After each example it tries up to five more in which one stretch is replaced by a copy of
    another with the same label, and every two steps of a machine have the same. Of 50 runs,
    17 were new: planted holes were missed 7 times in 40 searches, without the copies never.

    Raises ``HarnessError`` if the private name is gone.
    """
    if not hasattr(ConjectureRunner, "generate_mutations_from"):
        message = (
            "this version of Hypothesis mutates its examples elsewhere; "
            "install the version that constraints.txt pins"
        )
        raise HarnessError(message)
    ConjectureRunner.generate_mutations_from = _no_mutations  # type: ignore[assignment, method-assign] # see the docstring


def _no_mutations(_runner: ConjectureRunner, _example: object) -> None:
    """Stand where Hypothesis would mutate an example."""
