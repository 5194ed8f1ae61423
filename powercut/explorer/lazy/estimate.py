"""Estimates of the size of an observation tree, from a few random paths through it.

Knuth (Mathematics of Computation 29, 1975): where a path takes one of several answers at random,
it represents as many paths. The executions are kept in the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from powercut.explorer.lazy.budget import GaveUp
from powercut.explorer.lazy.crash_sites import CrashSite
from powercut.explorer.lazy.tree import Ending
from powercut.explorer.lazy.unit_call import Asked
from powercut.explorer.lazy.walk import Walk
from sim.choices import Choices, SeededChoices
from sim.disk.crash.undecided.question import Answer

_PATHS: Final = 64


def check_estimate(walk: Walk, sites: Sequence[CrashSite], most: int) -> None:
    """Raise ``GaveUp`` if these crashes seem to have more than ``most`` leaves.

    A leaf that several crashes lead to counts for each of them. Crashes of the recovery do not
    count.
    """
    cuts = [site for site in sites if site.layer is not None]
    every = -(-len(cuts) // _PATHS) or 1
    choices = SeededChoices(0)
    left = most // every
    for site in cuts[every // 2 :: every]:
        left -= _paths_like_one(walk, site, choices, left)
        if left < 0:
            raise GaveUp("too many leaves")


def _paths_like_one(walk: Walk, site: CrashSite, choices: Choices, most: int) -> int:
    """Take a random path; return the number of paths that it represents.

    Raises ``GaveUp`` if these are more than ``most``.
    """
    node, boxes, paths = walk.root(site), site.boxes, 1
    if not boxes:
        return 0

    def choose(question: Asked) -> Answer:
        nonlocal boxes, paths
        parts = walk.divided(question, boxes, most // paths)
        answer = choices.pick("answer", list(parts))
        paths *= len(parts)
        boxes = list(parts[answer])
        return answer

    walk.tick()
    while node.end is not None:
        for number, step in enumerate(node.steps):
            answer = choose(step.question)
            if answer != step.answer:
                node.split(number)
                break
        else:
            if isinstance(node.end, Ending):
                return paths
            answer = choose(node.end.question)
        node = node.child(answer)
    walk.grow(node, walk.trace(node.path(), choose, site.entries))
    return paths
