"""The laws of lazy exploration, against every crash image: of one crash, and of several.

Of one crash: each image leads to a leaf with the outcome that the check has on it, also that of a
kill after a failed barrier. Each leaf of a power cut has an image. The plainest survivor set of
each box is legal, and leads to that very leaf.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from faults.crash_counter import page_prefixes
from faults.crash_point import CrashKind, Phase
from oracles.history import History, Known
from oracles.violation import Violation
from powercut.explorer.lazy.budget import Budget
from powercut.explorer.lazy.crash_sites import CrashSite, crash_sites
from powercut.explorer.lazy.crashes import Crashes
from powercut.explorer.lazy.phases import OnePhase
from powercut.explorer.lazy.tree import Ending
from powercut.explorer.lazy.units import Trees
from powercut.explorer.lazy.walk import Leaf, Walk
from powercut.explorer.page_cache import PageCache
from sim.choices import SeededChoices
from sim.disk.cache.operation import Create, Write
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.survivor_set import SurvivorSet, check_legal
from sim.disk.crash.undecided.box import Box
from sim.disk.crash.undecided.progress import UNLIMITED
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk
from tests.litmus.observer import (
    ANY,
    Observer,
    Steps,
    observe,
    random_observer,
    random_program,
    run_program,
)
from tests.litmus.programs import SETUP, Program

MOST_UNSYNCED = 7
MOST_NESTED_IMAGES = 2_000


class Pair(NamedTuple):
    """A random program and a random check."""

    program: Program
    observer: Observer

    def journal(self, model: PersistenceModel) -> Journal:
        disk = Disk(SETUP, model)
        run_program(self.program, Process(disk))
        return disk.journal

    def walk(self, model: PersistenceModel, nested: int = 0, tears: int = UNLIMITED) -> Walk:
        def check(disk: Disk, _known: Known) -> Violation:
            return Violation(observe(self.observer, disk))

        budget = Budget(100_000, 1_000_000)
        crashes = Crashes(model, nested, tears, budget)
        return Walk(OnePhase(check, History(lambda: 0)), Trees({}, {}), model, crashes, budget)


def _observed_at(leaf: Leaf) -> str:
    """Return everything that the check read."""
    assert leaf.ending.violation is not None
    return leaf.ending.violation.statement


def pair(seed: int, most_calls: int, *, writes: bool, steps: Steps = ANY) -> Pair:
    """Return a pair, which is the same for the same seed."""
    choices = SeededChoices(seed)
    program = random_program(choices, most_calls, steps)
    return Pair(program, random_observer(choices, writes=writes, steps=steps))


def _sites(pair: Pair, model: PersistenceModel, tears: int) -> Iterator[CrashSite]:
    return crash_sites(pair.journal(model), History(lambda: 0), model, tears, nested=True)


def one_crash(pair: Pair, model: PersistenceModel, tears: int = UNLIMITED) -> int:
    """Check the law of one crash at every power cut; return the number of images."""
    journal, walk = pair.journal(model), pair.walk(model, 0, tears)
    sites = {
        site.point.operation if site.point.phase is Phase.AFTER else 0: site
        for site in _sites(pair, model, tears)
        if site.layer is not None
    }
    unsynced, cache, images = Unsynced(model, SETUP.platter), PageCache(SETUP.cached), 0
    reached: set[Ending] = set()
    built: set[int] = set()
    skipped = False
    for number in range(len(journal) + 1):
        if number:
            unsynced.advance(journal[number - 1], number)
            cache.advance(journal[number - 1], unsynced)
        if unsynced.lost:
            carried = unsynced.carried_over(number)
            killed = Image(unsynced.platter, carried, cache.inodes, journal.next_inode)
            _leaf_of(killed, pair, walk, sites[0], model)
        leaves = []
        if number in sites:
            leaves = list(walk.leaves(iter([sites[number]])))
            for leaf in leaves:
                for survivors in _completions_reach(leaf, sites[number], unsynced, pair.observer):
                    assert len(survivors.torn) <= tears, (pair, model.name, survivors)
        reached |= {leaf.ending for leaf in leaves}
        skipped = skipped or len(unsynced.micros) > MOST_UNSYNCED
        if len(unsynced.micros) <= MOST_UNSYNCED:
            found, here = set(), {leaf.ending for leaf in leaves}
            for key, image in _images(unsynced, journal.next_inode, tears):
                images += 1
                ending = _leaf_of(image, pair, walk, sites[0], model)
                # An image that an earlier power cut leaves is not visited again.
                is_reached = ending in (reached if key in built or skipped else here)
                assert is_reached, (pair, model.name, "an image leads to no leaf")
                found.add(ending)
                built.add(key)
            extra = here - found
            assert not extra, (pair, model.name, "a leaf has no image")
    return images


def _images(unsynced: Unsynced, next_inode: int, tears: int) -> Iterator[tuple[int, Image]]:
    """Yield every crash image, with a key that is equal for equal ones."""
    for state in StateSpace(unsynced).all():
        if len(state.survivors.torn) <= tears:
            yield state.key, Image.of_platter(state.inodes, next_inode)


def _leaf_of(
    image: Image, pair: Pair, walk: Walk, site: CrashSite, model: PersistenceModel
) -> Ending:
    (leaf,) = walk.leaves(iter([site._replace(boxes=[Box.of_image(image)])]))
    outcome = observe(pair.observer, Disk(image, model))
    assert _observed_at(leaf) == outcome, (pair, model.name, "another outcome", outcome)
    return leaf.ending


def _completions_reach(
    leaf: Leaf, site: CrashSite, unsynced: Unsynced, observer: Observer
) -> Iterator[SurvivorSet]:
    """Yield the plainest survivor set of each box of a leaf, in each way of its factors."""
    assert site.layer is not None
    for box in (way for each in leaf.boxes for way in _ways(each)):
        survivors = box.progress[0].completed(site.layer).survivors(site.layer)
        check_legal(unsynced.ordering, survivors)
        outcome = observe(observer, Disk(unsynced.crash(survivors, box.next_inode), unsynced.model))
        assert _observed_at(leaf) == outcome, (observer, unsynced.model.name, survivors)
        yield survivors


def _ways(box: Box) -> Iterator[Box]:
    """Yield the box in the plainest way, and in each other way of one factor."""
    yield box.in_plainest_way()
    for factor in box.factors:
        for way in range(1, len(factor.ways)):
            yield box.in_way(factor, way).in_plainest_way()


# -- several crashes -------------------------------------------------------------------------


class _TooMany(Exception):
    """A pair has too many images for the brute force."""


_Crash = tuple[int, Phase, CrashKind]
_Observed = dict[tuple[_Crash, ...], set[str]]
"""The observations after each chain of crashes."""


def nested_crashes(pair: Pair, model: PersistenceModel, nested: int) -> bool:
    """Check that both engines see the same after so many crashes of the check.

    Return False, without a check, if the brute force has too many images.
    """
    expected: _Observed = {}
    try:
        _BruteForce(pair.observer, model, expected).crash(pair.journal(model), (), nested)
    except _TooMany:
        return False
    walk = pair.walk(model, nested)
    found: _Observed = {}
    for leaf in walk.leaves(_sites(pair, model, UNLIMITED)):
        crashes = tuple((each.operation, each.phase, each.kind) for each in leaf.crashes)
        found.setdefault(crashes, set()).add(_observed_at(leaf))
    for crashes, observed in found.items():
        assert observed <= expected[crashes], (pair, model.name, crashes)
    for crashes, observed in expected.items():
        kinds = [kind for _, _, kind in crashes[:-1]]
        is_whole = Phase.DURING not in {phase for _, phase, _ in crashes}
        if crashes[:1] in found and CrashKind.POWER_CUT not in kinds and is_whole:
            assert observed <= _at_or_before(found, _without_idle(crashes)), (
                pair,
                model.name,
                crashes,
            )
    for depth in range(1, nested + 2):
        # An image that fewer crashes leave as well, or earlier ones, is not visited again.
        assert _up_to(found, depth) == _up_to(expected, depth), (pair, model.name, depth)
    return True


def _without_idle(crashes: tuple[_Crash, ...]) -> tuple[_Crash, ...]:
    """Return the crashes without kills of a recovery before it has done anything."""
    idle = Phase.BEFORE, CrashKind.KILL
    between = tuple(each for each in crashes[1:-1] if each[1:] != idle)
    return crashes[:1] + between + crashes[1:][-1:]


def _at_or_before(observed: _Observed, crashes: tuple[_Crash, ...]) -> set[str]:
    """Return the observations after kills and a last crash, or after that of the kill before it.

    An image that an earlier power cut leaves is not visited again, so earlier ones count too.
    """
    *before, (number, phase, kind) = crashes
    if kind is CrashKind.KILL and crashes in observed:
        return observed[crashes]
    places = {(number, phase)}
    if phase is Phase.AFTER:
        places |= {(each, Phase.AFTER) for each in range(1, number)} | {(1, Phase.BEFORE)}
    found = set().union(*(observed.get((*before, (*place, kind)), set()) for place in places))
    if before and (kind is CrashKind.POWER_CUT or phase is Phase.BEFORE):
        last = before[-1][:2]
        found |= _at_or_before(observed, (*before[:-1], (*last, kind)))
    return found


def _up_to(observed: _Observed, depth: int) -> set[str]:
    return set().union(*(each for crashes, each in observed.items() if len(crashes) <= depth))


class _BruteForce:
    """Observes every image of every chain of crashes."""

    def __init__(self, observer: Observer, model: PersistenceModel, observed: _Observed) -> None:
        self._observer = observer
        self._model = model
        self._observed = observed
        self._left = MOST_NESTED_IMAGES

    def crash(self, journal: Journal, before: tuple[_Crash, ...], nested: int) -> None:
        """Observe every crash of a lifetime, and those of its recovery ``nested`` times."""
        model, image = self._model, journal.image
        unsynced = Unsynced(model, image.platter, image.unsynced)
        cache = PageCache(image.cached)
        next_inode = image.next_inode if before else journal.next_inode
        for number in range(len(journal) + 1):
            if number:
                operation = journal[number - 1]
                during = (*before, (number, Phase.DURING, CrashKind.KILL))
                for killed in self._killed_during(journal, cache, number, next_inode):
                    self._boot(killed, during, nested)
                unsynced.advance(operation, number)
                cache.advance(operation, unsynced)
                # Stale bytes contain the number of their inode.
                next_inode += bool(before) and isinstance(operation, Create)
            if len(unsynced.micros) > MOST_UNSYNCED:
                raise _TooMany
            here = (max(number, 1), Phase.AFTER if number else Phase.BEFORE)
            carried = unsynced.carried_over(number)
            killed = Image(unsynced.platter, carried, cache.inodes, next_inode)
            self._boot(killed, (*before, (*here, CrashKind.KILL)), nested)
            for _, cut in _images(unsynced, next_inode, UNLIMITED):
                self._boot(cut, (*before, (*here, CrashKind.POWER_CUT)), nested)

    def _killed_during(
        self, journal: Journal, cache: PageCache, number: int, next_inode: int
    ) -> Iterator[Image]:
        operation = journal[number - 1]
        if not isinstance(operation, Write):
            return
        for kept in page_prefixes(operation, self._model):
            part = operation._replace(data=operation.data[:kept])
            partial = Unsynced(self._model, journal.image.platter, journal.image.unsynced)
            for each, done in enumerate((*journal[: number - 1], part), 1):
                partial.advance(done, each)
            copy = cache.copy()
            copy.advance(part, partial)
            yield Image(partial.platter, partial.carried_over(number), copy.inodes, next_inode)

    def _boot(self, image: Image, crashes: tuple[_Crash, ...], nested: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise _TooMany
        disk = Disk(image, self._model)
        self._observed.setdefault(crashes, set()).add(observe(self._observer, disk))
        if nested and disk.journal:
            self.crash(disk.journal, crashes, nested - 1)
