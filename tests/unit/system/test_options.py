"""Options and actions with which a runtime could do nothing, or harm, are refused at once."""

from __future__ import annotations

from typing import Any

import pytest

from system.agents.turn_recorder import RecordingOptions
from system.collector import CollectionOptions
from system.ports import Action, SideEffectClass
from system.runtime import Options


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"slots": 0}, "slots is 0; give an int of at least 1"),
        ({"slots": True}, "slots is True; give an int of at least 1"),
        ({"turn_timeout_ns": 0}, "turn_timeout_ns is 0; give an int of at least 1"),
        ({"provider_timeout_ns": -1}, "provider_timeout_ns is -1; give an int of at least 1"),
        ({"most_attempts": "3"}, "most_attempts is '3'; give an int of at least 1"),
        ({"snapshot_lines": -1}, "snapshot_lines is -1; give an int of at least 0"),
        ({"recording": False}, r"recording is False; give RecordingOptions\(...\), or None"),
        ({"collection": True}, r"collection is True; give CollectionOptions\(...\), or None"),
        ({"framing": "pending"}, r"framing is 'pending'; give Framing\.FRAMED or Framing\.PENDING"),
        ({"framing": None}, r"framing is None; give Framing\.FRAMED or Framing\.PENDING"),
        ({"resume": "none"}, r"'none'; give Resume\.ALL or Resume\.ROOTS or Resume\.NONE"),
        ({"router": 3}, "router is 3; give an object with the method route, or None"),
    ],
)
def test_an_option_of_the_runtime_is_checked(options: dict[str, Any], refused: str) -> None:
    with pytest.raises(ValueError, match=refused):
        Options(**options)


@pytest.mark.parametrize("options", [{"after_ns": -1}, {"archive_ns": -1}, {"after_ns": None}])
def test_an_option_of_the_collection_is_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(options))} is .*; give an int of at least 0"):
        CollectionOptions(**options)


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan"), "1", True])
def test_a_sample_rate_is_a_part_of_all_executions(rate: Any) -> None:
    with pytest.raises(ValueError, match=r"sample_rate is .*; give a number from 0\.0 to 1\.0"):
        RecordingOptions(sample_rate=rate)


def test_a_durability_is_one_of_two() -> None:
    durability: Any = "events"
    with pytest.raises(ValueError, match=r"give Durability\.ATTEMPTS or Durability\.EVENTS"):
        RecordingOptions(durability)


@pytest.mark.parametrize(
    ("members", "refused"),
    [
        ({"name": None}, "name is None; give a str"),
        (
            {"side_effect": "IRREVERSIBLE"},
            r"side_effect is 'IRREVERSIBLE'; give SideEffectClass\.READ_ONLY or .*",
        ),
        ({"side_effect": None}, "side_effect is None; give .*"),
        ({"provider_dedup": 1}, "provider_dedup is 1; give a bool"),
        ({"timeout_ns": None}, "timeout_ns is None; give an int of at least 1"),
        ({"timeout_ns": 0}, "timeout_ns is 0; give an int of at least 1"),
        ({"timeout_ns": 1.5}, r"timeout_ns is 1\.5; give an int of at least 1"),
    ],
)
def test_an_action_is_checked(members: dict[str, Any], refused: str) -> None:
    known: dict[str, Any] = {
        "name": "pay", "side_effect": SideEffectClass.IRREVERSIBLE, "provider_dedup": False,
        "timeout_ns": 1,
    }  # fmt: skip
    Action(**known)
    with pytest.raises(ValueError, match=f"^{refused}$"):
        Action(**known | members)


def test_the_least_options_are_taken() -> None:
    Options(slots=1, turn_timeout_ns=1, provider_timeout_ns=1, most_attempts=1, snapshot_lines=0)
    CollectionOptions(after_ns=0, archive_ns=0)
    for rate in (0.0, 1.0, 0, 1):
        RecordingOptions(sample_rate=rate)
