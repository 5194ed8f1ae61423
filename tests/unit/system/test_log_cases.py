"""Recovery of logs as text cases: the files that a crash left, then report and files.

Input, a line each, bytes of ``events.jsonl`` until a line ``FILE:`` names another file:

    3 text              line 3 with this text; ``durable=1`` and ``session=other`` may follow
    50 bytes of 3 text  its first 50 bytes, without a line end
    damaged 3 text      the same with one byte changed
    unended 3 text      the same without its line end
    80 zeros            NULs
    raw b'...'          these bytes
    end                 the empty line that ends a pending entry

Every case runs under both framings, and a second recovery must change nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest

from system.errors import BadSeal, NewerFormat
from system.host import real_host
from system.storage.event_log import EventLog
from system.storage.framing import Framing
from system.storage.line import Line, decode_line, encode_line
from system.storage.log_report import LogReport, PendingVerdict
from tests.unit.system.faulty_files import FaultyHost
from tests.unit.system.logs import DIRECTORY, NOW, PATH, SESSION
from tests.unit.system.text_cases import Case, check_cases

CASES: Final = Path(__file__).parent / "log_cases"
LOG: Final = "events.jsonl"
_LINE: Final = re.compile(
    r"(?:(?P<take>\d+) bytes of |(?P<how>damaged|unended) )?"
    r"(?P<seq>\d+) (?P<text>\w+)(?: durable=(?P<durable>\d+))?(?: session=(?P<session>\w+))?"
)
_PARTS: Final = re.compile(rb"\0+|[^\0\n]*\n|[^\0\n]+")
_ZEROS: Final = re.compile(r"(\d+) zeros")


def encoded(seq: int, text: str, durable: int | None, session: str = SESSION) -> bytes:
    """Return the bytes of a line."""
    return encode_line(Line(seq, NOW, session, "said", {"text": text}, durable), LOG)


def bytes_of(source: str) -> bytes:
    """Return the bytes that one line of a case stands for."""
    if source == "end":
        return b"\n"
    if source.startswith("raw "):
        value = ast.literal_eval(source.removeprefix("raw "))
        assert isinstance(value, bytes)
        return value
    if zeros := _ZEROS.fullmatch(source):
        return bytes(int(zeros[1]))
    found = _LINE.fullmatch(source)
    assert found is not None, f"not a line of a case: {source!r}"
    durable = int(found["durable"]) if found["durable"] else None
    session = "0f" * 16 if found["session"] else SESSION
    line = encoded(int(found["seq"]), found["text"], durable, session)
    if found["how"] == "damaged":
        return line.replace(b"said", b"sard")
    if found["how"] == "unended":
        return line[:-1]
    return line[: int(found["take"])] if found["take"] else line


def files_of(case: Case) -> dict[str, bytes]:
    """Return the content of each file that a case describes."""
    files: dict[str, bytes] = {}
    name = LOG
    for line in case.given:
        if line.endswith(":"):
            name = line.removesuffix(":")
            files.setdefault(name, b"")
        else:
            files[name] = files.get(name, b"") + bytes_of(line)
    return files


def shown(name: str, content: bytes) -> Iterator[str]:
    """Yield a file as lines of a case."""
    if name != LOG:
        yield f"{name}:"
    for part in _PARTS.findall(content):
        try:
            line = decode_line(part.removesuffix(b"\n"), SESSION, LOG)
        except (BadSeal, NewerFormat):
            yield from _shown_bytes(part)
            continue
        durable = "" if line.durable is None else f" durable={line.durable}"
        ended = "" if part.endswith(b"\n") else "unended "
        yield f"{ended}{line.seq} {line.data['text']}{durable}"


def _shown_bytes(part: bytes) -> Iterator[str]:
    if not part.strip(b"\0"):
        yield f"{len(part)} zeros"
    else:
        more = f" and {len(part) - 24} bytes more" if len(part) > 24 else ""
        yield f"raw {part[:24]!r}{more}"


def reported(report: LogReport, last_seq: int) -> Iterator[str]:
    """Yield a report; values that say nothing are left out."""
    members = [f"lines={report.lines}", f"last_seq={last_seq}"]
    if report.torn_bytes:
        members.append(f"torn_bytes={report.torn_bytes}")
    members += [f"missing={first}-{last}" for first, last in report.missing]
    if report.pending is not PendingVerdict.ABSENT:
        members.append(f"pending={report.pending.name}")
    yield " ".join(members)
    for damage in report.damaged:
        where = f"{Path(damage.path).name} {damage.offset}+{damage.size_bytes}"
        tail = " tail" if damage.tail else ""
        yield f"damaged {where}{tail}: {re.sub('[0-9a-f]{8}', '<crc>', damage.reason)}"
    yield from (f"swept {Path(path).name}" for path in report.swept)


def recovered(case: Case, root: Path, framing: Framing) -> tuple[str, ...]:
    """Recover a case's files below ``root``; return report and files, as the case shows them."""
    host = real_host(str(root))
    here = FaultyHost.of(str(root), host.files, host.database, host.workers)
    for name, content in files_of(case).items():
        here.write(f"{DIRECTORY}/{name}", content)
    before = _files(here)
    try:
        first = EventLog.open(here.host, PATH, SESSION, framing)
    except NewerFormat as refused:
        assert _files(here) == before
        return (f"refused: {refused.reason}",)
    after = _files(here)
    first.close()
    again = EventLog.open(here.host, PATH, SESSION, framing)
    assert (_files(here), again.last_seq) == (after, first.last_seq)
    assert (again.report.damaged, again.report.torn_bytes, again.report.swept) == ((), 0, ())
    again.append("said", {"text": "next"})
    texts = [line.data["text"] for line in again.lines()]
    assert texts == [*(line.data["text"] for line in first.recovered), "next"]
    return tuple(_output(first, after))


def _output(log: EventLog, files: dict[str, bytes]) -> Iterable[str]:
    yield from reported(log.report, log.last_seq)
    for name, content in files.items():
        yield from shown(name, content)


def _files(here: FaultyHost) -> dict[str, bytes]:
    return {name: here.read(f"{DIRECTORY}/{name}") for name in here.names(DIRECTORY)}


@pytest.mark.parametrize("framing", Framing)
@pytest.mark.parametrize("path", sorted(CASES.glob("*.txt")), ids=lambda path: path.stem)
def test_recovery_of_a_log(
    path: Path,
    framing: Framing,
    tmp_path: Path,
    subtests: pytest.Subtests,
    request: pytest.FixtureRequest,
) -> None:
    roots = (tmp_path / str(number) for number in range(10_000))
    rewrite = bool(request.config.getoption("--rewrite-cases"))
    check_cases(path, lambda case: recovered(case, next(roots), framing), subtests, rewrite=rewrite)
