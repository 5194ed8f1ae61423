"""Hypothesis's settings for the profiles, and one fixed pool of constants.

``install_profiles`` registers the profiles with Hypothesis; ``select_profile`` makes one of
them current. Settings are read when a test or a state machine is *defined*, so both run
before the first test module is imported (``tests/conftest.py``).

The options ``--hypothesis-profile`` and ``--hypothesis-seed`` of Hypothesis's own pytest
plugin, which is configured later, override the profile.
"""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from sortedcontainers import SortedSet

from powercut.fuzz.hypothesis_names import CONSTANTS, MUTATIONS, has_names_for
from powercut.fuzz.profiles import PROFILE_VARIABLE, PROFILES, Profile
from sim.errors import HarnessError

# Sizes at which a file system changes its behaviour: sector, block, page and WAL-header edges,
# the buffer of a Python file object, the longest name. Hypothesis's own pool starts at 2**16.
_EDGES = (128, 255, 512, 1024, 2048, 4096, 8192, 16384, 32768)


def install_profiles(root: Path) -> None:
    """Register every profile, with a database under ``root``, and fix Hypothesis's draws.

    With a Hypothesis that lacks one of the private names, the draws that need it stay as
    they are; ``hypothesis_names.missing_names`` reports it.
    """
    freeze_constants()
    draw_every_example_afresh()
    database = DirectoryBasedExampleDatabase(root.absolute() / ".hypothesis" / "examples")
    # While CI is set, Hypothesis makes its own derandomized profile without a database the
    # current one, which is the parent of all settings that name no other: so one is named.
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
    """Let Hypothesis mix in the sizes of a disk, and no literals of imported modules.

    Hypothesis draws one value in twenty from the literals of all local modules that are
    imported, so that ``pytest one_file.py`` and ``pytest .`` draw different inputs even when
    derandomized. That pool can be reached by private names only.
    """
    if not has_names_for(CONSTANTS):
        return
    from hypothesis.internal.conjecture import providers
    from hypothesis.internal.constants_ast import Constants

    pool = Constants(
        integers=SortedSet(near for edge in _EDGES for near in (edge - 1, edge, edge + 1)),
        floats=SortedSet(),
        bytes=SortedSet(),
        strings=SortedSet(),
    )
    providers._get_local_constants = lambda: pool
    # Earlier draws may have cached the other pool.
    providers.CONSTANTS_CACHE.cache.clear()


def draw_every_example_afresh() -> None:
    """Keep Hypothesis from spending two thirds of a budget on near copies of earlier runs.

    After each example it tries up to five more in which one stretch is replaced by a copy of
    another with the same label, and all steps of a run have the same. Of 50 runs, 17 were
    new: planted bugs were missed 7 times in 40 searches, without the copies never.
    """
    if not has_names_for(MUTATIONS):
        return
    from hypothesis.internal.conjecture.engine import ConjectureRunner

    ConjectureRunner.generate_mutations_from = _no_mutations  # type: ignore[assignment, method-assign] # see the docstring


def _no_mutations(_runner: object, _example: object) -> None:
    """Replace ``ConjectureRunner.generate_mutations_from``."""
