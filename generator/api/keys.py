"""Every key that may exist under `v1/`, with its Content-Type and Cache-Control. The only place that spells them.

    v1/openapi.json                                                     the interface description
    v1/build.json                                                       what readers see: as-of, counts, version
    v1/errors/<status>.json                                             error bodies an edge answers as they stand
    v1/public/markets/snapshot.json                                     landing page groups
    v1/public/markets/detail/<first two of id>/<id>.json                one market
    v1/public/markets/slug/<first two of digest>/<digest>.json          the same market, where it has a slug

In the layout `pages`:

    v1/public/markets/lists/<list>/first/<limit>.json                   first pages: the pointers, overwritten last
    v1/public/markets/lists/<list>/<generation>/<limit>-<n>/<position>.json     immutable pages, a hundred a folder

In the layout `chunks`:

    v1/public/markets/lists/<list>/head.json                            the pointer: what every first page is cut from
    v1/public/markets/lists/<list>/<generation>/index.json              immutable: the chunks of one generation
    v1/public/markets/lists/<list>/chunks/<first two of digest>/<digest>.json   immutable, shared by generations

`<list>` is `<status>/<sort>`, or `<status>.<category>/<sort>` for the markets of one category, named by its slug.
`<digest>` is that of the slug in lower case: slugs may be longer than file names, most begin alike, and file systems
disagree on case. Keys are relative to the output folder and to the bucket's prefix alike.
"""

import hashlib
from typing import Final

from generator.api.contract import API_VERSION, Sort, StatusFilter

MARKETS: Final = f"{API_VERSION}/public/markets"
LISTS: Final = f"{MARKETS}/lists"
DETAILS: Final = f"{MARKETS}/detail"
SLUGS: Final = f"{MARKETS}/slug"
SNAPSHOT: Final = f"{MARKETS}/snapshot.json"
OPENAPI: Final = f"{API_VERSION}/openapi.json"
BUILD: Final = f"{API_VERSION}/build.json"
ERRORS: Final = f"{API_VERSION}/errors"

CONTENT_TYPE: Final = "application/json; charset=utf-8"
#: A generation never changes, so the CDN keeps it for a year. Browsers, which no invalidation reaches, forget it
#: within a minute, so that a takedown really ends it.
IMMUTABLE: Final = "public, max-age=60, s-maxage=31536000, immutable"
#: Mutable objects: seconds in which a reader may see the previous build.
MUTABLE: Final = "public, max-age=10, s-maxage=30, stale-while-revalidate=60"

#: Names per folder; directories stay small on every file system.
PAGES_PER_FOLDER: Final = 100
FIRST: Final = "first"
HEAD: Final = "head.json"
INDEX: Final = "index.json"
CHUNKS: Final = "chunks"
#: Between a status and a category; part of neither.
OF_CATEGORY: Final = "."
SLUG_DIGEST_LENGTH: Final = 32
_LIST_PARTS: Final = 2


def list_name(status: StatusFilter, sort: Sort, category: str | None = None) -> str:
    """The name of a list, in keys, cursors and reports alike; `category` is a slug."""
    return f"{status}/{sort}" if category is None else f"{status}{OF_CATEGORY}{category}/{sort}"


def list_prefix(list_name: str) -> str:
    """The folder of a list: its first pages and its generations."""
    return f"{LISTS}/{list_name}"


def generation_prefix(list_name: str, generation: str) -> str:
    """The folder of one generation; it exists whole or not at all."""
    return f"{LISTS}/{list_name}/{generation}"


def page_folder(limit: int, position: int) -> str:
    """The folder, within its generation, of the page of `limit` items that starts at `position`."""
    return f"{limit}-{position // limit // PAGES_PER_FOLDER}"


def page(list_name: str, generation: str, limit: int, position: int) -> str:
    """The key of the page of `limit` items that starts at `position`, a multiple of `limit` above zero."""
    return f"{generation_prefix(list_name, generation)}/{page_folder(limit, position)}/{position}.json"


def first_page(list_name: str, limit: int) -> str:
    """The key of the page that a request without a cursor gets."""
    return f"{list_prefix(list_name)}/{FIRST}/{limit}.json"


def head(list_name: str) -> str:
    """The key of the object from which an edge cuts every page that a request without a cursor gets."""
    return f"{list_prefix(list_name)}/{HEAD}"


def index(list_name: str, generation: str) -> str:
    """The key of the object that names the chunks of a generation."""
    return f"{generation_prefix(list_name, generation)}/{INDEX}"


def chunk(list_name: str, digest: str) -> str:
    """The key of a chunk of the list, named by its content."""
    return f"{list_prefix(list_name)}/{CHUNKS}/{digest[:2]}/{digest}.json"


def detail(market_id: str) -> str:
    """The key of one market's detail."""
    return f"{DETAILS}/{market_id[:2]}/{market_id}.json"


def detail_by_slug(slug: str) -> str:
    """The key under which the same detail is found by the market's slug, in whatever case it is written."""
    digest = hashlib.sha256(slug.lower().encode()).hexdigest()[:SLUG_DIGEST_LENGTH]
    return f"{SLUGS}/{digest[:2]}/{digest}.json"


def details(market_id: str, slug: str | None) -> tuple[str, ...]:
    """Every key under which one market's detail is found."""
    return (detail(market_id),) if slug is None else (detail(market_id), detail_by_slug(slug))


def error(status: int) -> str:
    """The key of the error body an edge answers with `status`."""
    return f"{ERRORS}/{status}.json"


def is_immutable(key: str) -> bool:
    """Whether the object belongs to generations, which never change."""
    return key.startswith(f"{LISTS}/") and not is_first_page(key)


def is_generation(folder: str) -> bool:
    """Whether the folder is that of a generation."""
    parts = folder.removeprefix(f"{LISTS}/").split("/")
    return folder.startswith(f"{LISTS}/") and len(parts) == _LIST_PARTS + 1 and parts[-1] not in (FIRST, CHUNKS)


def headers(key: str) -> dict[str, str]:
    """The HTTP headers that are stored with the object."""
    return {"Content-Type": CONTENT_TYPE, "Cache-Control": IMMUTABLE if is_immutable(key) else MUTABLE}


def is_first_page(key: str) -> bool:
    """Whether walks begin with the object: a first page, or the head that first pages are cut from."""
    below = key.removeprefix(f"{LISTS}/").split("/")[_LIST_PARTS:]
    return key.startswith(f"{LISTS}/") and below[:1] in ([FIRST], [HEAD])


def rank(key: str) -> int:
    """The place of a mutable object in publication order: details, documents, first pages, `build.json`."""
    if key.startswith((f"{DETAILS}/", f"{SLUGS}/")):
        return 0
    if is_first_page(key):
        return 2
    return 3 if key == BUILD else 1
