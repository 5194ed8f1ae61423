"""A mistaken argument of ``explore`` is refused with one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oracles.history import History, Known
from powercut import image_of
from powercut.explorer.explore import explore, explore_models
from powercut.explorer.limits import Limits
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import MODELS
from sim.errors import HarnessError


def save(ack: History) -> None:
    Path("f").touch()
    ack({"f": b""})


def check(_known: Known) -> None:
    """Pass on any disk."""


@pytest.mark.parametrize(
    ("workload", "options", "sentence"),
    [
        (5, {}, "the workload 5 is not callable"),
        (None, {}, "the workload None is not callable"),
        (
            "settings:save",
            {},
            "the workload 'settings:save' is not callable; pass the function itself",
        ),
        (
            save,
            {"check": "ext4"},
            "the check 'ext4' is not callable; the model is the argument model=",
        ),
        (save, {"check": "kept"}, "the check 'kept' is not callable; pass the function itself"),
        (save, {"check": 0}, "the check 0 is not callable"),
        (save, {"limits": 5}, "limits is 5 and must be a value of powercut.Limits"),
        (
            save,
            {"image": "/tmp"},
            "image is '/tmp' and must be an Image, such as image_of(directory)",
        ),
        (save, {"root": 5}, "root is 5 and must be an absolute path such as /disk"),
    ],
)
def test_a_mistaken_argument_is_one_sentence(
    workload: Any, options: dict[str, Any], sentence: str
) -> None:
    for function in (explore, explore_models):
        with pytest.raises(HarnessError) as raised:
            function(workload, **options)
        assert str(raised.value) == sentence


@pytest.mark.parametrize("model", [None, 5])
def test_a_model_is_a_name_or_a_model(model: Any) -> None:
    with pytest.raises(HarnessError) as raised:
        explore(save, model=model)
    assert str(raised.value) == (
        f"model is {model} and must be a PersistenceModel or a name: {', '.join(MODELS)}"
    )


def test_a_fixture_that_is_given_a_model_as_its_check_says_so(powercut_explore: Any) -> None:
    with pytest.raises(HarnessError, match="the model is the argument model="):
        powercut_explore(save, "ext4")


def test_a_root_may_be_a_path(tmp_path: Path) -> None:
    (tmp_path / "old").touch()
    root = Path("/disk2")
    image = image_of(tmp_path, root)
    assert explore(save, check, root=root, image=image).safe
    assert "/disk2/old" in {path for path, _ in image.tree()}


def save_in_vain(process: Process, ack: History) -> None:
    process.mkdir("/d")
    ack(1)


def fail(_process: Process, known: Known) -> None:
    assert not known.acknowledged


def pass_always(_process: Process, _known: Known) -> None:
    """Pass on any disk."""


def recover_by_a_write(process: Process, _known: Known) -> None:
    """Fail if a crash of the check itself leaves its mark."""
    assert "mark" not in process.listdir("/")
    process.mkdir("/mark")
    process.rmdir("/mark")


@pytest.mark.parametrize("through", ["explore", "explore_models", "powercut_explore"])
def test_a_check_and_limits_that_are_left_out_are_those_of_the_workload(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, through: str
) -> None:
    def is_safe(*arguments: Any, **options: Any) -> bool:
        if through == "explore_models":
            found = explore_models(save_in_vain, *arguments, **options)
            return all(each.safe for each in found.values())
        function = explore if through == "explore" else request.getfixturevalue(through)
        return bool(function(save_in_vain, *arguments, **options).safe)

    monkeypatch.setattr(save_in_vain, "check", fail, raising=False)
    assert not is_safe()
    assert is_safe(pass_always)
    monkeypatch.setattr(save_in_vain, "check", recover_by_a_write)
    assert is_safe()
    monkeypatch.setattr(save_in_vain, "limits", Limits(nested=1), raising=False)
    assert not is_safe()
    assert is_safe(limits=Limits())


def test_none_is_the_check_of_the_workload_and_a_wrapped_workload_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrapped(ack: History) -> None:
        save(ack)

    monkeypatch.setattr(save, "check", check, raising=False)
    assert explore(save, None).safe
    assert not explore(wrapped).safe
    (model, *_) = explore_models(save, check=None).values()
    assert model.safe


@pytest.mark.parametrize(
    ("attribute", "sentence"),
    [
        ("check", "the check of save_in_vain is not callable: 3"),
        ("limits", "the limits of save_in_vain are 3, and no powercut.Limits"),
    ],
)
def test_a_mistaken_attribute_of_the_workload_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, attribute: str, sentence: str
) -> None:
    monkeypatch.setattr(save_in_vain, attribute, 3, raising=False)
    for function in (explore, explore_models):
        with pytest.raises(HarnessError) as raised:
            function(save_in_vain)
        assert str(raised.value) == sentence


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"states_per_point": -1}, "states_per_point is -1 and must be a whole number, at least 1"),
        ({"states_per_point": 0}, "states_per_point is 0 and must be a whole number, at least 1"),
        ({"samples": -1}, "samples is -1 and must be a whole number, at least 0"),
        ({"nested": "1"}, "nested is '1' and must be a whole number, at least 0"),
        ({"nested": True}, "nested is True and must be a whole number, at least 0"),
        ({"seed": 1.5}, "seed is 1.5 and must be a whole number"),
        ({"strict": "no"}, "strict is 'no' and must be True or False"),
    ],
)
def test_a_limit_is_a_number_in_its_range(limits: dict[str, Any], sentence: str) -> None:
    with pytest.raises(HarnessError) as raised:
        Limits(**limits)
    assert str(raised.value) == sentence
