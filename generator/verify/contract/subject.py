"""What is asked: a deployment, with what must be known of it before the questions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from pydantic_core import from_json

from generator.api import contract, keys
from generator.api.contract import Variant
from generator.verify.contract.answers import UUID
from generator.verify.contract.plans import LIST, ContractWalk, WalkPlan
from generator.verify.reader import SiteAnswer, SiteReader

_FIRST: Final = f"{LIST}?status=all&sort=popular&limit=1"
#: A category that no site has.
_NO_CATEGORY: Final = "no-such-category"
#: A lifetime in Cache-Control, and the longest that is waited for.
_SECONDS: Final = re.compile(r"(max-age|s-maxage|stale-while-revalidate)=(\d{1,9})")
_LONGEST_S: Final = 120
#: What tells the extended variant in lists.
_EXTENDED: Final = frozenset({"slug", "category", "categories"})


@dataclass(frozen=True)
class Subject:
    """A deployment. `market_id` is one that a list shows, `cursor` leads on in all markets in the sort `popular`.

    `document` is its OpenAPI document, as it answers; `hidden` are ids that it must not show; `lifetime_s` is for how
    many seconds caches may show a list that has changed. `walked` are the walks so far.
    """

    reader: SiteReader
    hidden: tuple[str, ...]
    document: SiteAnswer
    variant: Variant
    market_id: str | None
    cursor: str | None
    lifetime_s: int
    left_out: list[str] = field(default_factory=list)
    walked: dict[WalkPlan, ContractWalk] = field(default_factory=dict)

    def ask(self, target: str, method: str = "GET", encoding: str = "gzip", **headers: str) -> SiteAnswer:
        """The answer to a request; underscores in names of headers stand for hyphens."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.reader.ask(method, target, {"Accept-Encoding": encoding, **named})

    def leave_out(self, text: str) -> None:
        """Note, once, what could not be asked."""
        if text not in self.left_out:
            self.left_out.append(text)


def of(reader: SiteReader, hidden: tuple[str, ...]) -> Subject:
    """Get to know the deployment, in three requests at most. Raises NoAnswerError if it cannot be reached."""
    document = reader.ask("GET", f"/{keys.OPENAPI}")
    answer = reader.ask("GET", _FIRST)
    market = (items_of(answer) or [{}])[0]
    market_id, cursor = (_text(value) for value in (market.get("id"), _objects(parsed_json(answer)).get("nextCursor")))
    if market_id and not UUID.fullmatch(market_id):
        market_id = None  # nothing to write into a path
    shows = _EXTENDED & market.keys() or (
        document.status == HTTPStatus.OK and contract.market_parameter("extended").encode() in document.body
    )
    if not shows and market:  # a server of the core variant may ignore the filter
        filtered = reader.ask("GET", f"{_FIRST}&category={_NO_CATEGORY}")
        shows = filtered.status == HTTPStatus.OK and items_of(filtered) == []
    variant: Variant = "extended" if shows else "core"
    return Subject(reader, hidden, document, variant, market_id, cursor, _lifetime_s(answer))


def items_of(answer: SiteAnswer) -> list[Mapping[str, Any]] | None:
    """The items of a page, of which each that is no object is empty; None if it is no page."""
    items = _objects(parsed_json(answer)).get("items")
    return [_objects(item) for item in items] if isinstance(items, list) else None


def parsed_json(answer: SiteAnswer) -> Any:
    """The body as JSON; None if it is none."""
    try:
        return from_json(answer.body)
    except ValueError:
        return None


def _objects(value: Any) -> Mapping[str, Any]:
    """A JSON object; an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _lifetime_s(answer: SiteAnswer) -> int:
    control = answer.headers.get("cache-control", "")
    given = {name: int(seconds) for name, seconds in _SECONDS.findall(control)}
    kept = max(given.get("max-age", 0), given.get("s-maxage", 0))
    return min(kept + given.get("stale-while-revalidate", 0), _LONGEST_S)
