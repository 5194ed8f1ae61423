"""The boundary of ``system``: uses of the operating system that should go through a port.

One function, ``escapes``, over the source of one file. It looks at names, so it is a fence for
honest code; the simulated world has a second one, at run time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

# Modules that use the operating system, and the port to use instead.
INSTEAD_OF_MODULE = {
    "os": "FileSystem",
    "io": "FileSystem",
    "pathlib": "FileSystem",
    "shutil": "FileSystem",
    "tempfile": "FileSystem",
    "fcntl": "FileSystem",
    "glob": "FileSystem",
    "mmap": "FileSystem",
    "time": "Clock",
    "sched": "Clock",
    "random": "Ids",
    "uuid": "Ids",
    "secrets": "Ids",
    "socket": "Provider or Effects",
    "ssl": "Provider or Effects",
    "http": "Provider or Effects",
    "urllib": "Provider or Effects",
    "smtplib": "Effects",
    "subprocess": "Provider or Effects",
    "multiprocessing": "tasks of the host's event loop",
    "threading": "tasks of the host's event loop",
    "concurrent": "tasks of the host's event loop",
    "signal": "Host",
    "sqlite3": "Database",
}

# Modules of which only some names use the operating system.
INSTEAD_OF_NAME = {
    "asyncio.create_subprocess_exec": "Provider or Effects",
    "asyncio.create_subprocess_shell": "Provider or Effects",
    "asyncio.open_connection": "Provider or Effects",
    "asyncio.open_unix_connection": "Provider or Effects",
    "asyncio.run": "Host",
    "asyncio.sleep": "Clock",
    "asyncio.timeout": "Clock",
    "asyncio.to_thread": "tasks of the host's event loop",
    "asyncio.wait_for": "Clock",
    "datetime.date.today": "Clock",
    "datetime.datetime.now": "Clock",
    "datetime.datetime.today": "Clock",
    "datetime.datetime.utcnow": "Clock",
}

# Names that are also types: only a call uses the operating system.
INSTEAD_OF_CALL = {"apsw.Connection": "Database"}

# Names that touch no file, make no id and start no thread.
PURE = {
    "pathlib.PurePath",
    "pathlib.PurePosixPath",
    "os.path.join",
    "threading.Lock",
    "uuid.UUID",
}

INSTEAD_OF_BUILTIN = {"open": "FileSystem", "input": "Host", "__import__": "a plain import"}


def escapes(source: str) -> list[str]:
    """Describe each place in ``source`` that uses the operating system directly."""
    tree = ast.parse(source)
    names = _imported_names(tree)
    found = sorted(set(_import_escapes(tree)) | set(_use_escapes(tree, names)))
    return [f"line {line}: {what}; use the port {port}" for line, what, port in found]


def _imported_names(tree: ast.Module) -> dict[str, str]:
    """The full dotted name of each imported name: ``{"now": "datetime.datetime"}``."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _import_escapes(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in imported:
            port = INSTEAD_OF_MODULE.get(name.split(".")[0]) or INSTEAD_OF_NAME.get(name)
            if port and name not in PURE:
                yield node.lineno, f"imports {name}", port


def _use_escapes(tree: ast.Module, names: dict[str, str]) -> Iterator[tuple[int, str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = _dotted(node, names)
            if name in INSTEAD_OF_NAME:
                yield node.lineno, f"uses {name}", INSTEAD_OF_NAME[name]
            elif node.attr == "run_in_executor":
                yield node.lineno, "uses run_in_executor", "tasks of the host's event loop"
        elif isinstance(node, ast.Call):
            called = _dotted(node.func, names)
            if called in INSTEAD_OF_CALL:
                yield node.lineno, f"calls {called}()", INSTEAD_OF_CALL[called]
            elif not called and isinstance(node.func, ast.Name):
                builtin = node.func.id
                if builtin in INSTEAD_OF_BUILTIN:
                    yield node.lineno, f"calls {builtin}()", INSTEAD_OF_BUILTIN[builtin]


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    """The full dotted name behind an attribute, or an empty string if it is no plain name."""
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value, names)
        return f"{owner}.{node.attr}" if owner else ""
    return ""
