"""Every key that may exist under `v1/`, with its Content-Type and Cache-Control. The only place that spells them.

    v1/openapi.json                                                     the interface description
    v1/build.json                                                       what readers see: as-of, counts, version
    v1/errors/<status>.json                                             error bodies an edge answers as they stand
    v1/public/markets/snapshot.json                                     landing page groups
    v1/public/markets/detail/<first two of id>/<id>.json                one market
    v1/public/markets/lists/<list>/first/<limit>.json                   first pages: the pointers, overwritten last
    v1/public/markets/lists/<list>/<generation>/<limit>-<n>/<position>.json     immutable pages, a hundred a folder

`<list>` is `<status>/<sort>`. Keys are relative to the output folder and to the bucket's prefix alike.
"""

from typing import Final

from generator.contract import API_VERSION, Sort, StatusFilter

MARKETS: Final = f"{API_VERSION}/public/markets"
LISTS: Final = f"{MARKETS}/lists"
DETAILS: Final = f"{MARKETS}/detail"
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
_LIST_PARTS: Final = 2


def list_name(status: StatusFilter, sort: Sort) -> str:
    """The name of a list, in keys, cursors and reports alike."""
    return f"{status}/{sort}"


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


def detail(market_id: str) -> str:
    """The key of one market's detail."""
    return f"{DETAILS}/{market_id[:2]}/{market_id}.json"


def error(status: int) -> str:
    """The key of the error body an edge answers with `status`."""
    return f"{ERRORS}/{status}.json"


def is_immutable(key: str) -> bool:
    """Whether the key lies within a generation."""
    return is_generation("/".join(key.split("/")[:-2]))


def is_generation(folder: str) -> bool:
    """Whether the folder is that of a generation."""
    parts = folder.removeprefix(f"{LISTS}/").split("/")
    return folder.startswith(f"{LISTS}/") and len(parts) == _LIST_PARTS + 1 and parts[-1] != FIRST


def headers(key: str) -> dict[str, str]:
    """The HTTP headers that are stored with the object."""
    return {"Content-Type": CONTENT_TYPE, "Cache-Control": IMMUTABLE if is_immutable(key) else MUTABLE}


def is_first_page(key: str) -> bool:
    """Whether a walk can begin with the object."""
    return key.startswith(f"{LISTS}/") and key.split("/")[-2] == FIRST


def rank(key: str) -> int:
    """The place of a mutable object in publication order: details, documents, first pages, `build.json`."""
    if key.startswith(f"{DETAILS}/"):
        return 0
    if is_first_page(key):
        return 2
    return 3 if key == BUILD else 1
