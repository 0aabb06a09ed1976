"""An nginx without objects: what it counts and refuses can be seen without them."""

import http.client
from collections.abc import Iterator
from contextlib import closing, contextmanager

from tests.support.edges.cases import change_rule
from tests.support.edges.in_process import render
from tests.support.edges.servers import Answer, folder_for_anybody, free_port, nginx
from tests.support.sites.builds import make_config
from tests.support.waiting import PATIENCE_S


@contextmanager
def empty_nginx(
    name: str = "nginx.conf", *changes: tuple[str, str], store: int = 9, **settings: object
) -> Iterator[int]:
    """Run it with the configuration `name`, whose rules are changed; `store` is its bucket's port. Yields its own."""
    with folder_for_anybody() as folder:
        port = free_port()
        config = make_config(
            folder,
            base_url=f"http://127.0.0.1:{port}",
            publish__target="s3://store",
            publish__endpoint_url=f"http://127.0.0.1:{store}",
            **settings,
        )
        render(config)
        for rule, changed in changes:
            change_rule(config.output / "edge" / "nginx" / name, rule, changed)
        with nginx(config.output, port, name):
            yield port


def ask(port: int, target: str = "/x", *, method: str = "GET", peer: str = "127.0.0.1", forwarded: str = "") -> Answer:
    """The answer to a request on a connection of its own, from an address of this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S, source_address=(peer, 0))
    with closing(connection):
        connection.request(method, target, headers={"X-Forwarded-For": forwarded} if forwarded else {})
        return received(connection.getresponse())


def received(response: http.client.HTTPResponse) -> Answer:
    """The whole of a response."""
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read())
