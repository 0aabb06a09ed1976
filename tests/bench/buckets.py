"""Runs the S3 server that clients publish to: a C program, or that of the tests without a compiler."""

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.workshop import Workshop
from tests.support.s3.servers import SeparateServer, separate_s3_server
from tests.support.servers import mortal

_SOURCE: Final = Path(__file__).with_name("s3_server.c")
_CEILING: Final = 20_000
_SIZE: Final = 8_000


@dataclass(frozen=True)
class Counts:
    """How many requests a server saw, and how many of them were puts."""

    requests: int
    puts: int

    def __sub__(self, earlier: "Counts") -> "Counts":
        return Counts(self.requests - earlier.requests, self.puts - earlier.puts)


class Server:
    """The C program."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def counts(self) -> Counts:
        """What it saw so far."""
        with urllib.request.urlopen(f"{self.url}/-/requests", timeout=10) as answer:  # noqa: S310 - our own
            return Counts(**json.load(answer))


class SlowServer:
    """That of the tests, which is written in Python and bounds every client."""

    def __init__(self, server: SeparateServer) -> None:
        self._server = server
        self.url = server.url

    def counts(self) -> Counts:
        """What it saw so far."""
        log = self._server.log()
        return Counts(len(log), sum(one["operation"] == "PutObject" for one in log))


@dataclass(frozen=True)
class Buckets:
    """Starts servers, each with an empty bucket; `program` is the compiled one, if there is a compiler."""

    program: Path | None

    @classmethod
    def compiled(cls, workshop: Workshop) -> "Buckets":
        """Compile the server."""
        compiler = workshop.program(
            "cc", "publishing goes to the tests' server, which bounds fast clients; `make test-deps` installs gcc"
        )
        if compiler is None:
            return cls(None)
        program = workshop.root / "s3_server"
        subprocess.run([compiler, "-O2", "-pthread", "-o", program, _SOURCE], check=True)
        return cls(program)

    @contextmanager
    def running(self, latency_s: float) -> Iterator[Server | SlowServer]:
        """A server that waits so long before each answer, until the end of the block."""
        if self.program is None:
            with separate_s3_server() as slow:
                slow.behave(latency_s=latency_s)
                yield SlowServer(slow)
            return
        command = mortal(self.program, f"{latency_s * 1000:.0f}")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                yield Server(int(process.stdout.readline()))
            finally:
                process.terminate()

    def ceiling(self, clients: int) -> float | None:
        """Puts a second that plain sockets reach, with so many at once; None without the C program."""
        if self.program is None:
            return None
        with self.running(0) as server:
            command: list[str | Path] = [
                self.program,
                "ask",
                server.url.rpartition(":")[2],
                str(_CEILING),
                str(_SIZE),
                str(clients),
            ]
            began = time.perf_counter()
            subprocess.run(command, check=True)
            return _CEILING / (time.perf_counter() - began)
