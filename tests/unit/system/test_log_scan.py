"""Classification of lines, damage and torn ends: exhaustive tests."""

from __future__ import annotations

from itertools import product

import pytest

from system.storage.line import SHORTEST_BYTES, Line, encode_line
from system.storage.log_scan import BadSpan, Scan, scan

OWNER = "ab" * 16


def line(seq: int, text: str = "", owner: str = OWNER, durable: int | None = None) -> bytes:
    return encode_line(Line(seq, "2026", owner, "e", {"text": text}, durable), "p")


ONE, TWO, THREE = line(1), line(2), line(3)
SIZE = len(ONE)
STALE = b"stale 7.1\nstale 7.1\nstale 7.1\n" * 5


def spans(*seqs: int) -> tuple[tuple[int, int], ...]:
    """The spans of whole lines of ``SIZE`` at these positions, from 1."""
    return tuple(((seq - 1) * SIZE, seq * SIZE - 1) for seq in seqs)


@pytest.mark.parametrize("length", range(1, SIZE - 1))
def test_the_beginning_of_a_line_is_torn(length: int) -> None:
    found = scan(ONE + TWO[:length], OWNER, "p")

    assert (found.good, found.torn_bytes, found.bad) == (spans(1), length, ())


@pytest.mark.parametrize("missing", [1, 0])
def test_bytes_are_torn_if_the_shortest_line_is_longer(missing: int) -> None:
    length = SHORTEST_BYTES - missing
    found = scan(ONE + b"\xff" * length, OWNER, "p")

    assert found.torn_bytes == (length if missing else 0)
    assert [(bad.start, bad.end, bad.tail) for bad in found.bad] == (
        [] if missing else [(SIZE, SIZE + length, True)]
    )


def test_data_of_a_line_that_resembles_a_line_is_no_line() -> None:
    nested = encode_line(Line(2, "2026", OWNER, "e", {"data": {"data": {}}}), "p")
    found = scan(ONE[:-1] + b"J" + nested + line(3), OWNER, "p")

    assert [each.seq for each in found.lines] == [1, 2, 3]
    assert found.bad == (BadSpan(SIZE - 1, SIZE, "a line end is damaged", False),)


def test_the_last_two_lines_are_found_although_both_line_ends_are_damaged() -> None:
    found = scan(ONE + TWO[:-1] + b"J" + THREE[:-1] + b"J", OWNER, "p")

    assert [each.seq for each in found.lines] == [1, 2, 3]
    assert found.bad[0] == BadSpan(2 * SIZE - 1, 2 * SIZE, "a line end is damaged", False)


def test_an_explained_end_is_torn_and_damage_in_the_middle_stays() -> None:
    content = b"garbage\n" * 9 + TWO + bytes(200)
    found = scan(content, OWNER, "p").with_tail_explained()

    assert [bad.tail for bad in found.bad] == [False]
    assert found.torn_bytes == 200


def test_no_flipped_bit_loses_a_line_without_a_word() -> None:
    content = ONE + TWO + THREE
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        found = scan(bytes(damaged), OWNER, "p")

        assert len(found.good) == 3 or found.bad, f"bit {bit}"
        assert len(found.good) >= 2, f"bit {bit}"


def test_no_zeroed_sector_loses_a_line_without_a_word() -> None:
    content = b"".join(line(seq, "x" * 300) for seq in range(1, 6))
    for start in range(0, len(content), 64):
        damaged = (
            content[:start] + bytes(len(content[start : start + 512])) + content[start + 512 :]
        )
        found = scan(damaged, OWNER, "p")

        assert len(found.good) == 5 or found.bad, f"sector at {start}"


def kept(found: Scan) -> list[int]:
    return [each.seq for each in found.lines]


ZEROS = bytes(SIZE)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], 0),
        ([ONE], 0),
        ([ONE, TWO], 0),
        ([ONE, TWO, THREE], 1),
        ([ONE, TWO, THREE, line(4, durable=2)], 1),
        ([ONE, TWO, THREE, line(4), line(5, durable=3)], 2),
        ([ONE, line(2, durable=0), line(3, durable=0), line(4)], 0),
        ([ONE, TWO, line(3, durable=1), line(4, durable=1), line(5)], 1),
        ([ONE, TWO, line(3, durable=1), line(4, durable=1), line(5), line(6)], 4),
        ([ONE, TWO, THREE, ZEROS, line(5, durable=3)], 2),
        ([ONE, TWO, THREE, line(4), line(5), line(6), ZEROS, line(8, durable=6)], 5),
        # Both gaps are cut; the last line that is kept is unproven whatever the others say.
        ([ONE, ZEROS, line(3, durable=1), ZEROS, line(5, durable=3)], 0),
    ],
)
def test_lines_are_proven_durable_by_two_barriers(lines: list[bytes], expected: int) -> None:
    assert scan(b"".join(lines), OWNER, "p").unproven == expected


def test_every_mixture_of_lost_lines_of_a_group_leaves_a_beginning_of_it() -> None:
    group = [line(seq, durable=1 if seq > 2 else None) for seq in range(2, 7)]
    for lost in range(1 << len(group)):
        survivors = [
            bytes(len(each)) if lost >> place & 1 else each for place, each in enumerate(group)
        ]
        found = scan(ONE + b"".join(survivors), OWNER, "p")

        beginning = next((place for place in range(5) if lost >> place & 1), 5)
        assert kept(found) == list(range(1, beginning + 2)), f"{lost:05b}"
        assert not found.has_damaged_middle
        assert found.missing == ()


def test_a_scan_of_the_kept_lines_keeps_all_of_them() -> None:
    for durables in product(range(2), range(3), range(4), range(5)):
        group = [line(seq, durable=each) for seq, each in zip(range(2, 6), durables, strict=True)]
        for lost in range(1 << 5):
            found = scan(
                b"".join(
                    bytes(len(each)) if lost >> place & 1 else each
                    for place, each in enumerate([ONE, *group])
                ),
                OWNER,
                "p",
            )
            again = scan(b"".join(encode_line(each, "p") for each in found.lines), OWNER, "p")
            assert again.lines == found.lines, (durables, f"{lost:05b}")
            assert (again.bad, again.torn_bytes) == ((), 0)
