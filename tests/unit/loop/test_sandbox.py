"""Every use of the real machine from inside a simulated world raises, and names the call."""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import logging
import random
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from sim.errors import EscapedSimulation, SimulatedCrash
from sim.loop.event_loop import SimulatedLoop
from sim.loop.sandbox import SANDBOX, Sandbox
from tests.unit.loop.loops import new_loop

# A module of a program: names that it imported under its own names are replaced as well.
IMPORTS = """
import datetime as dt, io, os, random, secrets, socket, sqlite3, subprocess, threading, time, uuid
from datetime import date, datetime
from os import urandom
from pathlib import Path
from random import randint
from time import monotonic, sleep
from time import time as now
from uuid import uuid4
"""

ESCAPES = [
    ("time.time", "time.time()"),
    ("time.time", "now()"),
    ("time.monotonic", "monotonic()"),
    ("time.perf_counter_ns", "time.perf_counter_ns()"),
    ("time.sleep", "sleep(0)"),
    ("time.localtime", "time.localtime()"),
    ("datetime.datetime.now", "dt.datetime.now(dt.UTC)"),
    ("datetime.datetime.now", "datetime.now(dt.UTC)"),
    ("datetime.date.today", "date.today()"),
    ("random.random", "random.random()"),
    ("random.randint", "randint(1, 6)"),
    ("random.shuffle", "random.shuffle([1, 2])"),
    ("random.Random without a seed", "random.Random()"),
    ("os.urandom", "random.SystemRandom().random()"),
    ("os.urandom", "os.urandom(1)"),
    ("os.urandom", "urandom(1)"),
    ("uuid.uuid1", "uuid.uuid1()"),
    ("uuid.uuid4", "uuid4()"),
    ("secrets.token_hex", "secrets.token_hex()"),
    ("_thread.start", "threading.Thread(target=print).start()"),
    ("socket.__new__", "socket.socket()"),
    ("socket.getaddrinfo", 'socket.getaddrinfo("localhost", 80)'),
    ("subprocess.Popen", 'subprocess.run(["true"], check=False)'),
    ("os.system", 'os.system("true")'),
    ("open", "open(os.devnull)"),
    ("open", "io.open(os.devnull)"),
    ("open", "os.open(os.devnull, os.O_RDONLY)"),
    ("open", "Path(os.devnull).read_bytes()"),
    ("os.stat", "Path(os.devnull).exists()"),
    ("os.listdir", 'os.listdir("/")'),
    ("os.mkdir", 'os.mkdir("/nowhere")'),
    ("sqlite3.connect", 'sqlite3.connect(":memory:")'),
]


@pytest.mark.parametrize(("call", "escape"), ESCAPES, ids=[escape for _, escape in ESCAPES])
def test_an_escape_raises_and_names_the_call_and_the_caller(
    call: str, escape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = ModuleType(f"program {escape}")
    exec(IMPORTS, vars(program))
    monkeypatch.setitem(sys.modules, program.__name__, program)
    code = compile(escape, "program.py", "eval")

    async def main() -> None:
        await asyncio.sleep(0)
        eval(code, vars(program))

    with pytest.raises(EscapedSimulation) as caught:
        new_loop().run_until_complete(main())
    assert str(caught.value).startswith(call)
    assert "at program.py:1 in" in str(caught.value)


def test_an_escape_names_the_line_of_the_caller() -> None:
    async def main() -> None:
        uuid.uuid4()

    line = main.__code__.co_firstlineno + 1
    with pytest.raises(EscapedSimulation, match=f"{re.escape(__file__)}:{line} in .*main"):
        new_loop().run_until_complete(main())


def test_a_swallowed_escape_is_raised_at_the_end_of_the_run() -> None:
    async def main() -> str:
        with suppress(Exception):
            time.time()
        return "swallowed"

    with pytest.raises(EscapedSimulation, match=r"time\.time"):
        new_loop().run_until_complete(main())


def test_after_a_run_every_replaced_name_is_restored(tmp_path: Path) -> None:
    before = [vars(time).copy(), vars(random).copy(), dict(globals())]
    seed = random.Random.seed

    async def fail() -> None:
        raise SimulatedCrash

    with pytest.raises(SimulatedCrash):
        new_loop().run_until_complete(fail())
    assert [vars(time), vars(random), dict(globals())] == before
    assert random.Random.seed is seed
    assert datetime.now(dt.UTC).year > 2000
    assert (tmp_path / "f").write_bytes(b"x") == 1
    assert time.time() > 0
    assert random.Random().random() < 1


def _inside_two_sandboxes() -> None:
    with SANDBOX:
        with SANDBOX:
            pass
        time.time()


def test_the_sandbox_nests() -> None:
    with pytest.raises(EscapedSimulation):
        _inside_two_sandboxes()
    assert time.time() > 0


def test_calls_that_use_no_real_clock_or_randomness_pass() -> None:
    async def main() -> object:
        moment = datetime(2026, 3, 1, tzinfo=dt.UTC)
        assert isinstance(moment, datetime)
        assert type(moment) is type(dt.datetime.fromtimestamp(0, dt.UTC))
        assert datetime.fromisoformat("2026-03-01T00:00:00+00:00") == moment
        assert {datetime: 1}[dt.datetime] == 1
        assert date(2026, 3, 1) + dt.timedelta(1) > date.min
        assert time.gmtime(0).tm_year == 1970
        return random.Random(7).random()

    assert new_loop().run_until_complete(main()) == random.Random(7).random()


def test_imports_and_log_records_are_no_escapes(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        assert import_module("colorsys").__name__ == "colorsys"
        logging.getLogger("system").warning("said")

    sys.modules.pop("colorsys", None)
    new_loop().run_until_complete(main())
    assert [record.message for record in caplog.records] == ["said"]


def test_other_threads_are_not_affected() -> None:
    begun, done, times = threading.Event(), threading.Event(), list[float]()

    def read_clock() -> None:
        begun.wait(10)
        times.append(time.time())
        done.set()

    thread = threading.Thread(target=read_clock)
    thread.start()
    with SANDBOX:
        begun.set()
        assert done.wait(10)
    thread.join()
    assert len(times) == 1


_enter = Sandbox.__enter__


def _interrupted(sandbox: Sandbox = SANDBOX) -> None:
    _enter(sandbox)
    # A signal comes behind the last statement of that call.
    raise KeyboardInterrupt


def test_an_interrupt_while_it_is_entered_leaves_it() -> None:
    with pytest.raises(KeyboardInterrupt), SANDBOX.interruptible():
        _interrupted()
    assert time.time() > 0
    assert random.Random() is not None
    with pytest.raises(EscapedSimulation), SANDBOX:
        time.time()


def test_an_interrupt_while_it_is_entered_again_leaves_it_once() -> None:
    def interrupted_inside() -> None:
        with pytest.raises(KeyboardInterrupt), SANDBOX.interruptible():
            _interrupted()
        time.time()

    with pytest.raises(EscapedSimulation), SANDBOX:
        interrupted_inside()
    assert time.time() > 0


@pytest.mark.parametrize("call", [SimulatedLoop.run_until_idle, SimulatedLoop.close])
def test_an_interrupt_while_a_loop_enters_it_leaves_it(
    call: Callable[[SimulatedLoop], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = new_loop()
    loop.create_task(asyncio.sleep(1))
    loop.run_until_idle()
    # The loops that earlier tests have dropped enter it when they are collected.
    gc.collect()
    with monkeypatch.context() as patched:
        patched.setattr(Sandbox, "__enter__", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            call(loop)
    assert time.time() > 0


class Failing:
    def __del__(self) -> None:
        raise ValueError("in a finalizer")


def test_the_report_of_an_exception_that_python_ignores_is_no_escape(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # That of Python reads the source, and no frame shows that it does.
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    with SANDBOX:
        Failing()
    assert 'raise ValueError("in a finalizer")' in capfd.readouterr().err
    assert sys.unraisablehook is sys.__unraisablehook__
