"""What is a line, what is damage, and what a crash has torn."""

from __future__ import annotations

import pytest

from system.errors import NewerFormat
from system.storage.codec import seal
from system.storage.line import Line, encode_line
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


def test_good_lines_are_found_without_their_line_ends() -> None:
    found = scan(ONE + TWO + THREE, OWNER, "p")

    assert (found.good, found.last_seq) == (spans(1, 2, 3), 3)
    assert (found.bad, found.torn_bytes, found.missing) == ((), 0, ())


def test_an_empty_log_is_no_loss() -> None:
    found = scan(b"", OWNER, "p")

    assert (found.good, found.bad, found.torn_bytes, found.last_seq) == ((), (), 0, 0)


@pytest.mark.parametrize("length", range(1, SIZE - 1))
def test_the_beginning_of_a_line_is_torn(length: int) -> None:
    found = scan(ONE + TWO[:length], OWNER, "p")

    assert (found.good, found.torn_bytes, found.bad) == (spans(1), length, ())


@pytest.mark.parametrize("end", [b"", b"\0", b"x", b"*"])
def test_a_line_without_its_line_end_is_good(end: bytes) -> None:
    found = scan(ONE + TWO[:-1] + end, OWNER, "p")

    assert (found.good, found.torn_bytes, found.bad) == (spans(1, 2), 0, ())


@pytest.mark.parametrize("scrap", [b"\0", b"\n", b"\n\n\0x", bytes(40)])
def test_less_than_the_shortest_line_is_torn_whatever_it_is(scrap: bytes) -> None:
    found = scan(ONE + scrap, OWNER, "p")

    assert (found.good, found.torn_bytes, found.bad) == (spans(1), len(scrap), ())


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (bytes(SIZE), "NUL byte at offset 0"),
        (TWO[:60] + bytes(SIZE - 60), "NUL byte at offset 60"),
        (bytes(60) + TWO[60:], "NUL byte at offset 0"),
        (TWO[:60] + STALE, "it does not end with a crc"),
        (STALE, "it does not end with a crc"),
        (TWO.replace(b'"e"', b'"f"'), "its crc is "),
        (b"[" + TWO[1:-1] + b".", "it does not end with a crc"),
        (line(2, owner="cd" * 16), "it belongs to session_id="),
        (ONE, "it has seq=1 after 1"),
    ],
)
def test_an_end_that_may_have_been_acknowledged_is_damage(tail: bytes, reason: str) -> None:
    found = scan(ONE + tail, OWNER, "p")

    assert (found.good, found.torn_bytes, found.has_damaged_middle) == (spans(1), 0, False)
    assert [(bad.start, bad.end, bad.tail) for bad in found.bad] == [(SIZE, SIZE + len(tail), True)]
    assert found.bad[0].reason.startswith(reason)


def test_a_line_is_found_behind_zeros_that_have_no_line_end() -> None:
    found = scan(ONE + bytes(SIZE) + THREE, OWNER, "p")

    assert (found.good, found.missing) == (spans(1, 3), ((2, 2),))
    assert found.bad == (BadSpan(SIZE, 2 * SIZE, "NUL byte at offset 0", False),)


def test_a_damaged_line_end_in_the_middle_loses_no_line() -> None:
    found = scan(ONE + TWO[:-1] + b"J" + THREE, OWNER, "p")

    assert (found.good, found.missing) == (spans(1, 2, 3), ())
    assert found.bad == (BadSpan(2 * SIZE - 1, 2 * SIZE, "a line end is damaged", False),)


def test_what_looks_like_a_line_inside_a_line_is_its_data() -> None:
    nested = encode_line(Line(2, "2026", OWNER, "e", {"data": {"data": {}}}), "p")
    found = scan(ONE[:-1] + b"J" + nested + line(3), OWNER, "p")

    assert [each.seq for each in found.lines] == [1, 2, 3]
    assert found.bad == (BadSpan(SIZE - 1, SIZE, "a line end is damaged", False),)


def test_damage_in_the_middle_leaves_the_good_lines() -> None:
    found = scan(ONE + TWO.replace(b'"e"', b'"f"') + THREE, OWNER, "p")

    assert (found.good, found.last_seq, found.missing) == (spans(1, 3), 3, ((2, 2),))
    assert [(bad.start, bad.end, bad.tail) for bad in found.bad] == [(SIZE, 2 * SIZE, False)]
    assert found.has_damaged_middle


def test_damage_in_the_middle_and_a_torn_end_are_told_apart() -> None:
    found = scan(b"garbage\n" * 9 + TWO + THREE[:30], OWNER, "p")

    assert [bad.tail for bad in found.bad] == [False]
    assert (found.torn_bytes, found.missing, found.last_seq) == (30, ((1, 1),), 2)


def test_a_good_last_line_without_its_end_proves_what_is_before_it_damaged() -> None:
    found = scan(ONE + b"garbage" * 20 + b"\n" + THREE[:-1], OWNER, "p")

    assert [bad.tail for bad in found.bad] == [False]
    assert found.last_seq == 3


def test_a_gap_is_told_even_when_no_byte_is_bad() -> None:
    assert scan(ONE + line(5) + line(9), OWNER, "p").missing == ((2, 4), (6, 8))


def test_a_line_out_of_order_is_damage() -> None:
    found = scan(ONE + TWO + ONE + THREE, OWNER, "p")

    assert found.bad == (BadSpan(2 * SIZE, 3 * SIZE, "it has seq=1 after 2", False),)
    assert found.missing == ()


def test_a_newer_format_stops_the_scan() -> None:
    newer = seal({"v": 2, "anything": 1}) + b"\n"

    with pytest.raises(NewerFormat):
        scan(ONE + newer, OWNER, "p")


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


@pytest.mark.parametrize("lost", [ZEROS, TWO[:60] + bytes(SIZE - 60), TWO[: SIZE - 1] + b"\0"])
def test_a_group_ends_with_the_first_line_that_a_power_cut_took(lost: bytes) -> None:
    later = line(3, durable=1)
    found = scan(ONE + lost + later, OWNER, "p")

    two = lost.startswith(TWO[:-1])
    assert kept(found) == ([1, 2] if two else [1])
    cut = 2 * SIZE - 1 if two else SIZE
    assert [(bad.start, bad.end, bad.tail) for bad in found.bad] == [
        (cut, 2 * SIZE + len(later), True)
    ]
    assert (found.torn_bytes, found.missing) == (0, ())


def test_a_gap_that_a_later_line_proves_durable_is_damage() -> None:
    group = [line(3, durable=1), line(4, durable=2)]
    found = scan(ONE + ZEROS + b"".join(group), OWNER, "p")

    assert kept(found) == [1, 3, 4]
    assert [bad.tail for bad in found.bad] == [False]
    assert found.missing == ((2, 2),)


def test_damage_before_a_group_is_told_apart_from_the_remains_of_the_group() -> None:
    found = scan(ZEROS + TWO + ZEROS + line(4, durable=2), OWNER, "p")

    assert kept(found) == [2]
    assert [(bad.start, bad.tail) for bad in found.bad] == [(0, False), (2 * SIZE, True)]
    assert found.missing == ((1, 1),)


def test_the_remains_of_a_group_still_prove_what_was_durable_before_it() -> None:
    found = scan(ZEROS + line(2, durable=0) + ZEROS + line(4, durable=1), OWNER, "p")

    assert kept(found) == [2]
    assert [bad.tail for bad in found.bad] == [False, True]


def test_what_was_durable_of_a_gap_before_a_group_is_missing() -> None:
    found = scan(ONE + 3 * ZEROS + line(5, durable=3), OWNER, "p")

    assert (kept(found), found.missing) == ([1], ((2, 3),))
    assert [bad.tail for bad in found.bad] == [True]


def test_a_group_with_a_gap_and_no_bad_byte_ends_before_it() -> None:
    found = scan(ONE + line(3, durable=1), OWNER, "p")

    assert (kept(found), found.last_seq) == ([1], 1)
    assert [(bad.start, bad.reason) for bad in found.bad] == [(SIZE, "seq=2 is missing")]


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
