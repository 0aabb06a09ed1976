"""The prose of the OpenAPI document, for authors of clients. It knows no schema and no path."""

from datetime import timedelta
from typing import Final

from generator.api import contract, links
from generator.api.contract import Sort, StatusFilter, Variant
from generator.config.settings import Config

#: What each value of the list's `status` parameter selects.
STATUSES: Final[dict[StatusFilter, str]] = {
    "open": "Markets that are open.",
    "archive": "Markets that are closed, resolved or cancelled.",
    "closed": "Markets that closed and await their resolution.",
    "resolved": "Markets that were resolved.",
    "cancelled": "Markets that were cancelled.",
    "all": "Markets in any state.",
}

#: What each value of the list's `sort` parameter compares.
SORTS: Final[dict[Sort, str]] = {
    "popular": "By `traderCount`, then by `volume`, highest first.",
    "activity": "By `lastActivityAt`, latest first.",
    "volume": "By `volume`, highest first.",
    "new": "By `createdAt`, latest first.",
    "ended": "By `resolvedAt` or, where that is null, by `closeTime`, latest first.",
}


def span(length: timedelta) -> str:
    """Format a duration in the largest unit without a fraction: `6 hours`, `90 seconds`."""
    seconds = int(length.total_seconds())
    units = (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))
    name, size = next(unit for unit in units if seconds % unit[1] == 0)
    return f"{seconds // size} {name}{'' if seconds == size else 's'}"


def introduction(config: Config) -> str:
    """The description of the API: what applies to every operation."""
    limit = config.rate_limit
    searches = f", {limit.searches} of which may be searches (`q`)" if config.can_search else ""
    return f"""\
Public data of a prediction market, for reading: no key, no token, no cookies.

**Freshness.** The data is published anew about every {config.schedule} min, all of it as it was at one instant; \
`getBuild` tells which. Times are RFC 3339 in UTC.

**Caching.** Responses carry `ETag` and `Cache-Control`. A request with `If-None-Match` may be answered 304 without a \
body.

**Rate limit.** One address may make {limit.requests} requests in {span(limit.window)}{searches}; cached answers \
count. Beyond that the answer is 429; wait as long as `Retry-After` says. Clients must not get around the limit, \
neither by sending from several addresses nor by polling aggressively.

**Requests.** Methods are GET and HEAD, and OPTIONS for browsers; any other is answered 405. Unknown query parameters \
are ignored. A known one that is empty, repeated or malformed is answered 400, and so is a path and query of more than \
{contract.TARGET_LENGTH:,} characters together. Paths are exact: a trailing slash is a 404.

{_pages(config)}\
**Texts.** Questions, descriptions, names and reasons come from whoever wrote them, unchanged. They are plain text, \
not HTML: escape them before you put them into a page. They may hold any character, line breaks and `<` included.

**Errors.** Every error has the same JSON body, `ErrorResponse`. A 503 means that the data cannot be read for now: try \
again, and do not take it for a market or page that is gone."""


def _pages(config: Config) -> str:
    """The paragraph on the pages of markets; empty if readers cannot tell where they are."""
    template = links.uri_template(config.market_url)
    if template is None:
        return ""
    return f"""\
**Pages.** The page of a market, for people, is at `{template}`: a URI template (RFC 6570), to fill in with its \
`{links.name_in(template)}`.

"""


def listing(config: Config) -> str:
    """The description of the list and of walks through it."""
    is_refused = config.variant == "extended" and not config.can_search
    search = "\n\nSearch, the parameter `q`, is not offered here and answered 400." if is_refused else ""
    return f"""\
Lists public markets, a page at a time. Members of a public FX family are not listed; `getMarket` has them.

To read a whole list, ask without `cursor`, then pass each `nextCursor` on until it is null. Such a walk stays in the \
list as it was when the walk began, however often new data is published meanwhile: nothing is missing, nothing comes \
twice. A list that has been replaced stays readable for {span(config.cursor.lifetime)} at least, unless something in \
it had to be withdrawn; after that its cursors are answered 400, and the walk has to start again from the first \
page. The messages for `cursor` tell that from a cursor of another list and from one that is none.{search}"""


def sorting() -> str:
    """The description of the sort orders."""
    defaults: dict[Sort, list[str]] = {}
    for status, sort in contract.DEFAULT_SORT.items():
        defaults.setdefault(sort, []).append(f"`{status}`")
    lines = "\n".join(f"- `{sort}`: {SORTS[sort]}" for sort in contract.SORTS)
    default = "; ".join(f"`{sort}` with status {', '.join(statuses)}" for sort, statuses in defaults.items())
    return f"""\
The order of the list. A sort never leaves a market out.

{lines}

Markets that compare equal follow by `id`, ascending: every order is total. Without this parameter: {default}."""


STATUS: Final = "\n".join(
    ["Which markets to list.", "", *(f"- `{status}`: {STATUSES[status]}" for status in contract.STATUS_FILTERS)]
)
LIMIT: Final = """\
How many markets a page holds at most. It may change during a walk; some pages are then shorter, so only a null \
`nextCursor` means the end."""
CATEGORY: Final = """\
The name of a category as markets show it in `category` and `categories`, or its slug: only its markets are listed. \
Both give the same pages and cursors; any other spelling is a 400. `getBuild` names every category that has lists, \
with its slug. A category whose name is made of lower-case ASCII letters, digits and single hyphens between them is \
its own slug. Any other slug is made of the name's runs of ASCII letters and digits, in lower case and joined by \
hyphens, cut to 40 characters and freed of hyphens at its end (`category` if nothing is left), two hyphens, and the \
first 10 hexadecimal digits of the SHA-256 of the name in UTF-8."""
MARKET_ID: Final = "The market's UUID, in upper or lower case."
MARKET_REF: Final = "The market's UUID or its slug, in upper or lower case. Both give the same answer."


def cursor(config: Config) -> str:
    """The description of the cursor parameter."""
    bound = "`status` and `sort`" if config.variant == "core" else "`status`, `sort` and `category`"
    if config.can_search:
        bound = "`status`, `sort`, `category` and words of `q`"
    return f"""\
The `nextCursor` of the page before; leave it out for the first page. It is opaque, and valid only with the {bound} of \
the page it came from."""


def q(config: Config) -> str:
    """The description of the search parameter."""
    texts = " or ".join(config.search_texts)
    rewriting = "" if config.layout == "chunks" else " An edge that can only rewrite addresses answers 400."
    return f"""\
Lists only the markets where each of these words is in the {texts}, in the order of the list. A word of three letters \
or more also matches the beginning of a longer word; a shorter one matches whole words only. Case and accents do not \
matter (NFKD, without marks, case-folded); anything but letters and digits separates words. In Chinese and Japanese \
text, every two neighboring characters of `q` must be neighbors. At most {contract.Q_LENGTH} characters, with a letter \
or digit among them. A page may hold fewer markets than `limit`: only a null `nextCursor` means the end.{rewriting}"""


def build(variant: Variant) -> str:
    """The description of `build.json`."""
    use = "Tells monitors and mirrors how fresh the data is and how much of it there is."
    of_categories = " It names the categories that can be listed."
    return use if variant == "core" else use + of_categories


def snapshot(config: Config) -> str:
    """The description of the snapshot."""
    return f"Small groups of open markets for a landing page, at most {config.snapshot.size} markets each."


def detail(config: Config) -> str:
    """The description of a market's detail as configured."""
    shown = config.detail
    book = "" if shown.order_book else " The order book is not published here: both sides are always empty."
    return f"""\
One public market. Members of FX families are found here, too. There are at most {shown.recent_fills} recent fills and \
{shown.history_points} points of history; a longer history is thinned evenly in time, its ends always kept.{book}

A market that is not public is answered exactly like one that does not exist."""
