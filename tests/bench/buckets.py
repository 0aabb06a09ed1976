"""The S3 server that clients publish to: a C program, as the tests' server is slower than they are."""

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.bench.runner import Runner
from tests.support.edges.servers import mortal

_SOURCE: Final = Path(__file__).with_name("s3_server.c")


class Counts(NamedTuple):
    """The number of requests a server received, and of PUTs among them."""

    requests: int
    puts: int

    @classmethod
    def of(cls, url: str) -> "Counts":
        """Those received so far."""
        with urllib.request.urlopen(f"{url}/-/requests", timeout=10) as answer:  # noqa: S310 - our own
            return cls(**json.load(answer))


def compiled(runner: Runner) -> Path | None:
    """Compile the server; None, reported as not measured, without a compiler."""
    compiler = runner.program("cc", "publishing is not measured; `make test-deps` installs gcc")
    if compiler is None:
        return None
    program = runner.root / "s3_server"
    subprocess.run([compiler, "-O2", "-pthread", "-o", program, _SOURCE], check=True)
    return program


@contextmanager
def running(program: Path, latency_s: float) -> Iterator[str]:
    """A server with an empty bucket, which delays every response by the latency; yields its address."""
    command = mortal(program, f"{latency_s * 1000:.0f}")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()
