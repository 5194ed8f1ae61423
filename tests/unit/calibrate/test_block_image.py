"""Images of block devices, and logs of what was written to them."""

from __future__ import annotations

import pytest

from powercut.calibrate.block_image import BlockImage
from powercut.calibrate.write_log import Survivors, WriteLog


def test_write_changes_its_bytes_only_and_leaves_the_base_alone() -> None:
    base = {0: b"a" * 4096, 2: b"c" * 4096}
    image = BlockImage(base)
    image.write(4000, b"X" * 200)
    assert image.read(3999, 98) == b"a" + b"X" * 96 + b"X"
    assert image.read(4196, 4000) == b"X" * 4 + bytes(3992) + b"c" * 4
    assert base == {0: b"a" * 4096, 2: b"c" * 4096}


def test_blocks_of_zeros_are_holes() -> None:
    image = BlockImage({0: b"a" * 4096, 1: b"b" * 4096})
    image.write(0, bytes(4096))
    image.write(8192, bytes(4096))
    assert image.blocks() == {1: b"b" * 4096}


@pytest.mark.parametrize(
    ("survivors", "content"),
    [
        (Survivors(-1), b"aaa"),
        (Survivors(1), b"Baa"),
        (Survivors(1, (2,)), b"BCa"),
        (Survivors(1, (3,)), b"BaD"),
        (Survivors(1, (2, 3), (3, 0)), b"BCa"),
        (Survivors(-1, (3,)), b"aaD"),
    ],
    ids=["nothing", "flushed", "first", "second", "torn", "unflushed-alone"],
)
def test_crash_image_has_the_writes_that_survive(survivors: Survivors, content: bytes) -> None:
    log = WriteLog(dict.fromkeys(range(3), b"a" * 4096))
    log.write(0, b"B" * 4096)
    log.flush()
    log.write(4096, b"C" * 4096)
    log.write(8192, b"D" * 4096)
    image = log.image(survivors)
    assert b"".join(image.read(block * 4096, 1) for block in range(3)) == content


def test_torn_write_keeps_its_first_bytes() -> None:
    log = WriteLog({})
    log.write(512, b"B" * 2048)
    image = log.image(Survivors(-1, (0,), (0, 1024)))
    assert image.read(0, 4096) == bytes(512) + b"B" * 1024 + bytes(2560)
