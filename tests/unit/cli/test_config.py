"""``[tool.powercut]``: the nearest file decides, and a mistake in it is one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from powercut.config import Config, find_config, read_config
from sim.errors import HarnessError

FULL = """
[tool.powercut]
model = "xfs"
seconds = 7.5
seed = 3
[tool.powercut.targets]
kv = "crash_tests.kv:Target"
"kv.2" = "crash_tests.kv:target"
[tool.powercut.workloads]
kv = "crash_tests.kv:save"
[tool.powercut.mutants]
no-fsync = "crash_tests.kv:no_fsync"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "pyproject.toml"


def test_every_setting_is_read_and_nothing_is_imported(file: Path) -> None:
    file.write_text(FULL, "utf-8")
    assert read_config(file) == Config(
        file=file,
        targets={"kv": "crash_tests.kv:Target", "kv.2": "crash_tests.kv:target"},
        workloads={"kv": "crash_tests.kv:save"},
        mutants={"no-fsync": "crash_tests.kv:no_fsync"},
        model="xfs",
        seconds=7.5,
        seed=3,
        import_path=(str(file.parent),),
    )
    assert "crash_tests.kv" not in sys.modules


def test_the_nearest_file_decides_even_without_the_table(file: Path) -> None:
    file.write_text(FULL, "utf-8")
    inner = file.parent / "inner" / "deep"
    inner.mkdir(parents=True)
    assert find_config(inner).file == file
    nearest = inner.parent / "pyproject.toml"
    nearest.write_text("[project]\nname = 'inner'", "utf-8")
    assert find_config(inner) == Config(file=nearest, import_path=(str(inner.parent),))


@pytest.mark.parametrize(
    "pytest_table",
    [
        '[tool.pytest]\npythonpath = ["src", "."]',
        '[tool.pytest.ini_options]\npythonpath = ["src", "."]',
        '[tool.pytest.ini_options]\npythonpath = "src ."',
    ],
)
def test_modules_come_from_the_project_and_from_the_pythonpath_of_its_pytest(
    file: Path, pytest_table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(pytest_table, "utf-8")
    config = read_config(file)
    folder = str(file.parent)
    assert config.import_path == (folder, f"{folder}/src")
    monkeypatch.setattr(sys, "path", ["/elsewhere", folder])
    monkeypatch.chdir("/")
    config.extend_import_path()
    assert sys.path == [f"{folder}/src", "/", "/elsewhere", folder]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[tool", "{file} is not TOML: "),
        ("tool = 3", "{file}: tool is 3 and must be a table"),
        ("[tool]\npowercut = 3", "{file}: tool.powercut is 3 and must be a table"),
        (
            "[tool.powercut]\nsead = 3",
            (
                "{file}: [tool.powercut] has an unknown key 'sead'; known are model, seconds, "
                "seed, targets, workloads, mutants"
            ),
        ),
        (
            "[tool.powercut]\nmodel = 'ntfs'",
            "{file}: tool.powercut.model is 'ntfs' and must be one of scc, ext4-journal, ",
        ),
        ("[tool.powercut]\nmodel = ['xfs']", "{file}: tool.powercut.model is ['xfs'] and must be"),
        (
            "[tool.powercut]\nseconds = 0",
            (
                "{file}: tool.powercut.seconds is 0 and must be a number of seconds above 0, "
                "at most 1000000000"
            ),
        ),
        ("[tool.powercut]\nseconds = inf", "{file}: tool.powercut.seconds is inf and must be"),
        ("[tool.powercut]\nseconds = nan", "{file}: tool.powercut.seconds is nan and must be"),
        ("[tool.powercut]\nseconds = '60'", "{file}: tool.powercut.seconds is '60' and must be"),
        ("[tool.powercut]\nseconds = true", "{file}: tool.powercut.seconds is True and must be"),
        (
            "[tool.powercut]\nseed = -1",
            "{file}: tool.powercut.seed is -1 and must be a whole number from 0",
        ),
        ("[tool.powercut]\nseed = 1.5", "{file}: tool.powercut.seed is 1.5 and must be"),
        (
            "[tool.powercut]\ntargets = ['kv']",
            "{file}: tool.powercut.targets is ['kv'] and must be a table of tags, each ",
        ),
        (
            "[tool.powercut.targets]\nkv = 'crash_tests.kv'",
            (
                "{file}: tool.powercut.targets.kv is 'crash_tests.kv' and must be a string "
                "module:object, such as 'crash_tests.kv:target'"
            ),
        ),
        ("[tool.powercut.mutants]\nkv = 3", "{file}: tool.powercut.mutants.kv is 3 and must be"),
        (
            "[tool.powercut.targets]\n'a:b' = 'm:o'",
            "{file}: [tool.powercut.targets] has the tag 'a:b'; use letters, digits, '-', '_'",
        ),
        ("[tool.powercut.targets]\nkv = 'm:o'\nkv = 'm:p'", "{file} is not TOML: "),
        ("[tool]\npytest = 3", "{file}: tool.pytest is 3 and must be a table"),
        (
            "[tool.pytest]\npythonpath = 5",
            "{file}: pythonpath of pytest is 5 and must be a list of folders, such as ['src']",
        ),
        ("[tool.pytest.ini_options]\npythonpath = {}", "{file}: pythonpath of pytest is {{}} and "),
    ],
)
def test_a_mistake_is_a_sentence_with_the_place_and_the_remedy(
    file: Path, text: str, sentence: str
) -> None:
    file.write_text(text, "utf-8")
    with pytest.raises(HarnessError) as raised:
        read_config(file)
    assert str(raised.value).startswith(sentence.format(file=file))
    assert "\n" not in str(raised.value)


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    file.mkdir()
    with pytest.raises(HarnessError, match=r"cannot read .*pyproject\.toml: Is a directory"):
        read_config(file)


def test_a_file_in_another_encoding_is_named(file: Path) -> None:
    file.write_bytes(b"name = '\xff'")
    with pytest.raises(HarnessError, match=r"pyproject\.toml is not TOML: "):
        read_config(file)
