"""An interposed check runs in a process of its own, which has the modules that it imports."""

from __future__ import annotations

import os
import sys
import threading
import time
from importlib import import_module
from pathlib import Path

import pytest

from oracles.history import History, Known
from powercut.explorer.explore import explore, judged
from powercut.explorer.limits import Limits
from powercut.explorer.recorded_workload import record
from powercut.explorer.unmodified import UnmodifiedWorkload
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS
from sim.errors import HarnessError


def careful(ack: History) -> None:
    for name in ("a", "b", "c"):
        Path(name).write_text(name)
        os.sync()
        ack(name)


def test_modules_of_a_check_are_imported_once_for_many_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The module counts its imports in a file of the real machine."""
    (tmp_path / "slow_module.py").write_text(
        f"import os\nos.write({os.open(tmp_path / 'log', os.O_CREAT | os.O_WRONLY)}, b'.')\n"
        "HOME = os.path.expanduser('~')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    def check(known: Known) -> None:
        slow_module = import_module("slow_module")
        assert slow_module.HOME == "/disk"
        assert known is not None

    recorded = record(careful, MODELS["posix"], Image.empty())
    found = judged(recorded, check, [MODELS["posix"]], processes=2)["posix"]
    assert found.safe
    imports = (tmp_path / "log").read_bytes().count(b".")
    assert 2 < imports < found.states / 2
    assert "slow_module" not in sys.modules


def test_a_module_that_uses_the_disk_when_it_is_imported_is_imported_by_each_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "eager_module.py").write_text("FILE = open('eager', 'w')\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def check(_known: Known) -> None:
        eager_module = import_module("eager_module")
        eager_module.FILE.write("written")
        eager_module.FILE.close()
        assert Path("eager").read_text() == "written"

    recorded = record(careful, MODELS["posix"], Image.empty())
    assert judged(recorded, check, [MODELS["posix"]], processes=2)["posix"].safe


def test_what_a_check_prints_is_dropped(capfd: pytest.CaptureFixture[str]) -> None:
    def check(_known: Known) -> None:
        sys.stdout.write("noise")
        os.write(2, b"more noise")

    assert explore(careful, check).safe
    assert capfd.readouterr() == ("", "")


def reads_the_clock(ack: History) -> None:
    Path("now").write_text(str(time.time()))
    ack("now")


def starts_a_thread(ack: History) -> None:
    thread = threading.Thread(target=Path("f").touch)
    thread.start()
    thread.join()
    ack("touched")


@pytest.mark.parametrize(
    ("workload", "call"),
    [(reads_the_clock, r"time\.time"), (starts_a_thread, r"_thread\.start_(new|joinable)_thread")],
)
def test_strict_refuses_clocks_and_threads(workload: UnmodifiedWorkload, call: str) -> None:
    def check(_known: Known) -> None:
        Path("now").exists()

    assert explore(workload, check, "scc").states
    with pytest.raises(HarnessError, match=rf"{call} was called .*test_interposed_check.py:\d+"):
        explore(workload, check, "scc", Limits(strict=True))


def test_strict_lets_files_and_random_numbers_pass() -> None:
    def workload(ack: History) -> None:
        Path(os.urandom(4).hex()).write_text("x")
        careful(ack)

    def check(known: Known) -> None:
        found = sorted(path.name for path in Path(".").iterdir())
        assert set(known.acknowledged) <= set(found), found

    assert explore(workload, check, limits=Limits(strict=True)).safe
