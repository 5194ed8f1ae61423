"""Wrappers of the functions of ``os`` that take paths, and of those on the current directory.

They are written for speed: one attribute and one lookup in a dictionary decide.
"""

from __future__ import annotations

import errno
import stat
from typing import Any

from powercut.interpose.refusal import SpecialFileRefused, refusing
from powercut.interpose.router import Router
from powercut.interpose.wrapper import Real, Routed, is_of_disk, is_own_descriptor
from sim.disk.calls.process import Process
from sim.disk.os_error import os_error
from sim.errors import HarnessError, UnsupportedOperation


def path_call(name: str, real: Real) -> Routed:
    method = getattr(Process, name)

    def routed(router: Router, path: Any, *arguments: Any, **options: Any) -> Any:
        lifetime = router.lifetime
        if lifetime is None:
            return real(path, *arguments, **options)
        on_disk = None if options or type(path) is not str else lifetime.known.get(path)
        if on_disk is None:
            on_disk, path = lifetime.where(path, options.get("dir_fd"))
        if not on_disk:
            return real(path, *arguments, **options)
        if lifetime.is_plain:
            try:
                with lifetime.lock:
                    if options:
                        return method(lifetime.process, path, *arguments, **options)
                    return method(lifetime.process, path, *arguments)
            except HarnessError as mistake:
                lifetime.refuse(mistake)
                raise
        return lifetime.call(method, path, *arguments, **options)

    return routed


def optional_path_call(name: str, real: Real) -> Routed:
    method = getattr(Process, name)

    def routed(router: Router, path: Any = None, *arguments: Any, **options: Any) -> Any:
        lifetime = router.lifetime
        if lifetime is not None:
            on_disk, found = lifetime.where("." if path is None else path)
            if on_disk:
                # None, beside the path ".", decides whether an error names a file.
                path = path if path is None else found
                return lifetime.call(method, path, *arguments, **options)
        return real(path, *arguments, **options)

    return routed


def two_path_call(name: str, real: Real) -> Routed:
    method = getattr(Process, name)

    def routed(router: Router, src: Any, dst: Any, **options: Any) -> Any:
        lifetime = router.lifetime
        if lifetime is None:
            return real(src, dst, **options)
        if isinstance(src, int) or isinstance(dst, int):
            return real(src, dst, **options)
        if name == "link" and type(src) is str and is_own_descriptor(src):
            from_disk, source = True, src
        else:
            from_disk, source = lifetime.where(src, options.get("src_dir_fd"))
        to_disk, target = lifetime.where(dst, options.get("dst_dir_fd"))
        if from_disk and to_disk:
            if lifetime.is_plain and not options:
                with lifetime.lock:
                    return method(lifetime.process, source, target)
            return lifetime.call(method, source, target, **options)
        if from_disk or to_disk:
            if not (_is_path(src) and _is_path(dst)):
                return real(src, dst, **options)  # which refuses the type
            raise os_error(errno.EXDEV, src, dst)
        return real(source, target, **options)

    return routed


def _is_path(value: object) -> bool:
    return isinstance(value, str | bytes) or getattr(type(value), "__fspath__", None) is not None


def symlink_call(real: Real) -> Routed:
    def routed(
        router: Router,
        src: Any,
        dst: Any,
        target_is_directory: bool = False,
        *,
        dir_fd: int | None = None,
    ) -> None:
        lifetime = router.lifetime
        if lifetime is not None:
            on_disk, target = lifetime.where(dst, dir_fd)
            if on_disk:
                lifetime.call(Process.symlink, src, target, dir_fd=dir_fd)
                return
        real(src, dst, target_is_directory, dir_fd=dir_fd)

    return routed


def refused_path_call(name: str, real: Real) -> Routed:
    def routed(router: Router, path: Any, *arguments: Any, **options: Any) -> Any:
        lifetime = router.lifetime
        if lifetime is not None and lifetime.where(path, options.get("dir_fd"))[0]:
            return lifetime.call(refusing(name))
        return real(path, *arguments, **options)

    return routed


def node_call(name: str, real: Real) -> Routed:
    """Refuse a new file of ``mknod`` or ``mkfifo``; only ``mknod`` makes regular files too."""

    def routed(router: Router, path: Any, *arguments: Any, **options: Any) -> Any:
        lifetime = router.lifetime
        if lifetime is not None and lifetime.where(path, options.get("dir_fd"))[0]:
            mode = arguments[0] if arguments else options.get("mode", 0)
            is_special = name == "mkfifo" or stat.S_IFMT(mode) not in {0, stat.S_IFREG}
            kind = SpecialFileRefused if is_special else UnsupportedOperation
            return lifetime.call(refusing(name, kind))
        return real(path, *arguments, **options)

    return routed


def no_xattr_call(name: str, real: Real) -> Routed:
    """Raise ENOTSUP, as a file system without extended attributes does."""
    del name

    def routed(router: Router, path: Any, *arguments: Any, **options: Any) -> Any:
        lifetime = router.lifetime
        if lifetime is not None:
            on_disk, found = lifetime.where(path)
            if on_disk:
                follow = options.get("follow_symlinks", True)
                lifetime.call(Process.listxattr, found, follow_symlinks=follow)
                raise os_error(errno.ENOTSUP, path)
        return real(path, *arguments, **options)

    return routed


# -- the current directory -----------------------------------------------------------------------


def chdir_call(real: Real) -> Routed:
    def routed(router: Router, path: Any) -> None:
        lifetime = router.lifetime
        if lifetime is None:
            real(path)
            return
        on_disk, target = lifetime.where(path)
        if on_disk:
            lifetime.call(Process.chdir, target)
        else:
            real(target)
        lifetime.moved(on_disk=on_disk)

    return routed


def fchdir_call(real: Real) -> Routed:
    def routed(router: Router, fd: Any) -> None:
        lifetime = router.lifetime
        if lifetime is None:
            real(fd)
            return
        on_disk = is_of_disk(fd)
        if on_disk:
            lifetime.call(Process.fchdir, fd)
        else:
            real(fd)
        lifetime.moved(on_disk=on_disk)

    return routed


def getcwd_call(real: Real) -> Routed:
    method = getattr(Process, real.__name__)

    def routed(router: Router) -> Any:
        lifetime = router.lifetime
        if lifetime is not None and lifetime.on_disk:
            return lifetime.call(method)
        return real()

    return routed


def process_call(real: Real) -> Routed:
    """Route a call that concerns the process or the disk as a whole."""
    method = getattr(Process, real.__name__)

    def routed(router: Router, *arguments: Any) -> Any:
        lifetime = router.lifetime
        if lifetime is not None:
            return lifetime.call(method, *arguments)
        return real(*arguments)

    return routed


def random_call(real: Real) -> Routed:
    """Route ``urandom`` and ``getrandom``: the random numbers of a run repeat in the next one."""

    def routed(router: Router, size: int, *arguments: Any, **options: Any) -> bytes:
        lifetime = router.lifetime
        if lifetime is not None and type(size) is int and size >= 0:
            return lifetime.random_bytes(size)
        found: bytes = real(size, *arguments, **options)
        return found

    return routed
