"""The machines under Hypothesis: a class with rules for each, which the leaves stand on."""

from __future__ import annotations

from powercut.drivers.hypothesis_driver import Campaign, MachineRules
from powercut.machines.atomic_file import atomic_file
from powercut.machines.event_log import framed, pending
from powercut.machines.lifecycle import lifecycle
from powercut.machines.runtime import runtime, runtime_pending
from powercut.machines.session_store import session_store
from powercut.machines.targets import target_named
from powercut.subject import Subject
from sim.disk.persistence import model_named


class AtomicFileRules(MachineRules):
    campaign = Campaign()

    @staticmethod
    def make_subject() -> Subject:
        return atomic_file()


class FramedLogRules(MachineRules):
    campaign = Campaign()

    @staticmethod
    def make_subject() -> Subject:
        return framed()


class PendingLogRules(MachineRules):
    campaign = Campaign()

    @staticmethod
    def make_subject() -> Subject:
        return pending()


class SessionStoreRules(MachineRules):
    campaign = Campaign()

    @staticmethod
    def make_subject() -> Subject:
        return session_store()


class LifecycleRules(MachineRules):
    campaign = Campaign()

    @staticmethod
    def make_subject() -> Subject:
        return lifecycle()


class RuntimeRules(MachineRules):
    campaign = Campaign()

    @staticmethod
    def make_subject() -> Subject:
        return runtime()


class RuntimeOnExt4Rules(RuntimeRules):
    campaign = Campaign()
    model = model_named("ext4-ordered")


class RuntimeOnXfsRules(RuntimeRules):
    campaign = Campaign()
    model = model_named("xfs")


class PendingRuntimeRules(MachineRules):
    campaign = Campaign()

    @staticmethod
    def make_subject() -> Subject:
        return runtime_pending()


class PendingRuntimeOnBtrfsRules(PendingRuntimeRules):
    campaign = Campaign()
    model = model_named("btrfs")


def leaf_of(tag: str, model: str) -> type[MachineRules]:
    """Return a leaf for any target under any model.

    It has no source, so Hypothesis keeps its examples under its name.
    """
    namespace = {
        "__doc__": "A leaf that nobody wrote down.",
        "campaign": Campaign(),
        "make_subject": staticmethod(target_named(tag)),
        "model": model_named(model),
    }
    return type(f"{tag} on {model}", (MachineRules,), namespace)
