"""Each thing that recording lacks is named, with how to get it."""

from __future__ import annotations

import errno
import os
import sys

import pytest

from powercut.calibrate import requirements
from powercut.calibrate.file_system import FILE_SYSTEMS
from powercut.calibrate.requirements import missing_requirements
from powercut.fuse.device import FUSE, LOOP_CONTROL, Device

EXT4, XFS = FILE_SYSTEMS["ext4"], FILE_SYSTEMS["xfs"]


@pytest.fixture(autouse=True)
def complete_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that lacks nothing, whatever this one lacks."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(requirements, "_DEVICES", [Device(os.devnull, (1, 3), "null")])
    monkeypatch.setattr(requirements, "mount_error", lambda _: None)
    monkeypatch.setattr(requirements, "command_path", lambda name: f"/sbin/{name}")


def test_complete_machine_lacks_nothing() -> None:
    assert missing_requirements([EXT4, XFS]) == []


def test_another_system_can_judge_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert missing_requirements([EXT4]) == ["Linux is needed; --judge works everywhere"]


def test_other_user_is_sent_to_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert missing_requirements([EXT4]) == [
        "root is needed to mount file systems: run it with sudo"
    ]


def test_device_that_is_not_there_is_named_with_its_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requirements, "_DEVICES", [FUSE._replace(path="/dev/no-such")])
    (sentence,) = missing_requirements([EXT4])
    assert sentence == (
        "/dev/no-such cannot be opened (No such file or directory): modprobe fuse; "
        "in a container, start it with --privileged"
    )


def test_another_file_in_the_place_of_a_device_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "_DEVICES", [LOOP_CONTROL._replace(path=os.devnull)])
    (sentence,) = missing_requirements([EXT4])
    assert sentence == (
        "/dev/null cannot be opened (another file is in its place): modprobe loop; "
        "in a container, start it with --privileged"
    )


def test_command_that_is_not_there_is_named_once_with_its_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requirements, "command_path", lambda _: None)
    assert missing_requirements([EXT4, FILE_SYSTEMS["ext4j"], XFS]) == [
        "mkfs.ext4 is not installed: install the package e2fsprogs",
        "mkfs.xfs is not installed: install the package xfsprogs",
    ]


@pytest.mark.parametrize(
    ("code", "sentences"),
    [
        (errno.ENOSYS, ["the kernel has no fsopen(2): Linux 5.8 or later is needed"]),
        (
            errno.EPERM,
            ["this process may not mount: in a container, start it with --privileged"],
        ),
        (
            errno.ENODEV,
            [
                "the kernel has no fuse (No such device): modprobe fuse",
                "the kernel has no xfs (No such device): modprobe xfs",
            ],
        ),
    ],
    ids=["old-kernel", "container", "no-file-system"],
)
def test_kernel_that_cannot_mount_says_why(
    monkeypatch: pytest.MonkeyPatch, code: int, sentences: list[str]
) -> None:
    error = OSError(code, os.strerror(code))
    monkeypatch.setattr(requirements, "mount_error", lambda _: error)
    assert missing_requirements([XFS]) == sentences
