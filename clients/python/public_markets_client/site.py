"""Every operation: what to ask a site for, and what the answers come to."""

import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Literal
from urllib.parse import quote, urlencode

from public_markets_client import changes, models
from public_markets_client.changes import Change, FeedFile, FeedHead, Position
from public_markets_client.decoding import Extensible, decoded, plain
from public_markets_client.errors import AnswerError, ExpiredCursorError, NoSiteError, NotFoundError, StartAgainError
from public_markets_client.requester import NOT_MODIFIED, OK, Answer, Call, Requester, etag_of, parsed
from public_markets_client.stores import Store

LOG = logging.getLogger("public_markets_client")
#: Of a walk: how often it begins anew, and how many pages have no market that is new. Sites take no longer cursor.
_MOST_RESTARTS, _MOST_IDLE, _LONGEST_CURSOR = 5, 100, 4_000
_HEAD = "changes/head.json"
#: What a walk does whose list is gone.
WhenExpired = Literal["restart", "error"]
#: What becomes of the lines of a copy.
_Becomes = Callable[[Iterable[bytes]], Iterator[Change]]


class Site(Requester):
    """The operations of a site."""

    async def market(self, ref: str) -> models.MarketDetail:
        """The market with this id or slug; raise NotFoundError if there is none."""
        return await self._fetch(self._url(f"public/markets/{quote(ref, safe='')}"), models.MarketDetail)

    async def snapshot(self) -> models.Snapshot:
        """Small groups of open markets."""
        return await self._fetch(self._url("public/markets/snapshot"), models.Snapshot)

    async def build(self) -> models.Build:
        """What is published, and as of when."""
        return await self._fetch(self._url("build.json"), models.Build)

    async def index(self) -> Extensible:
        """The addresses of everything that the site publishes, and what it says of itself, in `json`."""
        return await self._fetch(self._url(""), Extensible)

    async def prices(self) -> models.Prices:
        """All open markets with their prices; raise NotFoundError if the site publishes none."""
        return await self._fetch(self._url("prices.json"), models.Prices)

    async def question(self, ref: str) -> models.QuestionDetail:
        """The question with this id or slug, and all its markets; raise NotFoundError if there is none.

        A row of the kind `single` is a market, to be asked for by `market`.
        """
        return await self._fetch(self._url(f"public/questions/{quote(ref, safe='')}"), models.QuestionDetail)

    def markets(  # noqa: PLR0913 - as the API has it
        self, *, status: models.Status = "open", sort: models.Sort | None = None, q: str | None = None,
        category: str | None = None, limit: int = 100, on_expired: WhenExpired = "restart",
    ) -> AsyncGenerator[models.Market, None]:  # fmt: skip
        """Every market of a list, each once, in order; pages have `limit` markets.

        If the list is withdrawn or replaced long ago in mid-walk, the walk goes on with what is in the new one and has
        not come yet, or raises ExpiredCursorError with `on_expired="error"`.
        """
        asked = {"status": status, "sort": sort, "q": q, "category": category, "limit": limit}
        return self._walk("markets", models.Page, asked, on_expired)

    def questions(
        self, *, status: models.Status = "open", sort: models.Sort | None = None,
        category: str | None = None, limit: int = 100, on_expired: WhenExpired = "restart",
    ) -> AsyncGenerator[models.Question, None]:  # fmt: skip
        """Every question of a list, and every market that is in none, as `markets` walks.

        Raise NotFoundError if the site has no lists of questions.
        """
        asked = {"status": status, "sort": sort, "category": category, "limit": limit}
        return self._walk("questions", models.QuestionPage, asked, on_expired)

    async def _walk(
        self, resource: str, kind: Callable[..., Any], asked: dict[str, Any], on_expired: WhenExpired
    ) -> AsyncGenerator[Any, None]:
        """Every item of a list, whose pages are of this kind."""
        cursor, restarts, idle, seen = None, 0, 0, set[str]()
        while True:
            try:
                page = await self._page(resource, kind, asked | {"cursor": cursor})
            except ExpiredCursorError:
                if on_expired == "error" or restarts == _MOST_RESTARTS:
                    raise
                # An edge may still have the first page of the list that is gone.
                await self._sleep(restarts)
                restarts, cursor = restarts + 1, None
                continue
            idle += 1
            for item in page.items:
                if item.id not in seen:
                    seen.add(item.id)
                    idle = 0
                    yield item
                elif not restarts:
                    raise AnswerError(f"the list has this {resource[:-1]} twice", url=self._base, path=item.id)
            if page.next_cursor is None:
                return
            # In a new list, all that came already may come first, an item to a page.
            is_too_long = len(page.next_cursor) > _LONGEST_CURSOR
            if page.next_cursor == cursor or is_too_long or idle > len(seen) + _MOST_IDLE:
                raise AnswerError("leads to an earlier page, or is too long", url=self._base, path="nextCursor")
            cursor = page.next_cursor

    async def _page(self, resource: str, kind: Callable[..., Any], asked: dict[str, Any]) -> Any:
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        try:
            return await self._fetch(self._url(f"public/{resource}?{query}"), kind, is_search="q=" in query)
        except NotFoundError as error:
            if resource != "markets":
                raise
            # Every site has lists of markets.
            raise NoSiteError(self._base, error.status) from None

    async def dump(self) -> AsyncGenerator[models.FullMarket, None]:
        """All markets, ascending by id, after a check that the file is whole."""
        url = self._url("dumps/head.json")
        for found in (await self._fetch(url, models.DumpHead)).markets:
            if found.format == "ndjson":
                async with self._lines(FeedFile(found.url, found.size, found.sha256)) as lines:
                    for line in lines():
                        yield decoded(models.FullMarket, parsed(line, found.url))
                return
        raise AnswerError("names no NDJSON file", url=url)

    async def latest_changes(self, builds: int = 1) -> AsyncGenerator[dict[str, Any], None]:
        """What the newest builds changed, as the feed has it: ids with new values, and digests of ids that are gone."""
        async for _, values in self.dated_changes(builds):
            yield values

    async def step_times(self) -> list[datetime]:
        """The as-of of each build that the feed tells of, oldest first; raise NotFoundError if there is no feed."""
        return [step.as_of for step in (await self._head()).steps if step.as_of]

    async def dated_changes(self, builds: int) -> AsyncGenerator[tuple[datetime, dict[str, Any]], None]:
        """The same as `latest_changes`, each with the as-of of its build."""
        for step in (await self._head()).steps[-builds:]:
            async with self._lines(step) as lines:
                for line in lines():
                    if step.as_of:
                        yield step.as_of, plain(dict, parsed(line, step.url), "")

    async def follow(self, store: Store) -> AsyncGenerator[Change, None]:
        """Bring a copy up to date, then tell what changed in it; nothing if the copy was up to date.

        The copy changes all at once, before the first change is told. Call it again after the next build.
        """
        with TemporaryFile() as spool:
            try:
                await self._take_steps(store, spool)
            except StartAgainError as reason:
                LOG.info("%s; starting from the dump", reason)
                try:
                    await self._take_dump(store, spool)
                except StartAgainError as again:
                    LOG.info("%s; trying once more, as the site may have changed meanwhile", again)
                    await self._take_dump(store, spool)
            for change in changes.spooled(spool):
                yield change

    async def _take_steps(self, store: Store, spool: BinaryIO) -> None:
        before, url = store.position(), self._url(_HEAD)
        # A copy of an earlier client has no definitions of questions.
        is_known = before.url == url and "questions" in before.json
        etag = is_known and etag_of(Answer(OK, {"etag": before.etag or ""}))
        known = {"If-None-Match": etag} if etag else {}
        head = await self._ask(Call(url, known), lambda one: None if one.status == NOT_MODIFIED else FeedHead(url, one))
        merge = changes.Merge()
        for step in head.steps_since(before) if head else ():
            async with self._lines(step) as lines:
                await self._apart(partial(merge.add, lines(), step.url))
        to = head.position if head else before
        async with self._definitions(store, to, head) as definitions:
            await self._apart(partial(_commit, store, spool, merge.apply, to, definitions, before))

    async def _take_dump(self, store: Store, spool: BinaryIO) -> None:
        head = await self._head()
        to = head.position
        async with self._lines(head.dump) as lines, self._definitions(store, to, head) as definitions:
            commit = partial(_commit, store, spool, lambda old: changes.replaced(old, lines()), to, definitions)
            try:
                await self._apart(lambda: commit(store.position()))
            except StartAgainError:
                # There is no old copy, or its lines cannot be read.
                await self._apart(lambda: commit(None))

    @asynccontextmanager
    async def _definitions(
        self, store: Store, to: Position, head: FeedHead | None
    ) -> AsyncGenerator[Callable[[], Iterator[bytes]] | None, None]:
        """The definitions of questions that a head names; None if the copy has them, or has to have none."""
        if to.questions is None or await self._apart(partial(_has_definitions, store, to.questions)):
            yield None
        elif head is None or head.definitions is None:
            raise StartAgainError("the definitions of questions are damaged")
        else:
            async with self._lines(head.definitions) as lines:
                whole = partial(_whole, lines, to.questions)
                await self._apart(lambda: all(whole()))  # before anything of the copy is replaced
                yield whole

    async def _head(self) -> FeedHead:
        return await self._ask(Call(self._url(_HEAD)), partial(FeedHead, self._url(_HEAD)))

    @asynccontextmanager
    async def _lines(self, named: FeedFile) -> AsyncGenerator[Callable[[], Iterator[bytes]], None]:
        """The lines of a file that a head names; raise StartAgainError if there is none, or another."""
        with TemporaryFile() as file:
            url, largest = self._permitted(named.url, self._url(_HEAD)), self._options.largest_file
            if named.size > largest:
                raise StartAgainError("is longer than largest_file allows", url=url)
            call = Call(url, {"Accept-Encoding": "identity"}, file=file, most=named.size)
            try:
                await self._ask(call, lambda _: changes.require_whole(file, named))
            except (NotFoundError, AnswerError) as error:
                raise StartAgainError(error.message, url=named.url, status=error.status) from None
            yield partial(changes.lines_of, file, url, largest)


def _whole(lines: Callable[[], Iterator[bytes]], state: str) -> Iterator[bytes]:
    return changes.whole(lines(), state)


def _has_definitions(store: Store, state: str) -> bool:
    try:
        return all(_whole(store.definitions, state))
    except StartAgainError:
        return False


def _commit(  # noqa: PLR0913, PLR0917 - what a copy is
    store: Store, spool: BinaryIO, becomes: _Becomes, to: Position, definitions: Callable[[], Iterator[bytes]] | None,
    before: Position | None,
) -> None:  # fmt: skip
    """Make of the copy what becomes of its lines, if that is what the site names; leaves what changes in `spool`."""

    def whole() -> Iterator[Change]:
        return changes.checked(becomes(store.lines() if before else ()), to.state)

    changes.spool(whole(), spool)
    if to != before or spool.tell() or definitions:
        new = definitions() if definitions else None
        # Another program may have changed the copy since it was read.
        store.apply((one.line for one in whole() if one.line), changes.spooled(spool), to, before, new)
    LOG.info("the copy is at serial %d", to.serial)
