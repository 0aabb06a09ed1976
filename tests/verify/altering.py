"""A proxy between a verification and a site, which alters answers: caches, proxies and disks do so in real life."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from generator.config.settings import Config
from tests.support.edges.in_process import Local
from tests.support.edges.servers import Answer, QuietHandler, serving

#: Answers a GET of a target with these headers, by names with `_` for `-`.
Upstream = Callable[[str, Mapping[str, str]], Answer]
#: Gets the target and what the site answers, and returns what the reader gets.
Alter = Callable[[str, Answer], Answer]


def unaltered(_: str, answer: Answer) -> Answer:
    """Passes every answer on."""
    return answer


def in_process(config: Config) -> Upstream:
    """A site as `serve` has it, asked without a socket."""
    local = Local(config)
    return lambda target, headers: local.ask(
        target, **{f"HTTP_{name.upper()}": value for name, value in headers.items()}
    )


def asked_once(upstream: Upstream) -> Upstream:
    """A site that stays as it is, asked for each answer once."""
    known = dict[tuple[str, frozenset[tuple[str, str]]], Answer]()

    def answer(target: str, headers: Mapping[str, str]) -> Answer:
        asked = (target, frozenset(headers.items()))
        if asked not in known:
            known[asked] = upstream(target, headers)
        return known[asked]

    return answer


class Proxy:
    """A proxy of a site. Set `alter`; `asked` are the targets so far."""

    def __init__(self, upstream: Upstream) -> None:
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
        answer = self.alter(target, self._upstream(target, headers))
        # As CloudFront does, which adds them itself, and for no one else.
        hidden = () if "Origin" in headers else ("access-control-allow-origin",)
        return replace(answer, headers={name: value for name, value in answer.headers.items() if name not in hidden})


@contextmanager
def proxied(upstream: Upstream) -> Iterator[Proxy]:
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
