"""Mutants: a correct system with one known bug planted, which a campaign must find.

A mutant measures the harness. If the fuzzer runs the system with the bug and nothing fails,
or fails for an unrelated reason, the harness is blind to bugs of that kind::

    no_fsync = Mutant(
        "the file is not synced before the rename",
        "kv",
        (TornRecord, SilentEmpty),
        (SourcePatch("store.files", "os.fsync(descriptor)", "pass"),),
    )

``[tool.powercut.mutants]`` registers it, and ``powercut mutants`` searches all of them.

A bug that no campaign can reach, such as a lock that is not taken, names the tests that must
fail with it instead of a target and properties.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from powercut.fuzz.source_patch import SourcePatch, patched
from powercut.fuzz.target import MakeTarget, TargetEntry, check_target
from powercut.fuzz.target_mistake import TargetMistake
from powercut.reference import load
from sim.errors import HarnessError


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bug, the target that must find it, and the properties by which it may be found.

    ``title`` describes the bug in a few words. ``target`` is the tag or the ``module:object``
    of a target, to whose program ``patches`` are applied; or a callable that returns a target
    with the bug already in it, such as a target constructed with a faulty part.
    ``properties`` are the violations that the bug causes, or the exceptions that leave the
    system because of it. Any other failure does not count. ``tests`` are ids of pytest, from
    the folder of the project; each of these tests must fail with the bug. A mutant has either
    a target or tests.
    """

    title: str
    target: str | MakeTarget = ""
    properties: Sequence[type[Exception]] = ()
    patches: Sequence[SourcePatch] = ()
    tests: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class MutantEntry:
    """One mutant of the registry, as plain values that go to worker processes.

    ``reference`` is the ``module:object`` of the ``Mutant``. ``target`` is the registered
    target that its source patches apply to, or None if the mutant makes its own or has tests.
    """

    tag: str
    reference: str
    target: TargetEntry | None = None

    @property
    def mutant(self) -> Mutant:
        """The mutant; ``HarnessError`` in one sentence if it cannot be imported or is malformed."""
        mutant = load(self.reference)
        if not isinstance(mutant, Mutant):
            raise HarnessError(f"{self.reference} is {mutant!r} and must be a powercut.Mutant")
        for member in ("properties", "patches", "tests"):
            value: object = getattr(mutant, member)
            if isinstance(value, str) or not isinstance(value, Collection):
                raise HarnessError(
                    f"{self.reference} has {member}={value!r:.100}, and must have a list of them"
                )
        if bool(mutant.tests) == bool(mutant.target):
            raise HarnessError(f"{self.reference} must have either a target or tests")
        target: object = mutant.target
        if not (isinstance(target, str) or callable(target)):
            raise HarnessError(
                f"{self.reference} has the target {target!r}, and must have a tag, module:object "
                "or a callable"
            )
        if mutant.target and not mutant.properties:
            raise HarnessError(f"{self.reference} names no property by which it may be found")
        properties: Sequence[object] = mutant.properties
        for each in properties:
            if not (isinstance(each, type) and issubclass(each, Exception)):
                raise HarnessError(
                    f"{self.reference} has the property {each!r}, and must have classes of "
                    "exceptions, such as powercut.LostAck"
                )
        if mutant.tests and not mutant.patches:
            raise HarnessError(f"{self.reference} has tests and no source patch")
        if mutant.patches and callable(mutant.target):
            raise HarnessError(
                f"{self.reference} has source patches, and a target that was imported without "
                "them; name the target by its tag or as module:object"
            )
        return mutant

    @contextmanager
    def planted(self) -> Iterator[MakeTarget]:
        """Plant the bug in this process until the context ends; yield a factory of its targets.

        Raises ``TargetMistake`` in one sentence for a source patch that does not apply, and for
        a target that cannot be made.
        """
        if self.target is None:
            target = self.mutant.target
            assert callable(target)
            _plant(partial(check_target, self.reference, target))
            yield target
            return
        with self.patched(self.target.reference):
            _plant(partial(TargetEntry.of, self.target.tag, self.target.reference))
            yield self.target.load()

    @contextmanager
    def patched(self, reference: str) -> Iterator[None]:
        """Plant the bug until the context ends, in an import of ``reference`` inside it.

        The tests of the mutant are imported anew as well. Raises as ``planted``.
        """
        module, _, _ = reference.partition(":")
        folders = [test.partition("/")[0] for test in self.mutant.tests]
        packages = {module.partition(".")[0], *folders}
        with ExitStack() as stack:
            planting = patched(self.mutant.patches, packages)
            _plant(partial(stack.enter_context, planting))
            yield


def _plant(call: Callable[[], object]) -> None:
    """Call a part of the planting; raise its ``HarnessError`` as ``TargetMistake``."""
    try:
        call()
    except HarnessError as mistake:
        raise TargetMistake(str(mistake)) from mistake
