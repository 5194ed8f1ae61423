"""What is over is freed at once: nothing of it waits for the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Iterator

import pytest

from crash_tests.targets.watched_providers import WatchedProviders
from oracles.runtime.shadow_turns import ShadowTurns
from tests.unit.loop.loops import new_loop


class Failed(Exception):
    """What a program raises."""


@pytest.fixture(autouse=True)
def nothing_is_collected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


async def fail() -> None:
    await asyncio.sleep(1)
    raise Failed


async def generate() -> AsyncIterator[int]:
    yield 1
    yield 2


async def leave_a_generator() -> None:
    await anext(generate())


def test_a_loop_is_freed_after_the_end_of_its_lifetime() -> None:
    loop = new_loop()
    loop.run_until_complete(leave_a_generator())
    loop.abandon()
    kept = weakref.ref(loop)
    del loop
    assert kept() is None


def test_a_failure_is_freed_by_who_has_heard_of_it() -> None:
    loop = new_loop()
    with pytest.raises(Failed) as caught:
        loop.run_until_complete(fail())
    kept = weakref.ref(caught.value)
    loop.close()
    del loop, caught
    assert kept() is None


def test_watched_providers_are_freed_with_their_target() -> None:
    watched = WatchedProviders(ShadowTurns())
    providers, kept = watched.by_name, weakref.ref(watched)
    del watched
    assert kept() is not None
    del providers
    assert kept() is None
