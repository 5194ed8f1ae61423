"""A mistake in a target's own code is one sentence with its place, and no failure of its system."""

from __future__ import annotations

from pathlib import Path

import pytest

from powercut.cli.exit_code import ExitCode
from powercut.cli.usage import mistake_of
from sim.errors import EscapedSimulation
from tests.unit.cli.command_line import DIRECTORIES, powercut, refusal

TARGET = (
    DIRECTORIES
    + """
from oracles.violation import LostAck

class Counting(Directories):
    def __init__(self):
        self.steps = 0

    def put(self, arguments):
        self.steps += 1
        return super().put(arguments)

    def fail_later(self, _choices=None):
        if self.steps > 3:
            raise KeyError("four")
        return {}

class InPropose(Counting):
    def actions(self):
        return [ActionKind("put", 1, self.put, self.fail_later)]

class InReady(Counting):
    def actions(self):
        return [ActionKind("put", 1, self.put, ready=lambda: self.fail_later() == {})]

class InBeforeStep(Counting):
    def before_step(self, choices):
        self.fail_later()

class WithoutOptions(Counting):
    def actions(self):
        return [ActionKind("put", 1, self.put, lambda choices: {"key": choices.pick("key", "")})]

class MostlyFailing(Counting):
    turn_steps = 1

    def actions(self):
        return [ActionKind("put", 1, self.lose, self.choose)]

    def choose(self, choices):
        return {"number": {number: number for number in range(9)}[choices.integer("n", 0, 9)]}

    def lose(self, arguments):
        raise LostAck("gone")
"""
)


@pytest.fixture(autouse=True)
def module(module: str) -> str:
    """The name of a module with these targets."""
    Path(f"{module}.py").write_text(TARGET, encoding="ascii")
    return module


@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize(
    ("target", "member"),
    [
        ("InPropose", "propose of action 'put'"),
        ("InReady", "ready of action 'put'"),
        ("InBeforeStep", "before_step"),
    ],
)
def test_exception_that_prepares_a_step_is_a_mistake_at_its_place(
    module: str, target: str, member: str, processes: str
) -> None:
    result = powercut("run", f"{module}:{target}", "--examples", "3", "-n", processes)
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    line = TARGET.splitlines().index('            raise KeyError("four")') + 1
    assert result.stderr == (
        f"Error: {member} raises KeyError: 'four', at {module}.py:{line} in Counting.fail_later; "
        "it prepares a step, and must return in every state of the system: only actions, "
        "recoveries and checks may fail\n"
    )


def test_mistake_after_a_failure_ends_the_campaign_and_the_failure_is_reported(module: str) -> None:
    result = powercut("run", f"{module}:MostlyFailing", "--examples", "99", "-n", "1")
    assert result.exit_code == ExitCode.VIOLATION, result.output
    assert "FAILED  LostAck" in result.stdout
    assert result.stderr.startswith("Error: propose of action 'put' raises KeyError: 9, at ")
    assert result.stderr.count("\n") == 1


def test_choice_among_nothing_is_a_mistake_at_its_place(module: str) -> None:
    result = powercut("run", f"{module}:WithoutOptions", "--examples", "3", "-n", "1")
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert "raises NothingToChoose: nothing to choose from: key[0..-1], at " in result.stderr
    assert result.stderr.count("\n") == 1


MEMBERS = """
from powercut import ActionKind, DiskTarget
from {name}_base import Counting

class Target(Counting):
    {member}
"""


@pytest.mark.parametrize(
    ("member", "sentence"),
    [
        (
            "refusals = [OSError]",
            "refusals=[<class 'OSError'>], and must have a tuple of exception ",
        ),
        ("refusals = ('OSError',)", "refusals=('OSError',), and must have a tuple of exception "),
        ("expected_marks = 'killed'", "expected_marks='killed', and must have a list of texts"),
        ("rare_marks = [7]", "rare_marks=[7], and must have a list of texts"),
        ("adapters = 'kv.py'", "adapters='kv.py', and must have a list of texts"),
        ("changed_by_boot = '/boots'", "changed_by_boot='/boots', and must have a list of texts"),
        ("turn_steps = 'many'", "turn_steps='many', and must have a whole number from 1"),
        ("actions_per_crash = 0", "actions_per_crash=0, and must have a whole number from 1"),
        ("features = ['kind']", "features=['kind'], and must map labels of choices to their "),
        ("recover = None", "recover, which is None, and must be a function"),
        ("async def recover(self, process): pass", "recover, which is a coroutine function: a "),
        ("async def check_recovered(self): pass", "check_recovered, which is a coroutine "),
        ("async def check_second_recovery(self): pass", "check_second_recovery, which is a "),
        ("async def quiesce(self): pass", "quiesce, which is a coroutine function: a call"),
        ("async def before_step(self, choices): pass", "before_step, which is a coroutine "),
        ("async def attach(self, world): pass", "attach, which is a coroutine function: a call"),
        ("async def make_host(self, boot): pass", "make_host, which is a coroutine function"),
        ("def check_recovered(self): yield", "check_recovered, which is a generator function: "),
        ("async def put(self, arguments): pass", "perform of action 'put', which is a coroutine "),
        (
            (
                "def actions(self):\n        async def ready(): pass\n"
                "        return [ActionKind('put', 1, self.put, ready=ready)]"
            ),
            "ready of action 'put', which is a coroutine function: a call",
        ),
    ],
)
def test_member_of_a_wrong_kind_is_a_mistake(module: str, member: str, sentence: str) -> None:
    Path(f"{module}.py").rename(f"{module}_base.py")
    source = MEMBERS.format(name=module, member=member)
    Path(f"{module}.py").write_text(source, encoding="ascii")
    result = powercut("run", f"{module}:Target", "--examples", "3", "-n", "1")
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert result.stderr.startswith(f"Error: {module}:Target has {sentence}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("member", "start"),
    [
        ("check_recovered", "check_recovered returned"),
        ("check_second_recovery", "check_second_recovery returned"),
        ("quiesce", "quiesce returned"),
    ],
)
@pytest.mark.parametrize(
    ("answer", "shown"), [("False", "False"), ("self.coroutine()", "<coroutine object ")]
)
def test_check_that_returns_its_verdict_is_a_mistake(
    module: str, member: str, start: str, answer: str, shown: str
) -> None:
    with Path(f"{module}.py").open("a", encoding="ascii") as file:
        file.write(
            f"class Answering(Counting):\n    async def coroutine(self): pass\n"
            f"    def {member}(self): return {answer}\n"
        )
    result = powercut("run", f"{module}:Answering", "--examples", "3", "-n", "1")
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert result.stderr.startswith(f"Error: {start} {shown}")
    assert result.stderr.endswith(
        ", which nothing reads; raise an exception if the disk is wrong, "
        "such as an AssertionError or a powercut.Violation, and return nothing\n"
    )


WHOLE_NUMBERS = """
class Whole:
    def __init__(self, value):
        self.value = value
    def __index__(self):
        return self.value

class Lost(Counting):
    def actions(self):
        return [ActionKind("put", Whole(2), self.put, self.choose)]

    def choose(self, choices):
        return {"numbers": (Whole(choices.integer("n", Whole(0), Whole(3))), True, 0.5)}

    def put(self, arguments):
        if arguments["numbers"] == [2, True, 0.5]:
            raise LostAck("gone")
        return super().put(arguments)
"""


def test_whole_numbers_of_another_type_are_weights_and_arguments(module: str) -> None:
    with Path(f"{module}.py").open("a", encoding="ascii") as file:
        file.write(WHOLE_NUMBERS)
    result = powercut("run", f"{module}:Lost", "--examples", "20", "-n", "1")
    assert (result.exit_code, result.stderr) == (ExitCode.VIOLATION, "")
    assert "put(numbers=[2, true, 0.5])" in result.stdout
    replays = [powercut("replay", str(kept)) for kept in Path(".powercut/failures").iterdir()]
    assert any("same failure at step 1, byte for byte" in replay.stdout for replay in replays)


def test_randomness_beside_the_choices_is_refused_before_a_step(module: str) -> None:
    with Path(f"{module}.py").open("a", encoding="ascii") as file:
        file.write(
            "import random\nclass Random(Counting):\n"
            "    def before_step(self, choices): self.steps += random.randrange(9)\n"
        )
    result = powercut("run", f"{module}:Random", "--examples", "3", "-n", "1")
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    start = "Error: random.randrange was called inside a simulated world, at "
    assert result.stderr.startswith(start)
    assert f"{module}.py:" in result.stderr
    assert result.stderr.endswith(
        "; use the process, the event loop, the clock or the ids of its Boot\n"
    )


def test_factory_that_returns_one_target_again_is_a_mistake(module: str) -> None:
    with Path(f"{module}.py").open("a", encoding="ascii") as file:
        file.write("only = Counting()\ndef target(): return only\n")
    result = powercut("run", f"{module}:target", "--examples", "3", "-n", "1")
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert result.stderr == (
        f"Error: {module}:target returns one target twice, and must make a new one for each run\n"
    )
    result = powercut("run", f"{module}:only")
    assert result.exit_code == ExitCode.USAGE
    assert result.stderr.endswith(
        "; name the class of the target, or a function that returns one\n"
    )


@pytest.mark.parametrize("processes", ["1", "2"])
def test_module_that_changes_the_directory_leaves_the_findings_here(
    module: str, processes: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    source = f"import os\nos.chdir({str(elsewhere)!r})\n{TARGET}\nclass Lost(Counting):\n"
    source += "    def put(self, arguments): raise LostAck('gone')\n"
    Path(f"{module}.py").write_text(source, encoding="ascii")
    here = Path.cwd()
    result = powercut("run", f"{module}:Lost", "--examples", "3", "-n", processes)
    assert result.exit_code == ExitCode.VIOLATION, result.output
    assert (here, list(elsewhere.iterdir())) == (Path.cwd(), [])
    assert (here / ".powercut").exists()


MORE = """
class Idle(Counting):
    def put(self, arguments): return str(self.process.listdir("/"))

class Chosen(Counting):
    def choose(self, choices): return {}
    def ready(self): return True
    def actions(self): return [ActionKind("put", 1, self.put, self.choose, self.ready)]

class Numbered(Counting):
    def put(self, arguments): raise LostAck(3)
"""


def test_target_that_never_changes_the_disk_is_a_mistake(module: str) -> None:
    Path(f"{module}.py").write_text(TARGET + MORE, encoding="ascii")
    result = powercut("run", f"{module}:Idle", "--examples", "9", "-n", "1")
    assert result.exit_code == ExitCode.USAGE, result.output
    assert f"Error: {module}:Idle never changed the simulated disk, so a crash" in result.stderr


@pytest.mark.parametrize(
    ("member", "sentence"),
    [
        ("def __init__(self, folder): pass", " takes (folder), and must take ()"),
        ("def recover(self): pass", " has recover, which takes (), and must take (host)"),
        ("def actions(self, x): pass", " has actions, which takes (x), and must take ()"),
        ("def attach(self): pass", " has attach, which takes (), and must take (world)"),
        ("def make_host(self): pass", " has make_host, which takes (), and must take (boot)"),
        (
            "def check_recovered(self, process): pass",
            " has check_recovered, which takes (process), and must take ()",
        ),
        ("def quiesce(self, x, /): pass", " has quiesce, which takes (x, /), and must take ()"),
        (
            "def before_step(self): pass",
            " has before_step, which takes (), and must take (choices)",
        ),
        (
            "def put(self, key: str, *, value) -> str: pass",
            " has perform of action 'put', which takes (key, *, value), and must take (arguments)",
        ),
        (
            "def choose(self): return {}",
            " has propose of action 'put', which takes (), and must take (choices)",
        ),
        (
            "def ready(self, *states, state): return True",
            " has ready of action 'put', which takes (*states, state), and must take ()",
        ),
    ],
)
def test_function_of_other_parameters_is_named_with_its_line(
    module: str, member: str, sentence: str
) -> None:
    source = f"{TARGET}{MORE}class Wrong(Chosen):\n    {member}\n"
    place = f"{module}.py:{source.count(chr(10))}, Wrong.{member[4 : member.index('(')]}"
    assert refusal(module, source) == f"Error: {module}:Wrong{sentence}; see {place}\n"


def test_violation_whose_statement_is_no_text_is_reported(module: str) -> None:
    Path(f"{module}.py").write_text(TARGET + MORE, encoding="ascii")
    result = powercut("run", f"{module}:Numbered", "--examples", "3", "-n", "1")
    assert (result.exit_code, result.stderr) == (ExitCode.VIOLATION, "")
    assert "FAILED  LostAck  on posix  fingerprint " in result.stdout


WITHOUT_FAULTS = """
from powercut import FaultFamily

class WithoutFaults(Counting):
    families_left_out = {family: "not of this system" for family in FaultFamily}

    def put(self, arguments):
        self.process.write(self.process.open("/f", 0o101), b"data")
        return "stored"

class WithOneRule(WithoutFaults):
    fault_rules = ["write * #{count} EIO"]
"""


def test_target_that_leaves_out_all_faults_gets_only_its_own_and_those_asked_for(
    module: str,
) -> None:
    with Path(f"{module}.py").open("a", encoding="ascii") as file:
        file.write(WITHOUT_FAULTS)
    run = ("--examples", "10", "-n", "1")
    result = powercut("run", f"{module}:WithoutFaults", *run)
    assert (result.exit_code, result.stderr) == (ExitCode.CLEAN, ""), result.output
    result = powercut("run", f"{module}:WithoutFaults", *run, "--faults", "write * #1 EIO")
    assert "FAILED  OSError" in result.stdout
    result = powercut("run", f"{module}:WithOneRule", *run)
    assert "FAILED  OSError" in result.stdout


def test_control_characters_of_a_mistake_do_not_reach_the_terminal() -> None:
    text = r"a \x1b[31mred\x07 bell and \u202e more"
    source = f"class Wrong:\n    def __init__(self):\n        raise ValueError('{text}')\n"
    assert text in refusal("colored", source)
    assert r"no\x1b[31mred" in powercut("run", "no\x1b[31mred").stderr
    assert mistake_of(EscapedSimulation("a \x07 bell")) == r"a \x07 bell"
