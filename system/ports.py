"""The ports: all of the runtime's access to the operating system and to services.

``system.host`` implements them for a real machine, the crash tests for the simulated one; no other
module of ``system`` uses the operating system, but the commands print. Calls of the file system
are synchronous, and raise the ``OSError`` of Linux; ``Workers`` runs them in threads beside the
event loop.

Paths are plain ``str`` with ``/`` between the names. They start at the root of the host's data,
and ``""`` is that root.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import tzinfo
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from system.option_check import check_least, check_member, check_type

if TYPE_CHECKING:
    from apsw import Connection

T = TypeVar("T")

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = dict[str, Json]


class OpenMode(StrEnum):
    """The use of an opened file; every file may be read as well."""

    READ = "read"
    """The file exists and is not changed (``O_RDONLY``)."""
    WRITE = "write"
    """The file exists; ``pwrite`` and ``truncate`` change it (``O_RDWR``). The page cache drops
    what it has of the file, but for data that is still to be written."""
    CREATE = "create"
    """The file must not exist (``O_RDWR | O_CREAT | O_EXCL``)."""
    APPEND = "append"
    """The file exists; ``append`` writes at its end (``O_RDWR | O_APPEND``)."""


class FileKind(Enum):
    """The kind of file at a path, symbolic links followed."""

    FILE = "file"
    DIRECTORY = "directory"
    OTHER = "other"


class File(Protocol):
    """One open file. A write may be short, as in POSIX: it returns the number of bytes taken."""

    def pread(self, size_bytes: int, offset: int) -> bytes:
        """Return up to ``size_bytes`` from ``offset`` (bytes); fewer need not mean the end."""
        ...

    def pwrite(self, data: bytes, offset: int) -> int:
        """Write at ``offset`` (bytes); only on a file opened to WRITE or CREATE.

        Linux ignores the offset on a file opened to APPEND.
        """
        ...

    def append(self, data: bytes) -> int:
        """Write at the end of a file opened to APPEND."""
        ...

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to ``size_bytes``, or extend it to that size with zeros."""
        ...

    def size(self) -> int:
        """Return the size in bytes."""
        ...

    def fsync(self) -> None:
        """Make content and size durable; under POSIX not the name (``sync_dir`` does)."""
        ...

    def fdatasync(self) -> None:
        """Make content and size durable, and no other attribute."""
        ...

    def lock(self) -> None:
        """Take the exclusive ``flock``; ``BlockingIOError`` when another process holds it.

        It is released when the file is closed or the process ends.
        """
        ...

    def close(self) -> None:
        """Close the descriptor; it is closed even if this raises."""
        ...


class FileSystem(Protocol):
    """The smallest set of POSIX calls that the runtime needs."""

    def open(self, path: str, mode: OpenMode) -> File:
        """Open a regular file; ``FileNotFoundError`` or ``FileExistsError`` as the mode says."""
        ...

    def read(self, path: str) -> tuple[bytes, int]:
        """Return the bytes of one read from the start of a regular file, and its size in bytes.

        If the read returned fewer bytes than the size, there may be more. Raises as ``open``
        and as ``pread``.
        """
        ...

    def replace(self, source: str, target: str) -> None:
        """Rename ``source`` over ``target``, atomically; durable after ``sync_dir``."""
        ...

    def symlink(self, target: str, path: str) -> None:
        """Make a symbolic link to ``target``, which is relative to the directory of ``path``."""
        ...

    def readlink(self, path: str) -> str:
        """Return the target of a symbolic link; ``OSError`` (EINVAL) for any other file."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a name; durable after ``sync_dir``."""
        ...

    def mkdir(self, path: str) -> None:
        """Make one directory; durable after ``sync_dir`` of its parent."""
        ...

    def rmdir(self, path: str) -> None:
        """Remove an empty directory; durable after ``sync_dir`` of its parent."""
        ...

    def listdir(self, path: str) -> list[str]:
        """Return the names in a directory, sorted, without ``.`` and ``..``."""
        ...

    def kind(self, path: str) -> FileKind | None:
        """Return the kind of the file at ``path``, or None if there is none.

        A link that leads to no file is of the kind ``OTHER``.
        """
        ...

    def sync_dir(self, path: str) -> None:
        """Make the entries of a directory durable (``fsync`` on its descriptor)."""
        ...


class Clock(Protocol):
    """Three kinds of time; order comes from ``sequence`` alone, never from a wall clock."""

    def wall_ns(self) -> int:
        """Return nanoseconds since 1970 in UTC; for display, may step back."""
        ...

    def monotonic_ns(self) -> int:
        """Return nanoseconds since an arbitrary moment; for timers, never steps back."""
        ...

    async def sleep(self, delay_ns: int) -> None:
        """Return after ``delay_ns`` nanoseconds of ``monotonic_ns``; 0 lets others run first."""
        ...

    def timeout(self, delay_ns: int) -> AbstractAsyncContextManager[object]:
        """Cancel what runs inside after ``delay_ns``; then ``TimeoutError`` comes out."""
        ...


class Ids(Protocol):
    """Fresh ids."""

    def uuid_hex(self) -> str:
        """Return a fresh id of 128 bits as 32 lower-case hex digits."""
        ...

    def random_hex(self, digits: int) -> str:
        """Return ``digits`` random lower-case hex digits."""
        ...


class Zones(Protocol):
    """The rules of local time."""

    def zone(self, name: str) -> tzinfo:
        """Return the time zone of an IANA name, such as ``Europe/Berlin``; else ``KeyError``."""
        ...


class Database(Protocol):
    """SQLite on this host's file system."""

    def open(self, path: str) -> Connection:
        """Open or create a database, with ``DATABASE_PRAGMAS`` run in their order."""
        ...


class Workers(Protocol):
    """Runs calls that block beside the event loop, so that barriers of several logs overlap."""

    async def run(self, call: Callable[[], T]) -> T:
        """Return the result of ``call()``, or raise its exception.

        A call that was started always runs to its end. If the caller is cancelled meanwhile, the
        cancellation is raised after the call, so no call is running when the caller cleans up.
        """
        ...


class ProviderError(Exception):
    """The provider gave no usable answer; the turn has no effect, and may be repeated.

    Cause: the provider timed out, ended its answer early, or gave an invalid one.
    Cure: none is needed; the turn runs again, and after several failures its messages
    become dead letters and their senders are informed.
    """


class ConversationLost(ProviderError):
    """The provider no longer has this conversation.

    Cause: it expired, or was removed. Cure: none is needed; a new one is created from the log.
    """


class Exchange(NamedTuple):
    """One completed turn: prompt and response, as a conversation contains it."""

    prompt: str
    response: str


@dataclass(frozen=True, slots=True)
class Opening:
    """The data from which a conversation is created or restored.

    ``key`` is the session's id: for a second ``create`` with one key a provider may return the
    same conversation. ``history`` are the completed turns in order, from the log; if a
    conversation is restored by its name or its blob, only those since the last snapshot of the
    log.
    """

    key: str
    model: str
    instructions: str
    history: tuple[Exchange, ...] = ()


class Tools(Protocol):
    """The tools that the model may call during a turn; ``call`` returns at once."""

    def call(self, call_id: str, name: str, arguments: JsonObject) -> JsonObject:
        """Return the result of one call; a repeated ``call_id`` gets the same result again.

        An error is returned in the result (``{"error": ...}``), never raised.
        """
        ...

    async def perform(self, call_id: str, arguments: JsonObject) -> JsonObject:
        """Return the result of the tool ``perform``, as ``call`` does.

        A READ_ONLY or REVERSIBLE action is performed at once, and again if the turn is
        repeated; the result has its ``provider_ref`` and ``result``.
        """
        ...


class Conversation(Protocol):
    """One dialogue held open with a provider."""

    def identity(self) -> str:
        """Return the provider's own name for it, empty if it has none; it never changes."""
        ...

    def send(self, prompt: str, key: str, tools: Tools) -> AsyncIterator[str]:
        """Yield the answer in pieces; ``key`` is the turn's id.

        Raises ``ProviderError``.
        """
        ...

    async def suspend(self) -> bytes:
        """Return a blob that makes ``restore`` faster; it may be empty."""
        ...

    async def stop(self) -> None:
        """Close the connection; the provider may keep the conversation."""
        ...


class Provider(Protocol):
    """Runs the model. All methods may raise ``ProviderError``."""

    async def create(self, opening: Opening) -> Conversation:
        """Open a new conversation; it receives ``opening.history`` if the service allows that."""
        ...

    async def restore(self, opening: Opening, identity: str, blob: bytes) -> Conversation:
        """Restore a conversation; raises ``ConversationLost`` if it is not known.

        ``blob`` is empty, or was returned by ``suspend`` after exactly the completed turns.
        """
        ...

    async def identities(self) -> Sequence[str]:
        """Return the sorted names of the conversations that the provider keeps for this runtime."""
        ...


class SideEffectClass(StrEnum):
    """The harm that a repetition of an execution may do (docs/recording.md, Events)."""

    READ_ONLY = "READ_ONLY"
    REVERSIBLE = "REVERSIBLE"
    IRREVERSIBLE = "IRREVERSIBLE"


class EffectRefused(Exception):
    """The provider of an action has certainly not performed it, and will not.

    Cause: it has refused the request. Cure: none is needed; the activity is FAILED.
    """


@dataclass(frozen=True, slots=True)
class Action:
    """An action that can be performed in the outside world.

    ``provider_dedup``: its provider performs a repeated key only once, for at least a day.
    ``timeout_ns`` limits one attempt.
    """

    name: str
    side_effect: SideEffectClass
    provider_dedup: bool
    timeout_ns: int

    def __post_init__(self) -> None:
        """Raise ``ValueError`` for a value of a wrong type, or a timeout below 1."""
        check_type(str, name=self.name)
        check_member(SideEffectClass, side_effect=self.side_effect)
        check_type(bool, provider_dedup=self.provider_dedup)
        check_least(1, timeout_ns=self.timeout_ns)


class Performed(NamedTuple):
    """The outcome of an action: the provider's own name for it, and its result."""

    provider_ref: str | None
    result: Json


class Effects(Protocol):
    """Performs actions in the outside world."""

    def actions(self) -> Sequence[Action]:
        """Return the known actions, each name once."""
        ...

    async def perform(self, action: str, key: str, arguments: JsonObject) -> Performed:
        """Perform an action, and pass its idempotency key to the provider.

        Raises ``EffectRefused`` only if it was certainly not performed. After any other
        exception, a timeout or a cancellation, it may have been performed.
        """
        ...


class NoEffects:
    """Implements ``Effects`` without any action."""

    def actions(self) -> Sequence[Action]:
        """Return nothing."""
        return ()

    async def perform(self, action: str, key: str, arguments: JsonObject) -> Performed:
        """Refuse; raises ``EffectRefused``."""
        del key, arguments
        raise EffectRefused(f"there is no action {action!r}")


NO_EFFECTS: Final = NoEffects()


@dataclass(frozen=True, slots=True)
class Host:
    """One of each port, valid for one boot; ``effects`` has no actions by default."""

    files: FileSystem
    clock: Clock
    ids: Ids
    database: Database
    workers: Workers
    zones: Zones
    effects: Effects = NO_EFFECTS
