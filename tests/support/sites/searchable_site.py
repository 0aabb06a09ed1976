"""A published site with a search index, copied for each test, and searches in it as an edge answers them."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Final, NamedTuple
from urllib.parse import quote

import pytest

from generator.api import keys
from generator.config.settings import Config
from generator.edge import router
from generator.tree import chunks
from generator.tree.layouts import LAYOUTS
from tests.support.readers.search import Answer, InQuickjs
from tests.support.sites.builds import text_of
from tests.support.sites.publishing import Original, PublishedSite, copied, hour, populate, published_once
from tests.support.sites.rows import market_id
from tests.support.stores.s3.server import S3Server

#: Settings of a site that offers search.
SEARCH: Final = {"variant": "extended", "search": "title+description"}


#: For tests in which the layout does not matter.
in_one_layout: Final = pytest.mark.parametrize("published", [chunks.LAYOUT], indirect=True)


class Published(NamedTuple):
    """A published site to copy, and its settings."""

    original: Original
    settings: dict[str, str]


class Reads(Mapping[str, str]):
    """The objects of a site, as an edge reads them."""

    def __init__(self, site: PublishedSite) -> None:
        self._site = site

    def __getitem__(self, key: str) -> str:
        body = self._site.read(key)
        if body is None:
            raise KeyError(key)
        return body.decode()

    def __iter__(self):  # type: ignore[no-untyped-def]  # noqa: ANN204
        return iter(self._site.objects())

    def __len__(self) -> int:
        return len(self._site.objects())


#: Words of market 1 alone; and what the index has of each: the letters that its line begins with, and the rest.
RARE: Final = (
    *("jaxqixwort", "dzixyzzy", "ǆixyzzy", "ⵣⵣⵣ", "zyzzyva"),
    *('"jax', "qixwort!", '"dzi', "xyzzy!", '"ⵣⵣⵣ', '"zyz', "zyva!"),
)


def remains(places: Mapping[str, bytes]) -> set[str]:
    """Which of the rare words are in keys or bodies, in any case."""
    texts = [f"{key}\n{text_of(key, body).decode()}".lower() for key, body in places.items()]
    return {word for word in RARE if any(word in text for text in texts)}


def fill(database: sqlite3.Connection) -> None:
    populate(database)
    for number, text in ((1, "Resolves by the zyzzyva committee."), (2, "Resolves by another committee.")):
        database.execute("UPDATE markets SET description = ? WHERE id = ?", [text, market_id(number)])
    title = "UPDATE markets SET question = 'Will Jaxqixwort win?', slug = 'jaxqixwort' WHERE id = ?"
    database.execute(title, [market_id(1)])


def go_on(site: PublishedSite) -> None:
    site.edit(1, question="Will ⵣⵣⵣ Ǆixyzzy win?", slug="dzixyzzy")
    site.edit(3, description="Committee of three.", volume=1000.0)
    site.done("rebuild", "--as-of", hour(1))


@pytest.fixture(scope="session", params=LAYOUTS)
def published(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    """A site with an index, published twice. Market 1 has rare words in its title, then others
    there, and in its description.
    """
    settings = {**SEARCH, "layout": str(request.param)}
    with ExitStack() as stack:
        place = tmp_path_factory.mktemp("searched")
        made = stack.enter_context(published_once(place, fill, settings, go_on))
        yield Published(made, settings)


@pytest.fixture
def searched(published: Published, site_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[PublishedSite]:
    """A copy of it."""
    with copied(published.original, site_server, monkeypatch) as site:
        site.settings = dict(published.settings)
        yield site


def engine(site: PublishedSite) -> InQuickjs:
    """The router of the site's edge."""
    return InQuickjs(router.render(Config.model_validate(site.settings)))


def answers(site: PublishedSite, q: str, more: str = "") -> list[Answer]:
    """The answers to a search of all markets, and to those with the cursors that follow."""
    return engine(site).walk(Reads(site), f"q={quote(q)}&status=all{more}")


def found(site: PublishedSite, q: str, more: str = "") -> list[str]:
    """The ids that a search finds."""
    walked = answers(site, q, more)
    assert [answer["status"] for answer in walked] == [200] * len(walked), walked[-1]
    return [item["id"] for answer in walked for item in json.loads(answer["body"])["items"]]


def index_of(objects: Mapping[str, bytes]) -> dict[str, bytes]:
    """The objects of the search index, by key."""
    return {key: body for key, body in objects.items() if keys.SEARCH in key}


def words_in(site: PublishedSite, part: bytes, *, output: bool = True) -> list[str]:
    """The objects in the store, and in the folder, that have this part of a word."""
    built = site.built().items() if output else ()
    return [key for key, body in (*site.objects().items(), *built) if part in body]
