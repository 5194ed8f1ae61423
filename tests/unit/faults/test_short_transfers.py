"""Short writes and short reads."""

from __future__ import annotations

from tests.unit.faults.faulty_disk import faulty_disk


def test_a_short_write_takes_the_first_bytes_and_returns_their_number() -> None:
    faulty = faulty_disk("write * #2 short:4B")
    descriptor = faulty.opened("/f")
    assert faulty.process.write(descriptor, b"whole.") == 6
    assert faulty.process.write(descriptor, b"shortened") == 4
    assert faulty.process.write(descriptor, b"!") == 1
    assert faulty.read("/f") == b"whole.shor!"
    assert faulty.faults.fired == (1,)


def test_a_write_that_is_no_longer_than_the_limit_is_not_cut() -> None:
    faulty = faulty_disk("write * short:4B")
    assert faulty.process.write(faulty.opened("/f"), b"four") == 4
    assert faulty.faults.fired == (0,)


def test_a_short_read_returns_the_first_bytes_and_the_next_read_goes_on() -> None:
    faulty = faulty_disk("read * #1 short:3B", {"/f": b"content"})
    descriptor = faulty.opened("/f")
    assert faulty.process.read(descriptor, 100) == b"con"
    assert faulty.process.read(descriptor, 100) == b"tent"
    assert faulty.faults.fired == (1,)
