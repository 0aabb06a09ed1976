"""A proxy between a verification and a site, which alters answers: caches, proxies and disks do so in real life."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from tests.support.edges.servers import Answer, Client, QuietHandler, serving

#: Gets the target and what the site answers, and returns what the reader gets.
Alter = Callable[[str, Answer], Answer]


def unaltered(_: str, answer: Answer) -> Answer:
    """Passes every answer on."""
    return answer


def without_header(answer: Answer, name: str) -> Answer:
    """The answer without a header."""
    return replace(answer, headers={known: value for known, value in answer.headers.items() if known != name})


class Proxy:
    """A proxy of a site on this machine. Set `alter`; `asked` are the targets so far."""

    def __init__(self, upstream: int) -> None:
        self.alter: Alter = unaltered
        self.asked: list[str] = []
        self.port = 0
        self._upstream = upstream

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, target: str, headers: Mapping[str, str]) -> Answer:
        """What the reader gets."""
        self.asked.append(target)
        client = Client(self._upstream)
        try:
            answer = self.alter(target, client.send("GET", target, **headers))
        finally:
            client.close()
        # As CloudFront does, which adds them itself, and for no one else.
        return answer if "Origin" in headers else without_header(answer, "access-control-allow-origin")


@contextmanager
def proxied(upstream: int) -> Iterator[Proxy]:
    """Run a proxy of the site on a port."""
    proxy = Proxy(upstream)

    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 - the name is the library's
            given = {name.replace("-", "_"): self.headers.get(name) for name in ("If-None-Match", "Origin")}
            try:
                self.reply(proxy.answer(self.path, {name: value for name, value in given.items() if value}))
            except ConnectionAbortedError:  # what a test has it do
                self.close_connection = True

    with serving(Handler) as proxy.port:
        yield proxy
