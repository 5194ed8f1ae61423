"""A file system of which the program forgets some barriers: it never calls them."""

from __future__ import annotations

from collections.abc import Callable

from system.ports import File, FileKind, FileSystem, OpenMode


class ForgottenBarriers:
    """``files``, without the barriers on those directories that ``forgets`` names."""

    def __init__(self, files: FileSystem, forgets: Callable[[str], bool]) -> None:
        self._files = files
        self._forgets = forgets

    def sync_dir(self, path: str) -> None:
        if not self._forgets(path):
            self._files.sync_dir(path)

    def open(self, path: str, mode: OpenMode) -> File:
        return self._files.open(path, mode)

    def read(self, path: str) -> tuple[bytes, int]:
        return self._files.read(path)

    def replace(self, source: str, target: str) -> None:
        self._files.replace(source, target)

    def unlink(self, path: str) -> None:
        self._files.unlink(path)

    def mkdir(self, path: str) -> None:
        self._files.mkdir(path)

    def rmdir(self, path: str) -> None:
        self._files.rmdir(path)

    def listdir(self, path: str) -> list[str]:
        return self._files.listdir(path)

    def kind(self, path: str) -> FileKind | None:
        return self._files.kind(path)
