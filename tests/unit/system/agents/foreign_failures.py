"""Exceptions that no line can hold, or that are no ``Exception``."""

from __future__ import annotations

from system.ports import ProviderError


class Panic(BaseException):
    """As the panic of a library in Rust, it is no ``Exception``."""


class Unprintable(Exception):
    """Has no text at all."""

    def __str__(self) -> str:
        raise KeyError("text")

    __repr__ = __str__


class UnprintableAnswer(ProviderError):
    """Is one that the runtime knows, and has no text either."""

    __str__ = __repr__ = Unprintable.__str__


FAILURES = {
    "panic": Panic("index out of bounds"),
    "panics": BaseExceptionGroup("two", [Panic(), Panic()]),
    "no text": Unprintable(),
    "no text, but known": UnprintableAnswer(),
    "surrogate": ProviderError("no file \udcff"),
    "larger than a line": ProviderError("x" * (17 << 20)),
    "larger than a line, and unknown": ValueError("x" * (17 << 20)),
}
