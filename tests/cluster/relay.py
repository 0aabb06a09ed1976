"""A proxy in front of a scheduler that keeps a copy of everything."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from tests.support.edges.servers import free_port


@dataclass
class Relay:
    """What passed, by connection and direction; `address` is for the setting `cluster`."""

    port: int
    streams: list[bytearray] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def has_passed(self, text: str) -> bool:
        return any(text.encode() in stream for stream in self.streams)


@contextmanager
def relayed(to: int) -> Iterator[Relay]:
    """Listen during the block, for a server on the port `to`."""
    relay = Relay(free_port())
    with ExitStack() as ended, socket.create_server(("127.0.0.1", relay.port)) as listener:
        thread = threading.Thread(target=_accept, args=(listener, to, relay, ended))
        thread.start()
        try:
            yield relay
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _accept(listener: socket.socket, to: int, relay: Relay, ended: ExitStack) -> None:
    with suppress(OSError):  # it was shut down
        while True:
            near, _ = listener.accept()
            far = socket.create_connection(("127.0.0.1", to))
            ended.callback(near.close)
            ended.callback(far.close)
            for one, other in ((near, far), (far, near)):
                relay.streams.append(bytearray())
                thread = threading.Thread(target=_pass, args=(one, other, relay.streams[-1]))
                thread.start()
                ended.callback(thread.join)
                ended.callback(_shut_down, one)


def _pass(one: socket.socket, other: socket.socket, passed: bytearray) -> None:
    with suppress(OSError):
        while piece := one.recv(1 << 20):
            passed += piece
            other.sendall(piece)
    _shut_down(other)


def _shut_down(socket_: socket.socket) -> None:
    with suppress(OSError):
        socket_.shutdown(socket.SHUT_RDWR)
