"""The arguments of the calls of programs, for files that come from elsewhere."""

from __future__ import annotations

import re
from typing import Final

_PATH: Final = re.compile(r"(?!/)[\w./-]*")
_PATTERNS: Final = {
    "path": _PATH,
    "letter": re.compile(r"[A-Za-z]"),
    "flags": re.compile(r"[ctasd]*"),
}
_MOST_BYTES: Final = 1 << 20

_SIGNATURES: Final = {
    "creat": ("path",),
    "write": ("path", "bytes", "bytes", "letter"),
    "append": ("path", "bytes", "letter"),
    "otrunc": ("path", "bytes", "letter"),
    "trunc": ("path", "bytes"),
    "falloc": ("path", "bytes", "bytes"),
    "fsync": ("path",),
    "fdatasync": ("path",),
    "sync": (),
    "rename": ("path", "path"),
    "link": ("path", "path"),
    "unlink": ("path",),
    "symlink": ("path", "path"),
    "mkdir": ("path",),
    "rmdir": ("path",),
    "open": ("path", "path", "flags"),
    "hwrite": ("path", "bytes", "bytes", "letter"),
    "htrunc": ("path", "bytes"),
    "hfalloc": ("path", "bytes", "bytes"),
    "hfsync": ("path",),
    "hfdatasync": ("path",),
    "hclose": ("path",),
    "tmpfile": ("path", "path"),
    "hlink": ("path", "path"),
    "chmod": ("path", "bytes"),
    "utime": ("path", "bytes"),
}
"""Labels of descriptors are checked as paths are."""

_BACKGROUND: Final = {
    "commit": (),
    "logsync": (),
    "syncfs": (),
    "tick": (),
    "flush": ("path",),
    "part": ("path", "bytes", "bytes"),
}


def is_call(call: object) -> bool:
    """Whether ``call`` is a call of a program, with arguments of the right kind and number."""
    if not isinstance(call, list) or not call or not isinstance(call[0], str):
        return False
    name, *arguments = call
    table = _SIGNATURES
    if name == "bg":
        if not (arguments and isinstance(arguments[0], str)):
            return False
        table = _BACKGROUND
        name, *arguments = arguments
    signature = table.get(name)
    if signature is None or len(signature) != len(arguments):
        return False
    return all(map(_fits, signature, arguments))


def _fits(kind: str, argument: object) -> bool:
    if kind == "bytes":
        return isinstance(argument, int) and 0 <= argument <= _MOST_BYTES
    return isinstance(argument, str) and _PATTERNS[kind].fullmatch(argument) is not None
