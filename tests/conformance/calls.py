"""Helpers of the conformance tests: files to prepare, errors to expect."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.arms import Arm

CREATE = os.O_RDWR | os.O_CREAT


def fails(number: int, call: Callable[..., Any], *arguments: Any, **named: Any) -> OSError:
    """Assert that a call fails with this errno, and return the error."""
    with pytest.raises(OSError, match=rf"\[Errno {number}\]") as caught:
        call(*arguments, **named)
    return caught.value


def put(arm: Arm, name: str, content: bytes = b"") -> str:
    """Write a file, and return its path."""
    path = arm.path(name)
    with arm.open(path, "wb") as file:
        file.write(content)
    return path


def content(arm: Arm, path: str) -> bytes:
    """Return the content of a file."""
    with arm.open(path, "rb") as file:
        return bytes(file.read())
