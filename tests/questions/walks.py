"""Walks of lists of questions that begin before a rebuild and end after it.

A walk goes on with the rows that it began with, however often the site is rebuilt, unless something that its list held
was withdrawn: a question, or a market that was a question's member then, also where the row does not show it.
"""

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from urllib.parse import urlencode

from tests.questions.asking import QUESTIONS, Site, UnexpectedError
from tests.questions.oracle import FILTERS, SORTS, Oracle


@dataclass(frozen=True)
class Begun:
    """A walk after its first page: its list, the rows that it must bring, how many it has, and what the list held."""

    list: tuple[str, str, str | None]
    rows: tuple[str, ...]
    taken: int
    cursor: str
    held: frozenset[str]

    @property
    def parameters(self) -> dict[str, str]:
        status, sort, category = self.list
        return {"status": status, "sort": sort} | ({"category": category} if category else {})


def begin(site: Site, oracle: Oracle, limit: int = 2) -> list[Begun]:
    """Read the first page of every list that has another."""
    found = list[Begun]()
    for category in (None, *oracle.setting.categories):
        for status in FILTERS:
            for sort in SORTS:
                rows = oracle.listed(status, sort, category)
                begun = Begun((status, sort, category), tuple(row.raw for row in rows), 0, "", _held(oracle, rows))
                items, cursor, _ = site.page(QUESTIONS, **begun.parameters, limit=limit)
                if cursor is not None:
                    found.append(Begun(begun.list, begun.rows, len(items), cursor, begun.held))
    return found


def _held(oracle: Oracle, rows: Collection[object]) -> frozenset[str]:
    ids = {str(getattr(row, "id", "")) for row in rows}
    members = (member.market_id for name in ids & oracle.questions.keys() for member in oracle.questions[name].members)
    return frozenset([*ids, *members])


def withdrawn(before: Oracle, after: Oracle, is_market: Callable[[str], bool]) -> set[str]:
    """The questions and markets that a rebuild withdrew. A market that joined a public FX family keeps its detail."""
    markets = {name for name in before.markets.keys() - after.markets.keys() if not is_market(name)}
    return markets | (before.questions.keys() - after.questions.keys())


def unlike(
    site: Site, begun: Begun, gone: Collection[str], now: Oracle, limits: tuple[int, ...] = (3,)
) -> Iterator[str]:
    """Go on with a walk after rebuilds that withdrew all that is `gone`; what differs, as sentences."""
    about, has_lost = f"the walk of {begun.parameters}", sorted(begun.held & {*gone})
    path = f"{QUESTIONS}?{urlencode({**begun.parameters, 'cursor': begun.cursor})}"
    if has_lost:
        status, _, body = site.ask(path)
        # A list with equal rows again has its generation again.
        is_back = begun.rows == tuple(row.raw for row in now.listed(*begun.list))
        if status != 400 and not is_back:
            yield f"{about} goes on with a {status}, although {has_lost} were withdrawn"
        elif status == 400 and not json.loads(body)["details"][0]["message"].startswith("has expired"):
            yield f"{about} ends with {body.decode()}"
        return
    rest = begun.rows[begun.taken :]
    try:
        pages = site.pages(QUESTIONS, limits, **begun.parameters, cursor=begun.cursor)
        found = [item for items, _ in islice(pages, len(rest) + 1) for item in items]
    except UnexpectedError as error:
        yield f"{about} ends, although nothing in it was withdrawn: {error}"
        return
    if found != [*rest]:
        yield f"{about} brings {len(found)} rows, not the {len(rest)} that were left when it began"
