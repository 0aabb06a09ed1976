"""Searches by the Worker in real workerd: what they cost, what it keeps of them, and what ends that."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

from generator.api import contract, keys
from generator.config.settings import Config
from generator.edge import cloudflare
from generator.publish import copies
from generator.search import buckets
from generator.tree.layouts import LAYOUTS
from tests.support.edges.cloudflare import NODE_FOLDER, RunningWorker, serving, write
from tests.support.edges.servers import Answer
from tests.support.readers import lists, search
from tests.support.readers.search import InQuickjs, Market, Objects
from tests.support.sites.builds import NO_LIMITS, NOW, make_config
from tests.support.waiting import wait_until

#: Subrequests that Cloudflare grants a Worker for one request in its smallest plan; looks at the cache count, too.
MOST: Final = 50
#: The subrequests of a search (docs/edge-cloudflare.md), objects, build.json and two looks at the cache; and of one
#: begun anew.
USUAL, ANEW = 27, 50
BASE: Final = "https://markets.example.com"
#: Words whose buckets differ where each line has one, and a word that two markets of one chunk never have.
WORDS: Final = ("é", *(f"{letter}x" for letter in "abcdefghijklmnop"))
MARKETS: Final = [
    Market((f"needle {' '.join(WORDS)}" if number % 200 == 7 else "hay",), categories=("crypto",), rank=number)
    for number in range(5_200)
]
#: A site of few markets; two of them are withdrawn, one from the first page of the newest and one from the second.
SMALL: Final = [
    Market((f"needle ax{' zyzzyva' * (number in (3, 6))}",), categories=("crypto",), rank=number) for number in range(8)
]
NEEDLE: Final = "q=needle&status=all&sort=new&limit=100"
#: The most words, in the most buckets, and a category, which is in one more.
COSTLY: Final = f"q={quote(' '.join(['needle', *WORDS]))}&status=all&sort=new&limit=100&category=crypto"


def settings(folder: Path) -> Config:
    """A deployment whose CDN is purged by a program that notes what it was given."""
    purge = folder / "purge.sh"
    purge.write_text(f'printf %s "$1" > {folder / "purged"}', "utf-8")
    return make_config(
        folder,
        base_url=BASE,
        variant="extended",
        layout="chunks",
        search="title",
        **NO_LIMITS,
        publish__target="s3://markets",
        publish__purge_command=f"sh {purge}",
    )


class Worker:
    """A Worker that tells what its requests took; its bucket holds what `hold` was given last."""

    def __init__(self, site: RunningWorker, config: Config) -> None:
        self._site = site
        self._output = config.output
        self._held: Objects = {}
        self.config = config

    def hold(self, objects: Mapping[str, str]) -> None:
        for key in self._held.keys() - objects.keys():
            self._site.delete(key)
        for key, body in objects.items():
            lists.write(self._output / key, body.encode())
        self._site.put(sorted(objects, key=keys.is_first_page))
        self._held = objects

    def ask(self, query: str, **headers: str) -> Answer:
        return self._site.ask(f"/{keys.MARKETS}?{query}", **headers)

    def purge(self, prefix: str) -> None:
        self._site.ask("/", x_purge=prefix)

    def walk(self, query: str) -> list[Answer]:
        answers = [self.ask(query)]
        while cursor := json.loads(answers[-1].body).get("nextCursor"):
            answers.append(self.ask(f"{query}&cursor={cursor}"))
        return answers


@contextmanager
def counted(folder: Path) -> Iterator[Worker]:
    """A Worker that counts."""
    config = settings(folder)
    lists.write(config.output / keys.BUILD, contract.encode({"asOf": NOW}))
    wrangler = write(config, folder)
    script = folder / cloudflare.WORKER
    text = script.read_text("utf-8")
    assert text.count("export default {") == 1
    text = text.replace("caches.default", "counted").replace("export default {", "const worker = {")
    script.write_text(text + (NODE_FOLDER / "counted.js").read_text("utf-8"), "utf-8")
    with serving(wrangler, config.output) as site:
        site.put([keys.BUILD])
        yield Worker(site, config)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    with counted(tmp_path_factory.mktemp("counted")) as worker:
        yield worker


@pytest.fixture
def worker(running: Worker) -> Worker:
    """The Worker with an empty cache."""
    running.purge("")
    return running


def taken(answer: Answer) -> int:
    """The subrequests that the answer took."""
    return sum(map(int, answer.headers["x-subrequests"].split()))


def gets(answer: Answer) -> int:
    return int(answer.headers["x-subrequests"].split()[0])


def read_by(objects: Objects, *queries: str) -> dict[str, str]:
    """The objects that walks read."""
    edge = InQuickjs(search.core())
    return {key: objects[key] for query in queries for answer in edge.walk(objects, query) for key in answer["read"]}


def items(answers: Sequence[Answer]) -> list[bytes]:
    assert {answer.status for answer in answers} == {HTTPStatus.OK}, answers
    return search.items_of([{"body": answer.body.decode()} for answer in answers])


@cache
def costly(layout: str, first: int = 0) -> Objects:
    """The MARKETS from the first on; every line of the index has a bucket of its own."""
    return search.objects(MARKETS[first:], layout, buckets.Sizes(target=1))


@pytest.mark.campaign(short=0)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_costliest_searches_stay_within_what_a_worker_may_ask_for(worker: Worker, layout: str) -> None:
    objects = costly(layout)
    worker.hold(read_by(objects, NEEDLE, COSTLY))
    for query in (NEEDLE, COSTLY):
        answers = worker.walk(query)
        assert items(answers) == search.scan(MARKETS, "all", "new", "needle")
        assert len(answers) > 1, "the first page is short"
        assert max(map(taken, answers)) == USUAL <= MOST


def test_a_search_of_an_index_that_ends_meanwhile_begins_anew(worker: Worker) -> None:
    before, after = costly("chunks"), costly("chunks", first=1)
    head, edge = keys.head(keys.SEARCH), InQuickjs(search.core())
    last = edge.walk(before, COSTLY)[0]["read"][-1]
    worker.hold({**read_by(after, COSTLY), **read_by(before, COSTLY), "v1/next": after[head]})
    answer = worker.ask(COSTLY, x_lose=last, x_then_head="v1/next")
    found = items([answer])
    assert found == search.scan(MARKETS[1:], "all", "new", "needle")[: len(found)]
    assert USUAL < taken(answer) <= ANEW <= MOST
    broken = worker.ask(NEEDLE, x_fail=f"{keys.SEARCH}/{keys.CHUNKS}")
    assert (broken.status, broken.headers["cache-control"]) == (HTTPStatus.SERVICE_UNAVAILABLE, "no-store")


# ── copies ────────────────────────────────────────────────────────────────────────────────────────────────────────


def published(markets: Sequence[Market]) -> Objects:
    """What searches and walks of the lists read."""
    _, made = search.generation(markets, "chunks")
    heads = {key: body.decode() for one in made for key, body in one.first_pages()}
    return {**search.objects(markets), **heads}


def shown(answer: Answer) -> Mapping[str, str]:
    """The headers that are the same for a copy."""
    return {name: value for name, value in answer.headers.items() if name not in ("x-subrequests", "date")}


def settled(worker: Worker, query: str) -> Answer:
    """The answer once it comes from the cache, which is filled after the first answer."""
    wait_until(lambda: gets(worker.ask(query)) == 0)
    return worker.ask(query)


def test_spellings_of_a_search_share_a_copy_and_other_searches_have_their_own(worker: Worker) -> None:
    objects = search.objects(SMALL)
    worker.hold(objects)
    first = worker.ask("q=needle+ax&status=all&limit=3")
    assert settled(worker, "q=needle+ax&status=all&limit=3").body == first.body
    for same in ("NEEDLE%20Ax", "+needle,ax!", "needle%09ax+needle"):
        again = worker.ask(f"limit=3&q={same}&status=all&unknown=1")
        assert (gets(again), again.body, shown(again)) == (0, first.body, shown(first)), same
    for known in (first.headers["etag"], f"W/{first.headers['etag']}"):
        unchanged = worker.ask("q=needle+ax&status=all&limit=3", if_none_match=known)
        assert (unchanged.status, gets(unchanged), unchanged.body) == (HTTPStatus.NOT_MODIFIED, 0, b"")
    cursor = json.loads(first.body)["nextCursor"]
    others = ("q=needleax&status=all&limit=3", "q=needle+ax&limit=3", "q=needle+ax&status=all&limit=4",
              "q=needle+ax&status=all&limit=3&sort=new", "q=needle+ax&status=all&limit=3&category=crypto",
              f"q=needle+ax&status=all&limit=3&cursor={cursor}")  # fmt: skip
    edge = InQuickjs(search.core())
    for other in others:
        (answer, *_) = edge.walk(objects, other)
        assert (gets(found := worker.ask(other)) > 0, found.body.decode()) == (True, answer["body"]), other


def test_a_purge_after_a_withdrawal_ends_the_copies_of_searches_and_of_lists(worker: Worker) -> None:
    worker.hold(published(SMALL))
    queries = [f"{words}status=all&sort=new&limit=3" for words in ("q=needle&", "q=n%C3%A9edle&", "")]
    queries += [f"{query}&cursor={json.loads(worker.ask(query).body)['nextCursor']}" for query in queries]
    shown = [settled(worker, query) for query in queries]
    assert sum(b"zyzzyva" in answer.body for answer in shown) == len(queries)
    worker.hold(published([one for one in SMALL if "zyzzyva" not in one.texts[0]]))
    assert [worker.ask(query).body for query in queries] == [answer.body for answer in shown], "until the purge"
    copies.Cdn(worker.config, lambda: None).invalidate()
    worker.purge((worker.config.output.parent / "purged").read_text("utf-8"))
    after = [worker.ask(query) for query in queries]
    assert not any(b"zyzzyva" in answer.body for answer in after)
    assert [answer.status for answer in after] == [HTTPStatus.OK] * 3 + [HTTPStatus.BAD_REQUEST] * 3
