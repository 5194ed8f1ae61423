"""The conformance machine: the same random calls to both arms, with equal outcomes.

Results, errnos and the file names in errors are compared at every step. The whole tree and
every open descriptor are compared at the end, byte for byte.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from hypothesis.stateful import initialize

from tests.conformance.arms import Arm, acting_as, as_root, real, simulated, unprivileged
from tests.conformance.outcome import outcome, tree
from tests.conformance.random_calls import RandomCalls


class ConformanceRules(RandomCalls):
    """Calls of the user who runs the tests, which is root in many containers."""

    @property
    def uid(self) -> int:
        return os.geteuid()

    @initialize()
    def start(self) -> None:
        self.stack = ExitStack()
        self.begin(simulated(self.uid), self.stack.enter_context(real()))
        self.populate()

    def both(self, call: Callable[[Arm, int], Any]) -> Any:
        simulated_arm, real_arm = self.arms
        actual = outcome(simulated_arm, lambda: call(simulated_arm, 0))
        with acting_as(self.uid):
            expected = outcome(real_arm, lambda: call(real_arm, 1))
        assert actual == expected, f"simulated={actual!r} linux={expected!r}"
        return actual

    def teardown(self) -> None:
        if not hasattr(self, "stack"):
            return
        try:
            self.compare_the_end()
        finally:
            for found in [*self.descriptors, self.tops]:
                os.close(found[1])
            self.stack.close()

    def compare_the_end(self) -> None:
        """Compare the open files and the tree below the top, byte for byte."""
        for choice in range(len(self.descriptors)):
            self.on("fstat", choice)
            if not self.is_directory(choice):
                self.on("lseek", choice, 0, os.SEEK_CUR)
                self.on("pread", choice, 1 << 14, 0)
        simulated_arm, real_arm = self.arms
        assert tree(as_root(simulated_arm)) == tree(real_arm)


class UnprivilegedRules(ConformanceRules):
    """Calls of a user without privileges."""

    @property
    def uid(self) -> int:
        return unprivileged()
