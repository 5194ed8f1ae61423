"""Names of functions, audit events and callers that the sandbox refuses or lets pass."""

from __future__ import annotations

from typing import Final

CLOCKS: Final = (
    "clock_gettime", "clock_gettime_ns", "monotonic", "monotonic_ns", "perf_counter",
    "perf_counter_ns", "process_time", "process_time_ns", "sleep", "thread_time",
    "thread_time_ns", "time", "time_ns",
)  # fmt: skip
DISPLAYS: Final = ("ctime", "gmtime", "localtime")
SYSTEM: Final = ("access", "getrandom", "lstat", "stat", "urandom")
ENDS: Final = ("_exit",)
THREADS: Final = ("start_new_thread", "start_joinable_thread")
SECRETS: Final = ("choice", "randbelow", "randbits", "token_bytes", "token_hex", "token_urlsafe")

ROUTED: Final = frozenset({
    *(f"os.{name}" for name in SYSTEM), *(f"secrets.{name}" for name in SECRETS),
    "random.choice", "random.choices", "random.getrandbits", "random.randbytes",
    "random.randint", "random.random", "random.randrange", "random.sample", "random.shuffle",
    "random.uniform", "sqlite3.connect", "uuid.uuid4",
})  # fmt: skip

# The beginnings of calls that read a clock or a random number.
CHANCE: Final = (
    "datetime.", "os.getrandom", "os.urandom", "random.", "secrets.", "time.", "uuid.",
)  # fmt: skip

EVENTS: Final = frozenset({
    "open", "os.chdir", "os.chmod", "os.chown", "os.link", "os.listdir", "os.mkdir",
    "os.remove", "os.rename", "os.rmdir", "os.scandir", "os.symlink", "os.truncate", "os.utime",
    "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system",
    "subprocess.Popen", "sqlite3.connect", "time.sleep",
    "_thread.start_new_thread", "_thread.start_joinable_thread",
    "socket.__new__", "socket.bind", "socket.connect", "socket.getaddrinfo",
    "socket.gethostbyname", "socket.gethostname",
})  # fmt: skip

TOOLS: Final = frozenset({
    "_pytest", "coverage", "execnet", "hypothesis", "pluggy", "pytest", "pytest_cov",
    "pytest_timeout", "syrupy", "xdist",
})  # fmt: skip
WATCHERS: Final = frozenset({
    "_frozen_importlib", "_frozen_importlib_external", "bdb", "copy", "importlib", "linecache",
    "logging", "pdb", "traceback", "warnings", "zipimport",
})  # fmt: skip
