"""What can go wrong with durable data, beyond a plain ``OSError``.

Each docstring is the user's help: the cause, then the cure. An ``OSError`` that is not
translated here passes through as the host gave it.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager


class NotPlainJson(ValueError):
    """A value that a log or a record was asked to keep is not plain JSON data.

    Cause: something other than str, int, finite float, bool, None, list and dict with str
    keys; a lone surrogate in a string; nesting without end. ``place`` says where it is.
    Cure: convert it before it is logged (a UUID to hex, a time to ISO 8601, bytes to base64).
    """

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason


class BadSeal(ValueError):
    """Bytes that should be one sealed JSON object are not; the message says why.

    Cause: a crash cut or tore them, or the disk changed them since.
    Cure: none is needed from a user; recovery reports what it met, with path and place.
    """


class StorageError(Exception):
    """Something is wrong with the durable data at ``path``."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class StorageFull(StorageError):
    """There is no room for what was to be written; nothing of it was kept.

    Cause: the disk or the quota is full.
    Cure: make room and repeat the call; everything acknowledged before is intact.
    """


@contextmanager
def told_when_full(path: str) -> Iterator[None]:
    """Raise ``StorageFull`` about ``path`` for an ``OSError`` that means it."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = f"no space left ({error.strerror}); make room and repeat the call"
            raise StorageFull(path, reason) from error
        raise


class LineTooLarge(StorageError):
    """One line would be larger than a log takes.

    Cause: an event whose data has more bytes than the limit in the message.
    Cure: keep the large thing in a file of its own, and log its name.
    """


class LogStopped(StorageError):
    """The log takes no more lines; whether the last one was kept is not known.

    Cause: a barrier failed, or a partial line could not be removed. The kernel may have
    dropped what it could not write, so repeating the call would prove nothing.
    Cure: look after the disk, close the log and open it again; recovery says what is there.
    """


class LogDamaged(StorageError):
    """A line that was good when the log was opened is not what it was.

    Cause: the disk or another program changed the file while it was in use.
    Cure: close the log and open it again; recovery puts the bad bytes aside and reports.
    """


class RecordDamaged(StorageError):
    """A session record cannot be read back as it was written.

    Cause: the disk or another program changed ``session.json``.
    Cure: ``scan()`` puts it aside and reports; the session's log still has its history.
    """


class NewerFormat(StorageError):
    """The file was written by a later version of this program; it was left as it is.

    Cause: an older version was started on the data of a newer one.
    Cure: start a version that knows the format number in the message.
    """


class SessionNotFound(StorageError):
    """There is no record of this session.

    Cause: a wrong id, or a session whose creation a crash prevented.
    Cure: take the ids from ``recover()``.
    """


class IllegalTransition(StorageError):
    """A session cannot go from the state it is in to the one that was asked for.

    Cause: two owners of one session, or a session that was terminated before.
    Cure: load the record again and start from its state.
    """
