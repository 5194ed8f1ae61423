"""The targets under Hypothesis: a class with rules for each, from which the leaves derive."""

from __future__ import annotations

from crash_tests.targets.atomic_file import atomic_file
from crash_tests.targets.durable import durable
from crash_tests.targets.event_log import framed, pending
from crash_tests.targets.lifecycle import lifecycle
from crash_tests.targets.recording import recording
from crash_tests.targets.runtime import runtime, runtime_pending
from crash_tests.targets.session_store import session_store
from powercut.fuzz.drivers.hypothesis_driver import Campaign, TargetRules
from powercut.fuzz.target import AnyTarget
from sim.disk.crash.persistence import model_named
from tests.registry import REGISTRY


class AtomicFileRules(TargetRules):
    campaign = Campaign()

    @staticmethod
    def make_target() -> AnyTarget:
        return atomic_file()


class FramedLogRules(TargetRules):
    campaign = Campaign()

    @staticmethod
    def make_target() -> AnyTarget:
        return framed()


class PendingLogRules(TargetRules):
    campaign = Campaign()

    @staticmethod
    def make_target() -> AnyTarget:
        return pending()


class SessionStoreRules(TargetRules):
    campaign = Campaign()

    @staticmethod
    def make_target() -> AnyTarget:
        return session_store()


class LifecycleRules(TargetRules):
    campaign = Campaign()

    @staticmethod
    def make_target() -> AnyTarget:
        return lifecycle()


class RecordingRules(TargetRules):
    campaign = Campaign()

    @staticmethod
    def make_target() -> AnyTarget:
        return recording()


class DurableRules(TargetRules):
    campaign = Campaign()

    @staticmethod
    def make_target() -> AnyTarget:
        return durable()


class RuntimeRules(TargetRules):
    campaign = Campaign()

    @staticmethod
    def make_target() -> AnyTarget:
        return runtime()


class RuntimeOnExt4Rules(RuntimeRules):
    campaign = Campaign()
    model = model_named("ext4-ordered")


class RuntimeOnXfsRules(RuntimeRules):
    campaign = Campaign()
    model = model_named("xfs")


class PendingRuntimeRules(TargetRules):
    campaign = Campaign()

    @staticmethod
    def make_target() -> AnyTarget:
        return runtime_pending()


class PendingRuntimeOnBtrfsRules(PendingRuntimeRules):
    campaign = Campaign()
    model = model_named("btrfs")


def leaf_of(tag: str, model: str) -> type[TargetRules]:
    """Return a leaf for any target under any model.

    It has no source, so Hypothesis keeps its examples under its name.
    """
    namespace = {
        "__doc__": "A leaf that is made at run time.",
        "campaign": Campaign(),
        "make_target": staticmethod(REGISTRY.target(tag).make_target),
        "model": model_named(model),
    }
    return type(f"{tag} on {model}", (TargetRules,), namespace)
