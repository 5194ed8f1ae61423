"""The pytest plugin: a simulated disk and ``explore`` as fixtures, findings in the report.

The plugin is loaded into every pytest run of every environment that has powercut installed.
It imports nothing but pytest until a collected test uses one of its fixtures or its marker, or
a test fails that has an exploration among its variables.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping
    from types import TracebackType

    from powercut.explorer.verdicts import Exploration
    from sim.disk.calls.process import Process
    from sim.disk.crash.persistence import PersistenceModel

FIXTURES = frozenset(("powercut_disk", "powercut_explore", "powercut_model"))
MARKER = "powercut_models"
VERDICTS = "powercut.explorer.verdicts"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--powercut-model``."""
    parser.getgroup("powercut", "powercut: crash consistency").addoption(
        "--powercut-model",
        metavar="MODEL",
        help="persistence model of the fixtures of powercut "
        "(default: model of [tool.powercut], else posix)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; refuse an unknown ``--powercut-model`` before any test is collected."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(*names): run the test under each of these persistence models, or under all; "
        "it must use a fixture of powercut. --powercut-model replaces them.",
    )
    if config.getoption("--powercut-model") is not None:
        _model(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a malformed ``[tool.powercut]`` before any test runs, if a test depends on it."""
    if any(not FIXTURES.isdisjoint(getattr(item, "fixturenames", ())) for item in items):
        _model(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the marker once under each of its models."""
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None or marker.kwargs or "powercut_model" not in metafunc.fixturenames:
        return
    from sim.disk.crash.persistence import MODELS

    chosen = metafunc.config.getoption("--powercut-model")
    models = (chosen,) if chosen else marker.args or tuple(MODELS)
    metafunc.parametrize("powercut_model", models, indirect=True)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test with the marker whose models would not be used."""
    marker = item.get_closest_marker(MARKER)
    if marker is None:
        return
    if marker.kwargs:
        given = ", ".join(f"{name}={value!r}" for name, value in marker.kwargs.items())
        pytest.fail(f"@pytest.mark.{MARKER} takes only names of models: {given}", pytrace=False)
    if "powercut_model" not in getattr(item, "fixturenames", ()):
        names = ", ".join(sorted(FIXTURES))
        pytest.fail(f"@pytest.mark.{MARKER} needs a fixture: {names}", pytrace=False)
    if not hasattr(item, "callspec"):
        pytest.fail(
            f"@pytest.mark.{MARKER} has no effect on a method of unittest.TestCase, because pytest "
            "does not repeat it; write a function, or pass model= to powercut_explore",
            pytrace=False,
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the findings of the explorations among the variables of a failed test.

    A mistake in the use of powercut is shown at the call of the test, without the engine's code
    (``--full-trace`` shows it).
    """
    if call.excinfo is not None and VERDICTS in sys.modules and not item.config.option.fulltrace:
        _hide_engine(call.excinfo)
    report = yield
    if report.failed and call.excinfo is not None and VERDICTS in sys.modules:
        for explorations in _unsafe(call.excinfo):
            report.sections.append(("powercut", _story(explorations)))
    return report


@pytest.fixture
def powercut_model(request: pytest.FixtureRequest) -> PersistenceModel:
    """The persistence model of the fixtures of powercut."""
    from powercut.explorer.arguments import as_model
    from sim.errors import HarnessError

    model: object = getattr(request, "param", None)
    if model is None:
        return _model(request.config)
    try:
        return as_model(model)
    except HarnessError as mistake:
        sentence = f"@pytest.mark.{MARKER}: {mistake}"
    # Within the ``except``, the report would show the mistake twice.
    pytest.fail(sentence, pytrace=False)


@pytest.fixture
def powercut_disk(powercut_model: PersistenceModel) -> Process:
    """A process, with the calls of ``os``, on an empty simulated disk; see ``process.disk``."""
    from sim.disk.calls.process import Process
    from sim.disk.disk import Disk

    return Process(Disk(model=powercut_model))


@pytest.fixture
def powercut_explore(powercut_model: PersistenceModel) -> Callable[..., Exploration]:
    """``powercut.explore`` under the model of the test.

    As there, a check and limits that are left out are the attributes of the workload.
    """
    from powercut.explorer.explore import explore

    def powercut_explore(*arguments: Any, **options: Any) -> Exploration:
        return explore(*arguments, **{"model": powercut_model, **options})

    return powercut_explore


def _hide_engine(failed: pytest.ExceptionInfo[BaseException]) -> None:
    """End the traceback of a ``HarnessError`` at its last frame outside of the engine."""
    from sim import errors

    if not failed.errisinstance(errors.HarnessError):
        return
    homes = [Path(file).parent for file in (__file__, str(errors.__file__))]
    entry: TracebackType | None = failed.tb
    last = entry
    while entry is not None:
        path = Path(entry.tb_frame.f_code.co_filename)
        if not any(path.is_relative_to(home) for home in homes):
            last = entry
        entry = entry.tb_next
    assert last is not None
    last.tb_next = None


def _unsafe(failed: pytest.ExceptionInfo[BaseException]) -> Iterator[Mapping[str, Exploration]]:
    """Yield the explorations that the frames of a failed test hold, each once, by their models.

    ``assert explore(save).safe`` holds one: pytest keeps the parts of a failed assertion as
    local variables.
    """
    from powercut.explorer.verdicts import Exploration

    known: set[int] = set()
    for entry in failed.traceback:
        for value in entry.locals.values():
            found = value if isinstance(value, dict) else {"": value}
            if id(value) in known or not found:
                continue
            if all(isinstance(each, Exploration) for each in found.values()):
                known |= {id(value), *map(id, found.values())}
                if not all(each.safe for each in found.values()):
                    yield {each.model.name: each for each in found.values()}


def _story(explorations: Mapping[str, Exploration]) -> str:
    from powercut.explorer.diagnosis import diagnosed
    from powercut.report.findings import report_lines

    verdicts = [str(each) for each in explorations.values()]
    diagnosis, error = diagnosed(explorations)
    lines = [*verdicts, "", *report_lines(diagnosis)]
    if error is not None:
        lines.append(f"the search for missing fsyncs ended with {error!r}")
    return "\n".join(lines)


def _model(config: pytest.Config) -> PersistenceModel:
    """Return the model of ``--powercut-model``, else that of the rootdir's ``[tool.powercut]``."""
    from powercut.config import FILE, Config, read_config
    from sim.disk.crash.persistence import model_named
    from sim.errors import HarnessError

    chosen = config.getoption("--powercut-model")
    file = config.rootpath / FILE
    try:
        settings = read_config(file) if file.is_file() else Config()
    except HarnessError as mistake:
        raise pytest.UsageError(str(mistake)) from None
    try:
        return model_named(chosen or settings.model or "posix")
    except HarnessError as mistake:
        message = f"--powercut-model: {mistake}"
        raise pytest.UsageError(message) from None
