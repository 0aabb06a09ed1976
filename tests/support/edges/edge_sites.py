"""Every edge that can read objects, serving the same generated lists, behind one interface."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from generator.api import contract, keys
from generator.config.settings import Config
from generator.edge import cloudflare as edge_cloudflare
from generator.edge import deployment
from generator.edge import nginx as nginx_values
from generator.tree import pages
from generator.tree.generation import ItemList
from tests.support.edges import cloudflare
from tests.support.edges.cases import change_rule, without_cache
from tests.support.edges.in_process import render
from tests.support.edges.servers import Answer, Client, connected, folder_for_anybody, free_port, nginx
from tests.support.edges.serving import MARKETS, UNLIMITED, served
from tests.support.readers import lists
from tests.support.sites.builds import NO_LIMITS, NOW, make_config
from tests.support.stores.bucket import bucket

#: Copies a changed key to a store that is not the folder itself.
Upload: TypeAlias = Callable[[Iterable[str]], None]


@dataclass(frozen=True)
class EdgeSite:
    """A running edge; it serves what is in `output`, nginx with a delay of up to a second."""

    edge: str
    layout: str
    output: Path
    client: Client
    upload: Upload

    def put(self, *made: ItemList) -> Mapping[str, str]:
        """Publish lists in the layout `chunks`; returns their generations."""
        before = self._keys()
        generations = lists.put(self.output, made)
        heads = {keys.head(name) for name in generations}
        self.upload(sorted((self._keys() - before) | heads, key=keys.is_first_page))
        return generations

    def put_pages(self, made: ItemList, limit: int) -> None:
        """Publish the pages of one limit of a list in the layout `pages`."""
        generation = pages.PagedList(made)
        objects = {keys.first_page(made.name, limit): generation.first(limit)}
        for folder in generation.folders():
            place = f"{keys.generation_prefix(made.name, generation.name)}/{folder.name}"
            if folder.name.startswith(f"{limit}-"):
                objects |= {f"{place}/{position}.json": body for position, body in folder.pages}
        for key, body in objects.items():
            lists.write(self.output / key, body)
        self.upload(objects)

    def put_objects(self, objects: Mapping[str, str]) -> None:
        """Publish objects, heads last."""
        in_order = sorted(objects, key=keys.is_first_page)
        for key in in_order:
            lists.write(self.output / key, objects[key].encode())
        self.upload(in_order)

    def change(self, key: str, body: bytes | None) -> None:
        """Damage an object, or delete it."""
        if body is None:
            self.delete([key])
        else:
            lists.write(self.output / key, body)
            self.upload([key])

    def delete(self, gone: Iterable[str]) -> None:
        """Delete objects, in their order."""
        in_order = [*gone]
        for key in in_order:
            (self.output / key).unlink()
        self.upload(in_order)

    def ask(self, name: str, limit: int, cursor: str | None = None, **headers: str) -> Answer:
        return self.client.send("GET", target(name, limit, cursor), **headers)

    def _keys(self) -> set[str]:
        found = (self.output / keys.LISTS).rglob("*.json")
        return {path.relative_to(self.output).as_posix() for path in found}


def target(name: str, limit: int, cursor: str | None = None) -> str:
    status, sort = name.split("/")
    following = "" if cursor is None else f"&cursor={cursor}"
    return f"{MARKETS}?status={status}&sort={sort}&limit={limit}{following}"


def _nothing(changed: Iterable[str]) -> None:
    """The folder is the store."""


def _settings(folder: Path, layout: str, port: int, **settings: object) -> Config:
    chosen = {**NO_LIMITS, **settings}
    config = make_config(folder, base_url=f"http://127.0.0.1:{port}", layout=layout, **chosen)
    render(config)
    lists.write(config.output / keys.BUILD, contract.encode({"asOf": NOW}))
    return config


def _settings_without_cache(folder: Path, layout: str, port: int, **settings: object) -> Config:
    """The same, but what tests change shows at once. test_nginx_cache.py has the cache."""
    config = _settings(folder, layout, port, **settings)
    without_cache(config.output / deployment.FOLDER / nginx_values.FOLDER)
    return config


@contextmanager
def _nginx(
    layout: str, folder: Path, rendered: Callable[..., Config] = _settings_without_cache, **settings: str
) -> Iterator[EdgeSite]:
    port = free_port()
    output = rendered(folder, layout, port, **settings).output
    with nginx(output, port), connected(port) as client:
        yield EdgeSite("nginx", layout, output, client, _nothing)


@contextmanager
def _bucket(
    layout: str, folder: Path, rendered: Callable[..., Config] = _settings_without_cache, **settings: str
) -> Iterator[EdgeSite]:
    port, store = free_port(), free_port()
    place = {
        "publish__target": "s3://store/a prefix",
        "publish__endpoint_url": f"http://127.0.0.1:{store}",
        # Where nothing purged the copies, they would be kept for minutes only.
        "publish__cloudfront_distribution": "E2EXAMPLE",
    }
    output = rendered(folder, layout, port, **place, **settings).output
    with bucket(output, store), nginx(output, port, "bucket.conf"), connected(port) as client:
        yield EdgeSite("bucket", layout, output, client, _nothing)


@contextmanager
def _serve(layout: str, folder: Path, **settings: str) -> Iterator[EdgeSite]:
    output = _settings(folder, layout, 8000, **settings).output
    given = [part for name, value in settings.items() for part in ("--set", f"{name.replace('__', '.')}={value}")]
    with served(folder, *UNLIMITED, "--set", f"layout={layout}", *given) as server, connected(server.port) as client:
        yield EdgeSite("serve", layout, output, client, _nothing)


@contextmanager
def _worker(layout: str, folder: Path, **settings: str) -> Iterator[EdgeSite]:
    config = _settings(folder, layout, 8000, **settings)
    wrangler = cloudflare.write(config, folder)
    # Nothing from the cache, or what tests change would show after half a minute. test_cloudflare.py has it.
    change_rule(folder / edge_cloudflare.WORKER, "return caches.default.match(CACHE_ROOT + key);", "return null;")
    if config.can_search:
        change_rule(folder / edge_cloudflare.WORKER, "if (copy) return copied(copy);", "")
    with cloudflare.serving(wrangler, config.output) as worker:

        def upload(changed: Iterable[str]) -> None:
            known = [(key, (config.output / key).exists()) for key in changed]
            worker.put(key for key, exists in known if exists)
            worker.delete(*(key for key, exists in known if not exists))

        upload([keys.BUILD])
        yield EdgeSite("worker", layout, config.output, worker.client, upload)


_STARTS: Final[Mapping[str, Callable[..., AbstractContextManager[EdgeSite]]]] = {
    "nginx": _nginx, "bucket": _bucket, "serve": _serve, "worker": _worker,
}  # fmt: skip
EDGES: Final = tuple(_STARTS)
#: nginx as it is rendered, with its cache.
_CACHED: Final[Mapping[str, Callable[..., AbstractContextManager[EdgeSite]]]] = {
    "cached-nginx": partial(_nginx, rendered=_settings),
    "cached-bucket": partial(_bucket, rendered=_settings),
}
CACHED: Final = tuple(_CACHED)


@contextmanager
def edge_site(name: str, layout: str, **settings: str) -> Iterator[EdgeSite]:
    """The edge, rendered for a layout and other settings, with an empty store."""
    with ExitStack() as stack:
        folder = stack.enter_context(folder_for_anybody())
        yield stack.enter_context({**_STARTS, **_CACHED}[name](layout, folder, **settings))
