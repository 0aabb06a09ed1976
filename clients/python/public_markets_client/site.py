"""Every operation: what to ask a site for, and what the answers come to."""

import hashlib
import logging
from collections.abc import AsyncGenerator, Callable, Iterator
from functools import partial
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Literal
from urllib.parse import quote, urlencode

from public_markets_client import changes, models
from public_markets_client.changes import Change, FeedFile, FeedHead, Position
from public_markets_client.decoding import decoded
from public_markets_client.errors import AnswerError, ClientError, ExpiredCursorError, NotFoundError, StartAgainError
from public_markets_client.models import FullMarket, Market
from public_markets_client.requester import NOT_MODIFIED, Answer, Call, Options, Requester, parsed
from public_markets_client.stores import Store, Update

LOG = logging.getLogger("public_markets_client")
_MOST_RESTARTS = 5


class Site(Requester):
    """A site, by the address before `/v1`."""

    def __init__(self, base_url: str, options: Options | None) -> None:
        super().__init__(options or Options())
        if not base_url.startswith(("http://", "https://")):
            raise ClientError("is not an http or https URL", url=base_url)
        self._base = base_url.rstrip("/").removesuffix("/v1")

    def _url(self, path: str) -> str:
        return f"{self._base}/v1/{path}"

    async def market(self, ref: str) -> models.MarketDetail:
        """The market with this id or slug; raise NotFoundError if there is none."""
        return await self._fetch(self._url(f"public/markets/{quote(ref, safe='')}"), models.MarketDetail)

    async def snapshot(self) -> models.Snapshot:
        """Small groups of open markets."""
        return await self._fetch(self._url("public/markets/snapshot"), models.Snapshot)

    async def build(self) -> models.Build:
        """What is published, and as of when."""
        return await self._fetch(self._url("build.json"), models.Build)

    async def prices(self) -> models.Prices:
        """All open markets with their prices; raise NotFoundError if the site publishes none."""
        return await self._fetch(self._url("prices.json"), models.Prices)

    async def markets(  # noqa: PLR0913 - as the API has it
        self, *, status: models.Status = "open", sort: models.Sort | None = None, q: str | None = None,
        category: str | None = None, page_size: int = 100, on_expired: Literal["restart", "raise"] = "restart",
    ) -> AsyncGenerator[Market, None]:  # fmt: skip
        """Every market of a list, each once, in order.

        If the list is withdrawn or replaced long ago in mid-walk, the walk goes on with what is in the new one and has
        not come yet, or raises ExpiredCursorError with `on_expired="raise"`.
        """
        asked = {"status": status, "sort": sort, "q": q, "category": category}
        parameters = {name: value for name, value in asked.items() if value is not None} | {"limit": str(page_size)}
        cursor, restarts, seen, cursors = None, 0, set[str](), set[str]()
        while True:
            query = urlencode(parameters | ({"cursor": cursor} if cursor else {}))
            try:
                page = await self._fetch(self._url(f"public/markets?{query}"), models.Page, is_search=q is not None)
            except ExpiredCursorError:
                if on_expired == "raise" or restarts == _MOST_RESTARTS:
                    raise
                # An edge may still have the first page of the list that is gone.
                await self._sleep(restarts)
                restarts, cursor = restarts + 1, None
                cursors.clear()
                continue
            for market in page.items:
                if market.id not in seen:
                    seen.add(market.id)
                    yield market
                elif not restarts:
                    raise AnswerError("the list has this market twice", url=self._base, path=market.id)
            cursor = page.next_cursor
            if cursor is None:
                return
            if cursor in cursors:
                raise AnswerError("the site leads back to an earlier page", url=self._base, path="nextCursor")
            cursors.add(cursor)

    async def dump(self) -> AsyncGenerator[FullMarket, None]:
        """All markets, ascending by id, after a check that the file is whole."""
        head = await self._fetch(self._url("dumps/head.json"), models.DumpHead)
        for found in head.markets:
            if found.format == "ndjson":
                with TemporaryFile() as file:
                    await self._download(FeedFile(found.url, found.size, found.sha256), file)
                    for line in changes.lines_of(file, found.url):
                        yield decoded(FullMarket, parsed(line, found.url))
                return
        raise AnswerError("names no NDJSON file", url=self._url("dumps/head.json"))

    async def latest_changes(self, builds: int = 1) -> AsyncGenerator[dict[str, Any], None]:
        """What the newest builds changed, as the feed has it: ids with new values, and digests of ids that are gone."""
        head = await self._head(None)
        for step in head.steps[-builds:] if head else ():
            with TemporaryFile() as file:
                await self._download(step, file)
                for line in changes.lines_of(file, step.url):
                    yield parsed(line, step.url)

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
        before = store.position()
        head = await self._head(before)
        merge, steps = changes.Merge(), head.steps_since(before) if head else ()
        for step in steps:
            with TemporaryFile() as file:
                await self._download(step, file)
                await self._apart(partial(merge.add, changes.lines_of(file, step.url), step.url))
        position = head.position if head else before
        await self._apart(partial(_commit, store, spool, lambda: merge.apply(store.lines()), position, before))
        LOG.info("took %d steps to serial %d", len(steps), position.serial)

    async def _take_dump(self, store: Store, spool: BinaryIO) -> None:
        head = await self._head(None)
        if head is None:
            raise AnswerError("is not the head of a change feed", url=self._base)
        with TemporaryFile() as file:
            await self._download(head.dump, file)
            lines = partial(changes.lines_of, file, head.dump.url)
            await self._apart(lambda: _commit(store, spool, lines, head.position, _sound_position(store)))
        LOG.info("took the dump of serial %d", head.position.serial)

    async def _head(self, position: Position | None) -> FeedHead | None:
        """The head of the feed; None if it is still the one of that position."""
        url = self._url("changes/head.json")
        etag = position.etag if position and position.url == url else None
        known = {"If-None-Match": etag} if etag and etag.isascii() and etag.isprintable() else {}

        def read(answer: Answer) -> FeedHead | None:
            if known and answer.status == NOT_MODIFIED:
                return None
            return changes.head_of(parsed(answer.body, url), url, answer.headers.get("etag"))

        return await self._ask(Call(url, known), read)

    async def _download(self, named: FeedFile, file: BinaryIO) -> None:
        """Fetch a file that a head names; raise StartAgainError if there is none, or another."""
        call = Call(named.url, {"Accept-Encoding": "identity"}, file=file, most=named.size)
        try:
            await self._ask(call, lambda _: changes.require_whole(file, named))
        except (NotFoundError, AnswerError) as error:
            raise StartAgainError(error.message, url=named.url, status=error.status) from None


def _sound_position(store: Store) -> Position | None:
    """The position of a copy whose lines can all be read; None if there is no such copy."""
    try:
        for _ in changes.with_ids(store.lines(), store.name):
            pass
        return store.position()
    except StartAgainError:
        return None


def _commit(
    store: Store, spool: BinaryIO, lines: Callable[[], Iterator[bytes]], to: Position, before: Position | None
) -> None:
    """Make these the lines of the copy, if they are the state that the site names; leaves what changes in `spool`."""
    digest = hashlib.sha256()
    old = store.lines() if before else iter(())
    changes.spool(changes.differences(old, changes.digested(lines(), digest), store.name), spool)
    if digest.hexdigest() != to.state:
        raise StartAgainError("the digest of the result differs from the site's")
    if to != before or spool.tell():
        store.apply(Update(lines(), changes.spooled(spool)), to, before)
