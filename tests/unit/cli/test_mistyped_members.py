"""A target whose members are mistyped is refused: they would never be called, or read."""

from __future__ import annotations

from pathlib import Path

import pytest

from powercut.fuzz.target import TargetEntry
from tests.unit.cli.command_line import DIRECTORIES, refusal


@pytest.mark.parametrize(
    ("member", "meant"),
    [
        ("def check_recoverd(self): pass", "check_recovered"),
        ("def checkRecovered(self): pass", "check_recovered"),
        ("def check_recovery(self): pass", "check_recovered"),
        ("def check(self): pass", "check_recovered"),
        ("def check_state(self): pass", "check_recovered"),
        ("def check_second_recover(self): pass", "check_second_recovery"),
        ("def before_steps(self, choices): pass", "before_step"),
        ("def quiese(self): pass", "quiesce"),
        ("def attatch(self, world): pass", "attach"),
    ],
)
def test_method_that_resembles_a_member_is_refused_with_its_line(
    module: str, member: str, meant: str
) -> None:
    source = f"{DIRECTORIES}\nclass Wrong(Directories):\n    {member}\n"
    name = member[4 : member.index("(")]
    assert refusal(module, source) == (
        f"Error: {module}:Wrong has {name}, which nothing uses, and has no {meant}: correct the "
        f"name, or begin it with an underscore; see {module}.py:{source.count(chr(10))}, "
        f"Wrong.{name}\n"
    )


@pytest.mark.parametrize(
    ("member", "meant"),
    [
        ("refusal = (OSError,)", "refusals"),
        ("family_left_out: dict = {}", "families_left_out"),
        ("crashfree = True", "crash_free"),
        ("feature = {}", "features"),
        ("expected_mark = ()", "expected_marks"),
        ("def __init__(self): self.refusal = (OSError,)", "refusals"),
    ],
)
def test_attribute_that_resembles_a_member_is_refused(module: str, member: str, meant: str) -> None:
    source = f"{DIRECTORIES}\nclass Wrong(Directories):\n    {member}\n"
    name = member.removeprefix("def __init__(self): self.").split(" ", maxsplit=1)[0].rstrip(":")
    assert f"Wrong has {name}, which nothing uses, and has no {meant}: " in refusal(module, source)


@pytest.mark.parametrize(
    "members",
    [
        "def check_state(self): pass\n    def check_recovered(self): self.check_state()",
        "def check_recovery(self): pass\n    def check_recovered(self): pass",
        "def check_state(self): pass\n    def put(self, _): self.check_state(); return 'put'",
        "def check_state(self): pass\n    def quiesce(self): getattr(self, 'check_state')()",
        "check_values = True\n    def quiesce(self): assert self.check_values",
        "def __init__(self): self.refusal = 3; assert self.refusal",
        "def __init__(self): self.checked = 0",
        "def __init__(self): self.refusals = (OSError,); self.refusal = 3",
        "def _check_recoverd(self): pass",
        "def recovered(self): pass",
        "def verify(self): pass",
    ],
)
def test_used_private_and_other_names_are_free(module: str, members: str) -> None:
    source = f"{DIRECTORIES}\nclass Right(Directories):\n    {members}\n"
    Path(f"{module}.py").write_text(source, encoding="ascii")
    assert TargetEntry.of("right", f"{module}:Right").tag == "right"


def test_method_that_another_class_of_the_target_uses_is_free(module: str) -> None:
    Path(f"{module}_base.py").write_text(
        f"{DIRECTORIES}\nclass Base(Directories):\n    def quiesce(self): self.check_state()\n",
        encoding="ascii",
    )
    Path(f"{module}.py").write_text(
        f"from {module}_base import Base\nclass Right(Base):\n    def check_state(self): pass\n",
        encoding="ascii",
    )
    assert TargetEntry.of("right", f"{module}:Right").tag == "right"
