"""Objects of an ended run are freed at once, without the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.unit.loop.loops import new_loop


class Failed(Exception):
    """The failure of the program."""


@pytest.fixture(autouse=True)
def no_garbage_collection() -> Iterator[None]:
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


def test_a_failure_is_freed_with_the_last_reference_to_it() -> None:
    loop = new_loop()
    with pytest.raises(Failed) as caught:
        loop.run_until_complete(fail())
    kept = weakref.ref(caught.value)
    loop.close()
    del loop, caught
    assert kept() is None
