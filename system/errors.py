"""The errors of durable data, beyond a plain ``OSError``.

Each docstring is the user's help: the cause, then the cure. Each message names the file, the
reason and the remedy. An ``OSError`` that has no class here is raised unchanged.
"""

from __future__ import annotations

import errno
from types import TracebackType
from typing import ClassVar

from system.foreign import shown


class NotPlainJson(ValueError):
    """A value for a log or a record is not plain JSON data.

    Cause: a type other than str, int, finite float, bool, None, list and dict with str keys; a
    lone surrogate in a string; nesting that is too deep. ``place`` is its position.
    Cure: convert it before it is logged (a UUID to hex, a time to ISO 8601, bytes to base64).
    """

    def __init__(self, place: str, reason: str) -> None:
        cure = "convert it to plain JSON first, or keep it in a file and pass the name of the file"
        super().__init__(f"{place}: {reason}; {cure}")
        self.place = place
        self.reason = reason


class BadSeal(ValueError):
    """Bytes are not one sealed JSON object; the message is the reason.

    Cause: a crash has cut or torn them, or the disk has changed them.
    Cure: none is needed; recovery reports them with path and offset.
    """


class StorageError(Exception):
    """An error of the durable data at ``path``; the message ends with ``cure``."""

    cure: ClassVar[str]

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}; {self.cure}")
        self.path = path
        self.reason = reason


class StorageFull(StorageError):
    """The disk has no room for the data; nothing of it was written.

    Cause: the disk or the quota is full.
    Cure: make room and repeat the call; everything acknowledged before is intact.
    """

    cure = "make room and repeat the call"


def raise_if_full(path: str, error: BaseException) -> None:
    """Raise ``StorageFull`` about ``path`` if ``error`` means a full disk or quota."""
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
        raise StorageFull(path, f"no space left ({error.strerror})") from error


class RaisingStorageFull:
    """Applies ``raise_if_full`` to an exception that leaves the block.

    A class, because a generator as a context manager takes four times as long.
    """

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            raise_if_full(self._path, error)


class LineTooLarge(StorageError):
    """One line is larger than the limit of a log.

    Cause: an event whose data has more bytes than the limit in the message.
    Cure: keep the large value in a file of its own, and log the name of the file.
    """

    cure = "keep the large value in a file of its own, and log the name of the file"


class LogStopped(StorageError):
    """The log has stopped; it is unknown whether the last line is durable.

    Cause: a barrier failed, or a partial line could not be removed. The kernel may have
    dropped the pages that it could not write, so a repeated sync would prove nothing.
    Cure: repair the disk, close the log and open it again; recovery reports its content.
    """

    cure = "repair the disk, close the log and open it again"


class LogDamaged(StorageError):
    """A line that was valid when the log was opened has changed.

    Cause: the disk or another program changed the file while it was in use.
    Cure: close the log and open it again; recovery quarantines the bad bytes and reports them.
    """

    cure = "close the log and open it again; recovery puts the bad bytes aside"


class LogMissing(StorageError):
    """A log is not there, and may not be made anew; a boot fails with it if it is that of USER.

    Cause: its file was removed, or a backup lacks it; no crash does that.
    Cure: restore it from a backup, or give up the messages to the operator with an empty file.
    """

    cure = "restore it from a backup, or give its messages up with an empty file"


class SessionRecordDamaged(StorageError):
    """A session record differs from the one that was written.

    Cause: the disk or another program changed ``session.json``.
    Cure: recovery quarantines and reports it; the session's log still has its history.
    """

    cure = "recovery puts it aside; the session's log still has its history"


class NewerFormat(StorageError):
    """The file was written by a later version of this program; it was not changed.

    Cause: an older version was started on the data of a newer one.
    Cure: start the newer version.
    """

    cure = "start the newer version that has written it"


class SessionNotFound(StorageError):
    """There is no record of this session.

    Cause: a wrong id, or a session whose creation a crash prevented.
    Cure: take the ids from ``view()``.
    """

    cure = "take the ids from view()"


class IllegalTransition(StorageError):
    """A session cannot change from its state to the requested one.

    Cause: two owners of one session, or a session that was terminated before.
    Cure: load the record again and start from its state.
    """

    cure = "load the record again and start from its state"


class RuntimeRefused(Exception):
    """The runtime refuses a call; nothing was changed. The base of the errors below."""


class NotARoot(RuntimeRefused):
    """The directory has other files and no ``root.json``, so it is not a root.

    Cause: a wrong ``--root``, or a root whose ``root.json`` was removed.
    Cure: name an empty directory or a root of this runtime; a command that only reads needs a root.
    """

    def __init__(self, path: str, reason: str, *, may_be_empty: bool = True) -> None:
        directory = "an empty directory, or a root" if may_be_empty else "a root"
        super().__init__(f"{path}: {reason}; name {directory} of this runtime")
        self.path = path


class BadRootPath(RuntimeRefused):
    """SQLite cannot open a database in the directory, because of its path; nothing was written.

    Cause: the path is too long, or is not UTF-8. Cure: name a directory with another path.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the path {reason}; name another directory")


class RootInUse(RuntimeRefused):
    """Another runtime has this root open.

    Cause: two processes use one root. Cure: end the other one, which frees its lock.
    """

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: another runtime holds it; end that one, its lock goes with it")
        self.path = path


class UnknownAgent(RuntimeRefused):
    """No living agent has this id.

    Cause: a wrong id, or an agent that has ended. Cure: take the ids from ``view()``.
    """

    def __init__(self, agent_id: str, reason: str = "no agent has this id") -> None:
        super().__init__(f"agent {shown(agent_id)}: {reason}; take the ids from view()")
        self.agent_id = agent_id


class UnknownMessage(RuntimeRefused):
    """No message to USER has this id. Cure: take the ids from ``view().user``."""

    def __init__(self, message_id: str) -> None:
        super().__init__(f"message {shown(message_id)}: USER has no such message; see view().user")
        self.message_id = message_id


class UnknownProvider(RuntimeRefused):
    """The runtime was opened without a provider of this name.

    Cure: open it with that provider, or name one that it has.
    """

    def __init__(self, name: str, known: str) -> None:
        super().__init__(f"provider {shown(name)} is not there; known are {known or 'none'}")
        self.name = name


class NameTaken(RuntimeRefused):
    """A living agent has this name, or one that is being created.

    Cure: choose another name, or wait until that agent has ended.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"the name {name!r} is taken by a living agent; choose another one")
        self.name = name


class MayBeThere(RuntimeRefused):
    """A request may have created an agent already, in a session that cannot be read now.

    Cause: recovery could not read some sessions; its report names them with the reasons.
    Cure: repair those sessions and start the runtime again, or omit the request id.
    """

    def __init__(self, request_id: str, sessions: str) -> None:
        super().__init__(
            f"request_id={shown(request_id)} may be that of a session that cannot be read"
            f" ({sessions}); see the recovery report, repair it and start again"
        )


class HasChildren(RuntimeRefused):
    """An agent with living children cannot end: they would have no parent.

    Cure: let the children end first.
    """

    def __init__(self, name: str, children: str) -> None:
        super().__init__(f"agent {name!r} has living children ({children}); let them end first")
        self.name = name
        self.children = children


class AgentStopped(RuntimeRefused):
    """Nothing more is written to the log of this agent until the next boot.

    Cause: a barrier of its log failed, and the content of the disk is unknown.
    Cure: repair the disk and start the runtime again; recovery reports its content.
    """

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"agent {name!r} is stopped until the next boot: {reason}")
        self.name = name


class PayloadTooLarge(RuntimeRefused):
    """A payload has more bytes than one message may have.

    Cure: keep the large value in a file of its own, and send the name of the file.
    """

    def __init__(self, size_bytes: int, most_bytes: int) -> None:
        super().__init__(
            f"a payload of size_bytes={size_bytes} is over the limit of {most_bytes};"
            " keep it in a file of its own, and send its name"
        )
        self.size_bytes = size_bytes


class Closed(RuntimeRefused):
    """The runtime was closed. Cure: open it again."""


class NotStarted(RuntimeRefused):
    """The runtime was recovered, and not started yet. Cure: call ``start`` first."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the runtime is not started: {reason}; call start() first")


class BadName(RuntimeRefused):
    """No agent can have this name.

    Cause: the name is not a text, or is empty, too long, or ``USER``, which is the operator.
    Cure: choose another name.
    """

    def __init__(self, name: object, most_characters: int) -> None:
        beginning = name[:most_characters] if isinstance(name, str) else name
        super().__init__(
            f"name={shown(beginning)} is not a name for an agent; choose a text of 1 to"
            f" {most_characters} characters, not USER"
        )
        self.name = name
