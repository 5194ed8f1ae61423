"""A workload that takes ``ack`` alone is ordinary Python, interposed and run apart."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from oracles.history import History, Known
from oracles.violation import LostAck, UnreadableAfterCrash, Violation
from powercut.explorer.explore import explore, explore_models
from powercut.explorer.limits import Engine, Limits
from powercut.fuzz.reproducer import write_durably
from powercut.interpose.router import ROUTER
from powercut.interpose.seed import image_of
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS
from sim.errors import HarnessError

SOON = Limits(timeout=1)
CACHE: dict[str, str] = {}


def replace(path: str, data: bytes) -> None:
    with open(f"{path}.tmp", "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    Path(f"{path}.tmp").replace(path)


def sync_directory(path: str = ".") -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def careful(ack: History) -> None:
    for data in (b"volume=3", b"volume=11"):
        ack.attempt({"settings": data})
        replace("settings", data)
        sync_directory()
        ack({"settings": data})


def careless(ack: History) -> None:
    replace("settings", b"volume=3")
    ack({"settings": b"volume=3"})


def test_a_correct_program_is_safe_under_every_model() -> None:
    verdicts = explore_models(careful)
    assert {name: found.safe for name, found in verdicts.items()} == dict.fromkeys(MODELS, True)
    assert all(found.exhaustive for found in verdicts.values())
    assert ROUTER.lifetime is None


def kept_findings(ack: History) -> None:
    for data in (b"finding 1", b"finding 2"):
        ack.attempt({"finding": data})
        write_durably(Path("finding"), data)
        ack({"finding": data})


def test_powercut_keeps_its_own_findings_durably() -> None:
    verdicts = explore_models(kept_findings)
    assert {name: found.safe for name, found in verdicts.items()} == dict.fromkeys(MODELS, True)
    assert all(found.exhaustive for found in verdicts.values())


def test_a_lost_rename_is_found_with_its_line() -> None:
    found = explore(careless, model="scc")
    assert not found.safe
    assert isinstance(found.failures[0].violation, LostAck)
    assert found.failures[0].violation.evidence["actual"] == {"/disk/settings": None}
    places = {place.function for place in found.workload.places.values()}
    assert places == {"replace"}


def test_the_test_process_is_as_before() -> None:
    def noisy(ack: History) -> None:
        os.environ["POWERCUT_TEST"] = "set"
        CACHE["noisy"] = "set"
        careful(ack)

    explore(noisy, model="scc")
    assert "POWERCUT_TEST" not in os.environ
    assert "noisy" not in CACHE


# -- caches: a package that remembers what it wrote, and what it read ----------------------------


def put(key: str, value: str) -> None:
    CACHE[key] = value
    Path(key).write_text(value, "utf-8")


def get(key: str) -> str | None:
    if key not in CACHE:
        with suppress(FileNotFoundError):
            CACHE[key] = Path(key).read_text("utf-8")
    return CACHE.get(key)


def test_a_cache_of_a_package_makes_no_careless_workload_safe() -> None:
    def workload(ack: History) -> None:
        put("key", "value")
        assert get("key") == "value"
        ack("value")

    def check(known: Known) -> None:
        if known.acknowledged and get("key") != "value":
            raise LostAck("the value is lost", found=get("key"))

    for name, found in explore_models(workload, check).items():
        assert not found.safe, name
        evidence = [failure.violation.evidence["found"] for failure in found.failures]
        assert None in evidence or "" in evidence
    assert CACHE == {}


# -- checks --------------------------------------------------------------------------------------


def test_a_check_may_take_a_process_as_well() -> None:
    seen: set[str] = set()

    def check(process: Process, known: Known) -> None:
        assert process.listdir("/disk") == os.listdir()

    assert explore(careful, check, "scc").safe
    assert seen == set()


def test_violations_of_a_check_arrive_with_their_class_and_evidence() -> None:
    class Own(Violation):
        """A property of this test."""

    def check(known: Known) -> None:
        raise Own("always", value=[1], function=lambda: None)

    violation = explore(careless, check, "scc").failures[0].violation
    assert isinstance(violation, Own)
    assert violation.evidence["value"] == [1]
    assert "lambda" in repr(violation.evidence["function"])


def test_an_exception_of_a_check_is_a_recovery_that_fails() -> None:
    def check(known: Known) -> None:
        Path("missing").read_bytes()

    violation = explore(careless, check, "scc").failures[0].violation
    assert isinstance(violation, UnreadableAfterCrash)
    assert "the check raised FileNotFoundError" in str(violation)
    line = check.__code__.co_firstlineno + 1
    assert violation.evidence == {"at": f"tests/unit/explorer/test_unmodified.py:{line}"}


def test_a_recovery_is_crashed_as_well() -> None:
    def workload(ack: History) -> None:
        replace("note", b"x")
        sync_directory()
        ack("noted")

    def recover(known: Known) -> None:
        names = set(os.listdir())
        if known.acknowledged and not names & {"note", "done"}:
            raise LostAck("neither note nor result")
        if "note" in names:
            os.unlink("note")
            Path("done").touch()

    assert explore(workload, recover, "posix").safe
    found = explore(workload, recover, "posix", Limits(nested=1))
    assert not found.safe
    assert len(found.failures[0].crashes) == 2


def test_a_check_of_one_parameter_goes_with_a_workload_of_two() -> None:
    def workload(process: Process, ack: History) -> None:
        process.mkdir("/disk")
        process.close(process.open("/disk/f", os.O_CREAT))
        process.sync()
        ack("made")

    def check(known: Known) -> None:
        if known.acknowledged and not Path("f").exists():
            raise LostAck("no file")

    assert explore(workload, check).safe


# -- the start of the disk -----------------------------------------------------------------------


def test_a_directory_is_copied_below_the_root(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f").write_bytes(b"old")
    (tmp_path / "a" / "f").chmod(0o600)
    (tmp_path / "link").symlink_to("a/f")

    def workload(ack: History) -> None:
        assert os.stat("link").st_mode & 0o777 == 0o600
        ack.attempt({"a/f": b"new"})
        replace("a/f", b"new")
        sync_directory("a")
        ack({"a/f": b"new"})

    assert explore(workload, image=image_of(tmp_path, "/srv/app"), root="/srv/app").safe


def test_special_files_are_not_copied(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(HarnessError, match=r"cannot copy .*fifo"):
        image_of(tmp_path)
    with pytest.raises(HarnessError, match=r"cannot copy .*missing"):
        image_of(tmp_path / "missing")


def test_a_check_runs_in_the_root_of_the_workload() -> None:
    def workload(ack: History) -> None:
        os.mkdir("d")
        ack("anything")

    def check(known: Known) -> None:
        assert os.getcwd() == "/srv/app", known

    assert explore(workload, check, root="/srv/app").safe


# -- threads and asyncio -------------------------------------------------------------------------


def test_threads_write_to_one_disk() -> None:
    def workload(ack: History) -> None:
        threads = [threading.Thread(target=replace, args=(f"f{n}", b"x")) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sync_directory()
        ack({f"f{n}": b"x" for n in range(3)})

    check_nothing_lost = Limits(states_per_point=64, samples=16, engine=Engine.BRUTE)
    found = explore(workload, lambda known: None, "scc", check_nothing_lost)
    assert found.operations == 13


def test_asyncio_passes_the_sandbox() -> None:
    async def main() -> None:
        await asyncio.to_thread(replace, "f", b"x")
        await asyncio.sleep(0)
        sync_directory()

    def workload(ack: History) -> None:
        ack.attempt({"f": b"x"})
        asyncio.run(main())
        ack({"f": b"x"})

    assert explore(workload, model="scc").safe


def test_a_call_in_a_thread_pool_has_the_line_that_submitted_it() -> None:
    async def main() -> None:
        await asyncio.to_thread(os.mkdir, "a")

    def workload(ack: History) -> None:
        asyncio.run(main())
        ack({})

    (place,) = explore(workload, model="scc").workload.places.values()
    assert (place.function, place.line) == (
        main.__qualname__,
        main.__code__.co_firstlineno + 1,
    )


# -- mistakes ------------------------------------------------------------------------------------


def test_a_check_that_hangs_is_named_with_its_line() -> None:
    def check(known: Known) -> None:
        threading.Event().wait()

    with pytest.raises(HarnessError, match=r"the check did not end .*test_unmodified.py:\d+"):
        explore(careful, check, limits=SOON)


def test_a_program_that_does_not_exist_is_not_found() -> None:
    def workload(ack: History) -> None:
        with suppress(FileNotFoundError):
            subprocess.run(["powercut-no-such-program"], check=False)
        careful(ack)

    assert explore(workload, model="scc").safe


def test_a_device_and_a_real_directory_that_exists_are_no_writes() -> None:
    def workload(ack: History) -> None:
        with open(os.devnull, "wb") as nothing:
            nothing.write(b"data")
        with suppress(FileExistsError):
            os.mkdir("/usr")
        careful(ack)

    assert explore(workload, model="scc").safe


def test_a_link_on_the_real_disk_is_refused() -> None:
    def workload(ack: History) -> None:
        del ack
        os.symlink("data", "/var/tmp/powercut-escaped")

    with pytest.raises(HarnessError, match=r"os\.symlink\('/var/tmp/powercut-escaped'\) writes to"):
        explore(workload, model="scc")
    assert not os.path.lexists("/var/tmp/powercut-escaped")


def test_an_orderly_exit_ends_the_workload() -> None:
    def workload(ack: History) -> None:
        careful(ack)
        sys.exit()

    assert explore(workload, model="scc").safe
