"""HEAD with all that comes: the head, and what must not follow it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from threading import Thread
from typing import Final

import pytest

from generator.verify import bare_head

HEAD: Final = b'HTTP/1.1 200 OK\r\nETag: "x"\r\nContent-Length: 2\r\n\r\n'


@contextmanager
def answering(raw: bytes) -> Iterator[str]:
    """A server that sends these bytes to the first who connects, whatever is asked."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                assert connection.recv(1 << 16).startswith(b"HEAD /a?b=%20c HTTP/1.1\r\n")
                connection.sendall(raw)

        thread = Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/a?b=%20c"
        thread.join()


@pytest.mark.parametrize("body", [b"", b"{}"])
@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"])
def test_what_follows_the_head_is_seen(before: bytes, body: bytes) -> None:
    with answering(before + HEAD + body) as address:
        assert bare_head.ask(address, {}) == (200, {"etag": '"x"', "content-length": "2"}, body)


@pytest.mark.parametrize("raw", [b"", b"\x16\x03\x01", b"SSH-2.0-OpenSSH\r\n"])
def test_what_is_no_answer_is_refused(raw: bytes) -> None:
    with answering(raw) as address, pytest.raises(HTTPException):
        bare_head.ask(address, {})
