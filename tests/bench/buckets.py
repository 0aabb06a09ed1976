"""The S3 server that clients publish to: a C program, as the tests' server is slower than they are."""

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.runner import Runner
from tests.support.edges.servers import mortal

_SOURCE: Final = Path(__file__).with_name("s3_server.c")
_CEILING: Final = 20_000
_SIZE: Final = 8_000


@dataclass(frozen=True)
class Counts:
    """The number of requests a server received, and of PUTs among them."""

    requests: int
    puts: int

    def __sub__(self, earlier: "Counts") -> "Counts":
        return Counts(self.requests - earlier.requests, self.puts - earlier.puts)


class Server:
    """The server in C."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def counts(self) -> Counts:
        """Requests received so far."""
        with urllib.request.urlopen(f"{self.url}/-/requests", timeout=10) as answer:  # noqa: S310 - our own
            return Counts(**json.load(answer))


@dataclass(frozen=True)
class Buckets:
    """Starts servers, each with an empty bucket; `program` is the compiled server."""

    program: Path

    @classmethod
    def compiled(cls, runner: Runner) -> "Buckets | None":
        """Compile the server; None, reported as not measured, without a compiler."""
        compiler = runner.program("cc", "publishing is not measured; `make test-deps` installs gcc")
        if compiler is None:
            return None
        program = runner.root / "s3_server"
        subprocess.run([compiler, "-O2", "-pthread", "-o", program, _SOURCE], check=True)
        return cls(program)

    @contextmanager
    def running(self, latency_s: float) -> Iterator[Server]:
        """A server that delays every response by the latency, stopped at the end of the block."""
        command = mortal(self.program, f"{latency_s * 1000:.0f}")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                yield Server(int(process.stdout.readline()))
            finally:
                process.terminate()

    def ceiling(self, clients: int) -> float:
        """PUTs a second over that many plain sockets."""
        with self.running(0) as server:
            asked = (server.url.rpartition(":")[2], str(_CEILING), str(_SIZE), str(clients))
            command: list[str | Path] = [self.program, "ask", *asked]
            began = time.perf_counter()
            subprocess.run(command, check=True)
            return _CEILING / (time.perf_counter() - began)
