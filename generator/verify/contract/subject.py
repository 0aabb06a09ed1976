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
from generator.verify.reader import NoAnswerError, SiteAnswer, SiteReader, SpentError

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

    `variant` is None where nothing tells which one it has: then what either allows is right.
    `document` is its OpenAPI document, as it answers; `hidden` are ids that it must not show; `lifetime_s` is for how
    many seconds caches may show a list that has changed. `walked` are the walks so far.
    """

    reader: SiteReader
    hidden: tuple[str, ...]
    document: SiteAnswer
    variant: Variant | None
    market_id: str | None
    cursor: str | None
    lifetime_s: int
    left_out: list[str] = field(default_factory=list)
    walked: dict[WalkPlan, ContractWalk] = field(default_factory=dict)

    def ask(self, target: str, method: str = "GET", encoding: str = "gzip", **headers: str) -> SiteAnswer:
        """The answer to a request; underscores in names of headers stand for hyphens.

        Raises NoAnswerError if there is none, nor at a second try, though the server answers others: the check ends
        there, and what the rest of it would have shown could not be seen twice.
        """
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {"Accept-Encoding": encoding, **named}
        try:
            return self.reader.ask(method, target, given)
        except NoAnswerError:
            if self.is_gone():
                raise
            return self.reader.ask(method, target, given)

    def is_gone(self) -> bool:
        """Whether the server answers nothing any more, after a request that it did not answer."""
        try:
            self.reader.ask("GET", LIST)
        except NoAnswerError:
            return True
        except SpentError:
            return False
        return False

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
    variant = _variant(reader, document, market)
    left_out = [] if variant else ["nothing tells the variant, so what either of them allows was taken for right"]
    return Subject(reader, hidden, document, variant, market_id, cursor, _lifetime_s(answer), left_out)


def _variant(reader: SiteReader, document: SiteAnswer, market: Mapping[str, Any]) -> Variant | None:
    """The variant of a deployment that shows this market, if it has any; None if nothing tells it."""
    if _EXTENDED & market.keys() or _describes(document, "extended"):
        return "extended"
    filtered = reader.ask("GET", f"{_FIRST}&category={_NO_CATEGORY}") if market else None
    if filtered and filtered.status == HTTPStatus.OK:
        return "extended" if items_of(filtered) == [] else "core"  # which may ignore the filter
    # A 400 may refuse this category or every one.
    return "core" if _describes(document, "core") else None


def _describes(document: SiteAnswer, variant: Variant) -> bool:
    return document.status == HTTPStatus.OK and contract.market_parameter(variant).encode() in document.body


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
