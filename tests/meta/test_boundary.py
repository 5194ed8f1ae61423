"""Only the real host of ``system`` uses the operating system; the rest uses the ports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.meta.boundary import escapes
from tests.meta.source_tree import name_of, python_files

# The real host implements the ports; the commands print to the standard streams, which are no port.
IMPLEMENTATIONS = {"system/host.py", "system/workers.py", "system/commands/guarded_output.py"}


@pytest.mark.parametrize("path", list(python_files("system")), ids=name_of)
def test_system_uses_the_operating_system_through_its_ports_only(path: Path) -> None:
    if name_of(path) not in IMPLEMENTATIONS:
        assert escapes(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("import os", "line 1: imports os; use the port FileSystem"),
        ("import os.path", "line 1: imports os.path; use the port FileSystem"),
        ("from os import replace", "line 1: imports os.replace; use the port FileSystem"),
        ("def f():\n    import io", "line 2: imports io; use the port FileSystem"),
        ("from pathlib import Path", "line 1: imports pathlib.Path; use the port FileSystem"),
        ("import time as t", "line 1: imports time; use the port Clock"),
        ("from random import random", "line 1: imports random.random; use the port Ids"),
        ("import uuid", "line 1: imports uuid; use the port Ids"),
        ("import secrets", "line 1: imports secrets; use the port Ids"),
        ("import socket", "line 1: imports socket; use the port Provider or Effects"),
        ("import subprocess", "line 1: imports subprocess; use the port Provider or Effects"),
        ("import sqlite3", "line 1: imports sqlite3; use the port Database"),
        ("from asyncio import sleep", "line 1: imports asyncio.sleep; use the port Clock"),
        ("import asyncio\nasyncio.sleep(1)", "line 2: uses asyncio.sleep; use the port Clock"),
        (
            "import asyncio as a\nnap = a.sleep",
            "line 2: uses asyncio.sleep; use the port Clock",
        ),
        (
            "from datetime import UTC, datetime\ndatetime.now(UTC)",
            "line 2: uses datetime.datetime.now; use the port Clock",
        ),
        (
            "import datetime\ndatetime.datetime.utcnow()",
            "line 2: uses datetime.datetime.utcnow; use the port Clock",
        ),
        (
            "import apsw\napsw.Connection('x')",
            "line 2: calls apsw.Connection(); use the port Database",
        ),
        (
            "from apsw import Connection\nConnection('x')",
            "line 2: calls apsw.Connection(); use the port Database",
        ),
        ("open('x')", "line 1: calls open(); use the port FileSystem"),
        (
            "async def f(loop):\n    loop.run_in_executor(None, print)",
            "line 2: uses run_in_executor; use the port tasks of the host's event loop",
        ),
    ],
)
def test_a_use_of_the_operating_system_is_reported_with_the_port_to_use(
    source: str, sentence: str
) -> None:
    assert escapes(source) == [sentence]


def test_a_thread_is_named_too() -> None:
    assert escapes("from threading import Thread\n") == [
        "line 1: imports threading.Thread; use the port tasks of the host's event loop"
    ]


@pytest.mark.parametrize(
    "source",
    [
        "from datetime import datetime, timedelta\ndatetime.fromisoformat('2020-01-01')",
        "from pathlib import PurePosixPath",
        "import asyncio\nasyncio.Lock()",
        "import apsw\nerror = apsw.BusyError",
        "from apsw import Connection\ndef f(database: Connection) -> None: ...",
        "def f(file_system):\n    return file_system.open('x')",
        "from system.files import open\nopen('x')",
        "import posixpath\nposixpath.join('a', 'b')",
        "import errno, json, zlib, hashlib",
    ],
)
def test_pure_functions_of_these_modules_are_allowed(source: str) -> None:
    assert escapes(source) == []
