"""The methods of an asyncio event loop that the simulation does not support.

A simulated world has no threads, sockets, pipes, signals or processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

from sim.errors import UnsupportedOperation


def _refused(name: str, remedy: str = "go through a port of the host") -> Any:
    def refuse(*_arguments: object, **_options: object) -> NoReturn:
        raise UnsupportedOperation(f"loop.{name} is not simulated: {remedy}")

    refusal: Callable[..., NoReturn] = refuse
    refusal.__name__ = name
    return refusal


class RefusingLoop(asyncio.AbstractEventLoop):
    """An event loop whose methods for I/O, threads and processes raise ``UnsupportedOperation``."""

    add_reader = _refused("add_reader")
    add_signal_handler = _refused("add_signal_handler")
    add_writer = _refused("add_writer")
    connect_accepted_socket = _refused("connect_accepted_socket")
    connect_read_pipe = _refused("connect_read_pipe")
    connect_write_pipe = _refused("connect_write_pipe")
    create_connection = _refused("create_connection")
    create_datagram_endpoint = _refused("create_datagram_endpoint")
    create_server = _refused("create_server")
    create_unix_connection = _refused("create_unix_connection")
    create_unix_server = _refused("create_unix_server")
    getaddrinfo = _refused("getaddrinfo")
    getnameinfo = _refused("getnameinfo")
    remove_reader = _refused("remove_reader")
    remove_signal_handler = _refused("remove_signal_handler")
    remove_writer = _refused("remove_writer")
    run_forever = _refused("run_forever", "call run_until_idle or run_until_complete")
    run_in_executor = _refused("run_in_executor", "hand the call to host.workers")
    sendfile = _refused("sendfile")
    set_default_executor = _refused("set_default_executor", "hand calls to host.workers")
    set_task_factory = _refused("set_task_factory", "tasks are made by the loop alone")
    sock_accept = _refused("sock_accept")
    sock_connect = _refused("sock_connect")
    sock_recv = _refused("sock_recv")
    sock_recv_into = _refused("sock_recv_into")
    sock_recvfrom = _refused("sock_recvfrom")
    sock_recvfrom_into = _refused("sock_recvfrom_into")
    sock_sendall = _refused("sock_sendall")
    sock_sendfile = _refused("sock_sendfile")
    sock_sendto = _refused("sock_sendto")
    start_tls = _refused("start_tls")
    stop = _refused("stop", "call run_until_idle or run_until_complete")
    subprocess_exec = _refused("subprocess_exec")
    subprocess_shell = _refused("subprocess_shell")

    def get_task_factory(self) -> None:
        """Return None: the loop makes its tasks itself."""

    def get_debug(self) -> bool:
        """Return False: the debug mode of asyncio reads the real clock."""
        return False

    def set_debug(self, enabled: bool) -> None:
        """Raise ``UnsupportedOperation`` if debug mode is to be enabled."""
        if enabled:
            raise UnsupportedOperation("the debug mode of asyncio reads the real clock")

    async def shutdown_default_executor(self, *_timeout: float | None) -> None:
        """Do nothing: there are no threads."""
