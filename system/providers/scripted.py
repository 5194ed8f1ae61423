"""A provider without a model: its agents carry out the scripts in their messages.

A message whose payload is ``{"do": [[tool, {arguments}], ...], "say": text}`` is a *script*:
its calls are made in their order, and the answer holds the text and the results of the calls.
Any other message is answered with a line that names it. Entries that are not calls are skipped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from json import JSONDecodeError, JSONDecoder

from system.ports import Json, JsonObject, Opening, Tools
from system.storage.codec import canonical


def run_scripts(prompt: str, tools: Tools) -> str:
    """Perform the scripts in a prompt; return the answer, a text without surrogates.

    The id of a call is its position: number of the message and of the call, from 0.
    """
    lines: list[str] = []
    for number, message in enumerate(_messages(prompt)):
        payload = message.get("payload")
        if not isinstance(payload, dict) or "do" not in payload:
            lines.append(f"read {message.get('message_id')}")
            continue
        for position, name, arguments in _calls(payload["do"]):
            result = tools.call(f"{number}.{position}", name, arguments)
            lines.append(f"{name} {canonical(result).decode('ascii')}")
        if isinstance(say := payload.get("say"), str):
            lines.append(say)
    return "\n".join(lines).encode("utf-8", "replace").decode("utf-8")


def _messages(prompt: str) -> list[JsonObject]:
    try:
        messages: Json = JSONDecoder().decode(prompt)
    except (JSONDecodeError, RecursionError):
        return []
    if not isinstance(messages, list):
        return []
    return [message for message in messages if isinstance(message, dict)]


def _calls(do: Json) -> Iterator[tuple[int, str, JsonObject]]:
    for position, call in enumerate(do if isinstance(do, list) else ()):
        match call:
            case [str(name), dict(arguments)]:
                yield position, name, arguments
            case _:
                continue


class ScriptedConversation:
    """Implements ``system.ports.Conversation``, without a memory."""

    def identity(self) -> str:
        """Return the empty text."""
        return ""

    async def send(self, prompt: str, key: str, tools: Tools) -> AsyncIterator[str]:
        """Yield the answer in one piece; a script gives the same answer in every turn."""
        del key
        yield run_scripts(prompt, tools)

    async def suspend(self) -> bytes:
        """Return nothing."""
        return b""

    async def stop(self) -> None:
        """Do nothing."""


class ScriptedProvider:
    """Implements ``system.ports.Provider``."""

    async def create(self, opening: Opening) -> ScriptedConversation:
        """Open a conversation; a script needs no history."""
        del opening
        return ScriptedConversation()

    async def restore(self, opening: Opening, identity: str, blob: bytes) -> ScriptedConversation:
        """Open a conversation."""
        del opening, identity, blob
        return ScriptedConversation()

    async def identities(self) -> Sequence[str]:
        """Return nothing: no conversation is kept anywhere."""
        return ()
