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
from generator.verify.mismatches import Mismatch, Verdict
from generator.verify.reader import SiteAnswer, SiteReader

LIST: Final = f"/{keys.MARKETS}"
#: A category that no site has; who does not refuse it offers categories, or ignores the filter.
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
    many seconds caches may show a list that has changed.
    """

    reader: SiteReader
    hidden: tuple[str, ...]
    document: SiteAnswer
    variant: Variant
    market_id: str | None
    cursor: str | None
    lifetime_s: int
    left_out: list[str] = field(default_factory=list)

    def ask(self, target: str, method: str = "GET", **headers: str) -> SiteAnswer:
        """The answer to a request; underscores in names of headers stand for hyphens."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.reader.ask(method, target, named)

    def leave_out(self, text: str) -> None:
        """Note, once, what could not be asked."""
        if text not in self.left_out:
            self.left_out.append(text)


def of(reader: SiteReader, hidden: tuple[str, ...]) -> Subject:
    """Get to know the deployment, in three requests at most."""
    document = reader.ask("GET", f"/{keys.OPENAPI}")
    answer = reader.ask("GET", f"{LIST}?status=all&sort=popular&limit=1")
    page = _objects(parsed_json(answer))
    items = page.get("items")
    market = _objects(items[0]) if isinstance(items, list) and items else {}
    market_id, cursor = (_text(value) for value in (market.get("id"), page.get("nextCursor")))
    if market_id and not UUID.fullmatch(market_id):
        market_id = None  # nothing to write into a path
    shows = _EXTENDED & market.keys() or (
        document.status == HTTPStatus.OK and contract.market_parameter("extended").encode() in document.body
    )
    if not shows:
        shows = reader.ask("GET", f"{LIST}?category={_NO_CATEGORY}").status == HTTPStatus.OK
    variant: Variant = "extended" if shows else "core"
    return Subject(reader, hidden, document, variant, market_id, cursor, _lifetime_s(answer))


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


def broken(target: str, text: str) -> Mismatch:
    """An answer that has not the form that the contract gives it."""
    return Mismatch(Verdict.BROKEN, target, text)


def wrong(target: str, text: str) -> Mismatch:
    """An answer whose content contradicts the contract, or another answer."""
    return Mismatch(Verdict.WRONG, target, text)


def parsed_json(answer: SiteAnswer) -> Any:
    """The body as JSON; None if it is none."""
    try:
        return from_json(answer.body)
    except ValueError:
        return None
