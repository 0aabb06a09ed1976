"""What a site must refuse: parameters, cursors of other lists, and references to what is not public."""

import json
import random
from collections.abc import Iterable, Iterator
from urllib.parse import quote, urlencode

from tests.questions import raw_json
from tests.questions.asking import MARKETS, QUESTIONS, Site
from tests.questions.comparing import Checked, unequal_headers
from tests.questions.oracle import FILTERS, SORTS, Oracle

#: An id that nothing has.
NOBODY = "0badc0de-0000-4000-8000-00000000dead"
#: Queries that are a 400 for markets, and so for questions.
_INVALID = (
    "status=", "status=Open", "status=pending", "status=open&status=open", "sort=", "sort=id", "sort=new&sort=new",
    "limit=", "limit=0", "limit=101", "limit=05", "limit=%2B5", "limit=5.0", "limit=x", "limit=5&limit=5", "cursor=",
    "cursor=x", "cursor=x&cursor=x", "category=", "category=no-such-category", "category=a&category=a",
    "status=x&sort=y&limit=z",
)  # fmt: skip
_ODD_PATHS = ("/", "/snapshot/", "/snapshot/x", "/x/y", "/%2e", "/..x", "/.x", "/ä", "/a.b", "/{0}/", "/{0}/markets")
#: What no id is, nor a slug: a 400 in both variants.
_NO_REFERENCES = ("a.b", "a%20b", "%C3%A4", "x" * 256, "~", "a,b")


def absent(site: Site, paths: Iterable[str]) -> Iterator[str]:
    """The JSON 404 of any unknown path."""
    unknown = site.ask("/v1/public/no-such-path")
    for path in paths:
        status, _, body = site.ask(path)
        if (status, body) != (404, unknown[2]):
            yield f"{path} is a {status} with {len(body)} bytes, not the 404 of an unknown path"


def refusals(site: Site, oracle: Oracle, checked: Checked) -> Iterator[str]:
    """Parameters that are a 400, by the same bytes as a market's; every `q`; and cursors of other lists."""
    for query in _INVALID:
        checked.refused += 1
        status, headers, body = site.ask(f"{QUESTIONS}?{query}")
        as_market = site.ask(f"{MARKETS}?{query}")
        if status != 400 or as_market[0] != 400:
            yield f"{QUESTIONS}?{query} is a {status}, a market's answer a {as_market[0]}, not both a 400"
        elif _paths(body) != _paths(as_market[2]):
            yield f"{QUESTIONS}?{query} names {_paths(body)}, not {_paths(as_market[2])}"
        elif _messages(body) != _messages(as_market[2]):
            yield f"{QUESTIONS}?{query} says {_messages(body)}, a market's answer {_messages(as_market[2])}"
        yield from unequal_headers(f"{QUESTIONS}?{query}", headers, as_market[1], has_more=False)
    for query in ("q=", "q=rain", "q=rain&status=all", "q=a&q=b", f"q={'x' * 101}", "q=%20"):
        checked.refused += 1
        status, _, body = site.ask(f"{QUESTIONS}?{query}")
        if status != 400 or ["q"] not in _paths(body):
            yield f"{QUESTIONS}?{query} is a {status} naming {_paths(body) if status == 400 else None}, not a 400 of q"
    yield from _foreign_cursors(site, oracle, checked)


def _foreign_cursors(site: Site, oracle: Oracle, checked: Checked) -> Iterator[str]:
    """A cursor is of one list only: not of another status, sort or category, nor of the other resource."""
    category = next(iter(oracle.setting.categories.values()), None)
    lists_of: list[dict[str, str]] = [{"status": status, "sort": sort} for status in FILTERS for sort in SORTS]
    if category:
        lists_of += [{**one, "category": category} for one in lists_of[:6]]
    cursors = [
        (resource, one, cursor)
        for resource in (MARKETS, QUESTIONS)
        for one in lists_of
        for cursor in [site.page(resource, **one, limit=1)[1]]
        if cursor is not None
    ]
    for resource, of, cursor in cursors:
        others = [of] if resource == MARKETS else []
        draw = random.Random(cursor)  # noqa: S311 - no secret
        others += draw.sample([one for one in lists_of if one != of], 3)
        for one in others:
            checked.refused += 1
            path = f"{QUESTIONS}?{urlencode({**one, 'cursor': cursor})}"
            yield from _is_foreign(site, path, f"a cursor of {resource} {of}")
        if resource == QUESTIONS:
            checked.refused += 1
            path = f"{MARKETS}?{urlencode({**of, 'cursor': cursor})}"
            yield from _is_foreign(site, path, f"a cursor of {resource} {of}")


def _is_foreign(site: Site, path: str, what: str) -> Iterator[str]:
    status, _, body = site.ask(path)
    if status != 400 or _paths(body) != [["cursor"]]:
        yield f"{path} is a {status}, not a 400 of cursor: {what}"
    elif not _messages(body)[0].startswith("is not a cursor of this list"):
        yield f"{path} says {_messages(body)[0]}: {what}"


def _paths(body: bytes) -> list[list[str]]:
    return [one["path"] for one in json.loads(body).get("details", ())]


def _messages(body: bytes) -> list[str]:
    return [one["message"] for one in json.loads(body).get("details", ())]


def missing(site: Site, oracle: Oracle, checked: Checked) -> Iterator[str]:
    """What names no public question is the 404 of a market; what is no reference the 400 of a market's path."""
    is_extended = oracle.setting.is_extended
    nobody = site.ask(f"{MARKETS}/{NOBODY}")
    if nobody[0] != 404:
        yield f"{MARKETS}/{NOBODY} is a {nobody[0]}, not a 404"
    gone = oracle.ids_of_rows - oracle.questions.keys()
    names = [NOBODY, *sorted(name for name in gone if raw_json.is_uuid(name))]
    slugs = _other_slugs(oracle) if is_extended else ["some-slug", "snapshot"]
    for reference in [*names, *(name.upper() for name in names[:5]), *(slugs if is_extended else ())]:
        checked.missing += 1
        status, headers, body = site.ask(f"{QUESTIONS}/{reference}")
        if (status, body) != (404, nobody[2]):
            yield f"{QUESTIONS}/{reference} is a {status}, not the 404 of a market"
        else:
            yield from unequal_headers(f"{QUESTIONS}/{reference}", headers, nobody[1], has_more=False)
    names = ["marketRef", "questionRef"] if is_extended else ["marketId", "questionId"]
    for reference in [*_NO_REFERENCES, *(() if is_extended else slugs)]:
        checked.refused += 1
        # The market's path has an endpoint of this name; any other word is as little a reference as it.
        as_market = "some-slug" if reference == "snapshot" else reference
        status, _, body = site.ask(f"{QUESTIONS}/{reference}")
        wanted = site.ask(f"{MARKETS}/{as_market}")
        if (status, body) != (wanted[0], wanted[2].replace(names[0].encode(), names[1].encode())):
            yield f"{QUESTIONS}/{reference} is a {status}, not what a market's path answers, a {wanted[0]}"
    yield from _odd_paths(site, next(iter(oracle.questions), NOBODY))


def _odd_paths(site: Site, question: str) -> Iterator[str]:
    for path in _ODD_PATHS:
        target = quote(path.format(question), safe="/%")
        status, wanted = (site.ask(f"{resource}{target}")[0] for resource in (QUESTIONS, MARKETS))
        if status != wanted and not (wanted == 200 or path == "/snapshot/"):
            yield f"{QUESTIONS}{target} is a {status}, {MARKETS}{target} a {wanted}"


def _other_slugs(oracle: Oracle) -> list[str]:
    """Slugs that answer nothing here: of markets, of several questions, of none, and the name of an endpoint."""
    own = {one.slug.lower() for one in oracle.questions.values() if one.slug}
    of_markets = {str(item.value["slug"]) for item in oracle.markets.values() if "slug" in item.value}
    of_several = {one.question.slug for one in oracle.questions.values() if one.question.slug and not one.slug}
    found = {"no-such-question", "snapshot", "SnapShot", *of_markets, *of_several}
    return sorted(name for name in found if name.lower() not in own)
