"""Messages as values: data there and back, errors about them, prompts, limits of payloads."""

from __future__ import annotations

import pytest

from system.agents.message import (
    MOST_PAYLOAD_BYTES,
    Message,
    MessageKind,
    check_payload,
    error_about,
    prompt_of,
    shown_message,
)
from system.errors import NotPlainJson, PayloadTooLarge
from system.ports import Json

HELLO = Message("m", "ada", "bob", MessageKind.TEXT, {"a": 1}, "then", "before", {"tone": "kind"})


def test_a_message_comes_back_from_its_data_with_every_member() -> None:
    assert HELLO.data() == {
        "message_id": "m",
        "sender": "ada",
        "recipient": "bob",
        "kind": "text",
        "payload": {"a": 1},
        "timestamp": "then",
        "reply_to": "before",
        "metadata": {"tone": "kind"},
    }
    assert Message.from_data(HELLO.data()) == HELLO


def test_a_message_that_answers_nothing_comes_back_so() -> None:
    alone = Message("m", "ada", "bob", MessageKind.POKE, None, "then")

    assert Message.from_data(alone.data()) == alone


def test_an_error_goes_back_to_the_sender_in_the_name_of_who_was_not_reached() -> None:
    assert error_about(HELLO, "gone", "now") == Message(
        "m.error",
        "bob",
        "ada",
        MessageKind.ERROR,
        {"reason": "gone", "message_id": "m"},
        "now",
        "m",
    )


def test_an_error_about_an_outcome_goes_to_user_and_names_the_activity() -> None:
    payload: Json = {"activity_id": "a", "action": "mail", "status": "DONE", "result": [1]}
    outcome = Message("a.result", "RUNTIME", "ada", MessageKind.ACTIVITY, payload, "then")

    assert error_about(outcome, "gone", "now") == Message(
        "a.result.error",
        "ada",
        "USER",
        MessageKind.ERROR,
        {
            "reason": "gone",
            "message_id": "a.result",
            "activity_id": "a",
            "action": "mail",
            "status": "DONE",
        },
        "now",
        "a.result",
    )


def test_a_prompt_is_canonical_json_and_names_the_senders() -> None:
    prompt, items = prompt_of([HELLO], {"ada": "Ada"})

    assert prompt == (
        '[{"kind":"text","message_id":"m","payload":{"a":1},"reply_to":"before",'
        '"sender":"ada","sender_name":"Ada"}]'
    )
    assert items == [shown_message(HELLO, {"ada": "Ada"})]


def test_a_sender_without_a_name_is_called_by_its_id() -> None:
    assert shown_message(HELLO, {})["sender_name"] == "ada"


def test_a_payload_of_just_the_limit_is_taken() -> None:
    check_payload("x" * (MOST_PAYLOAD_BYTES - 2))


def test_a_payload_over_the_limit_is_refused_with_both_sizes() -> None:
    with pytest.raises(PayloadTooLarge) as refused:
        check_payload("x" * (MOST_PAYLOAD_BYTES - 1))

    assert refused.value.size_bytes == 1_048_577
    assert str(refused.value) == (
        "a payload of size_bytes=1048577 is over the limit of 1048576;"
        " keep it in a file of its own, and send its name"
    )


def test_a_payload_that_is_not_plain_json_is_refused() -> None:
    with pytest.raises(NotPlainJson, match="not a finite number"):
        check_payload([float("nan")])
