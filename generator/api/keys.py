"""Makes the keys of everything under `v1/`, and tells Content-Type and Cache-Control by the key. No other module does.

What there is under which keys, `generator.site.families` says. Keys are relative to the output folder and to the
bucket's prefix. Beside `v1/`, in a store as in the output folder, lie private objects:

    blocked.json                                                        the blocked list
    state/<name>                                                        what a large record or manifest says of markets
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from generator.api import cursors
from generator.api.contract import API_VERSION, Sort, StatusFilter
from generator.config.settings import Config

#: Beside `v1/`, private.
BLOCKED: Final = "blocked.json"
#: How the names of damaged blocked lists begin that a takedown kept aside.
BLOCKED_ASIDE: Final = "blocked-"
BLOCKED_NAMES: Final = (BLOCKED, BLOCKED_ASIDE)
STATES: Final = "state/"

MARKETS: Final = f"{API_VERSION}/public/markets"
LISTS: Final = f"{MARKETS}/lists"
DETAILS: Final = f"{MARKETS}/detail"
SLUGS: Final = f"{MARKETS}/slug"
QUESTIONS: Final = f"{API_VERSION}/public/questions"
QUESTION_LISTS: Final = f"{QUESTIONS}/lists"
QUESTION_DETAILS: Final = f"{QUESTIONS}/detail"
QUESTION_SLUGS: Final = f"{QUESTIONS}/slug"
SNAPSHOT: Final = f"{MARKETS}/snapshot.json"
OPENAPI: Final = f"{API_VERSION}/openapi.json"
BUILD: Final = f"{API_VERSION}/build.json"
ERRORS: Final = f"{API_VERSION}/errors"
SITE_INDEX: Final = f"{API_VERSION}/index.json"
LLMS: Final = f"{API_VERSION}/llms.txt"
CHANGELOG: Final = f"{API_VERSION}/changelog.json"
PRICES: Final = f"{API_VERSION}/prices.json"
HISTORY: Final = f"{API_VERSION}/history.json"
DATASET: Final = f"{API_VERSION}/dataset.json"
FEEDS: Final = f"{API_VERSION}/feeds"

CONTENT_TYPE: Final = "application/json; charset=utf-8"
#: The types of objects that are not JSON, by extension.
CONTENT_TYPES: Final[Mapping[str, str]] = {
    ".gz": "application/gzip",
    ".parquet": "application/vnd.apache.parquet",
    ".atom": "application/atom+xml; charset=utf-8",
    ".sql": "application/sql; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}
#: Those of files of downloads.
DOWNLOAD_TYPES: Final = {extension: CONTENT_TYPES[extension] for extension in (".gz", ".parquet")}
FEED_TYPE: Final = "application/feed+json; charset=utf-8"
#: A generation never changes, so the CDN keeps it for a year. Browsers, which no invalidation reaches, keep it for a
#: minute, so that a takedown takes effect.
IMMUTABLE: Final = "public, max-age=60, s-maxage=31536000, immutable"
#: The same where nothing can purge the CDN's copies: they end within minutes by themselves.
UNPURGED_IMMUTABLE: Final = "public, max-age=60, s-maxage=300, immutable"
#: Mutable objects: for some seconds readers may see the previous build.
MUTABLE: Final = "public, max-age=10, s-maxage=30, stale-while-revalidate=60"

#: Error bodies never change, and a CDN must have them when the store fails; browsers must not take one for an answer
#: to the next request.
ERROR: Final = "public, max-age=0, s-maxage=86400"

#: Pages per folder: keeps directories small on every file system.
PAGES_PER_FOLDER: Final = 100
FIRST: Final = "first"
HEAD: Final = "head.json"
INDEX: Final = "index.json"
CHUNKS: Final = "chunks"
#: Separates status and category; occurs in neither.
CATEGORY_SEPARATOR: Final = "."
SLUG_DIGEST_LENGTH: Final = 32
#: What names of lists of questions begin with; those of markets begin with the status.
OF_QUESTIONS: Final = "questions/"
#: Under which the search index has its keys; no sort has this name.
SEARCH: Final = "all/search"
#: The first letter of its generations, which have chunks in either layout.
SEARCH_LETTER: Final = "s"
_BELOW_DETAILS: Final = f"{DETAILS}/"
_BELOW_QUESTION_DETAILS: Final = f"{QUESTION_DETAILS}/"
_BELOW_LISTS: Final = (f"{LISTS}/", f"{QUESTION_LISTS}/")
_EXTENSION_LENGTH: Final = len(".json")
#: The characters of a detail's key from the id on.
_DETAIL_END: Final = 36 + _EXTENSION_LENGTH
#: The names of the downloads, which have generations and keys like lists; no list has such a name.
DUMPS: Final = "dumps"
CHANGES: Final = "changes"
DOWNLOADS: Final = (DUMPS, CHANGES)
ATTACH: Final = f"{API_VERSION}/{DUMPS}/attach.sql"
#: Former programs kept the dump of each day in an archive, a family of this name, whose files lay among those of dumps.
ARCHIVE: Final = f"{DUMPS}/archive"
ARCHIVE_PREFIX: Final = f"{API_VERSION}/{ARCHIVE}/"
#: What has generations like a list, but is none: each is made from all lists, and has an index.
INDEXED: Final = (SEARCH, *DOWNLOADS)
#: The first letter of the generations of downloads.
DOWNLOAD_LETTER: Final = "d"
#: Files of downloads are stored compressed: compressing them again gains nothing, and would end ranges.
_UNTOUCHED: Final = ", no-transform"
_LIST_PARTS: Final = 2
_FOLDERS: Final = tuple(f"{API_VERSION}/{name}/" for name in DOWNLOADS)
_DOWNLOAD_HEADS: Final = tuple(f"{API_VERSION}/{name}/{HEAD}" for name in DOWNLOADS)
_DOWNLOAD_GENERATION: Final = re.compile(
    rf"{API_VERSION}/({'|'.join(DOWNLOADS)})/{DOWNLOAD_LETTER}[0-9a-f]{{{cursors.GENERATION_LENGTH - 1}}}", re.ASCII
)


def list_name(status: StatusFilter, sort: Sort, category: str | None = None) -> str:
    """The name of a list in keys, cursors and reports; `category` is a slug."""
    return f"{status}/{sort}" if category is None else f"{status}{CATEGORY_SEPARATOR}{category}/{sort}"


def question_list_name(status: StatusFilter, sort: Sort, category: str | None = None) -> str:
    """The name of a list of questions; no list of markets has it, so its cursors are foreign to all of these."""
    return OF_QUESTIONS + list_name(status, sort, category)


def list_prefix(list_name: str) -> str:
    """The folder of a list or a download: its first pages and its generations."""
    if list_name in DOWNLOADS:
        return f"{API_VERSION}/{list_name}"
    if list_name.startswith(OF_QUESTIONS):
        return f"{QUESTION_LISTS}/{list_name.removeprefix(OF_QUESTIONS)}"
    return f"{LISTS}/{list_name}"


def list_of(key: str) -> str | None:
    """The name of the list, of either resource, that the object or the folder is part of; None for any other."""
    below = _below_lists(key)
    if below is None or len(below) <= _LIST_PARTS:
        return None
    of = OF_QUESTIONS if key.startswith(QUESTION_LISTS) else ""
    return of + "/".join(below[:_LIST_PARTS])


def _below_lists(key: str) -> list[str] | None:
    """The names below the folder of all lists of a resource; None for a key that is not there."""
    found = next((folder for folder in _BELOW_LISTS if key.startswith(folder)), None)
    return None if found is None else key.removeprefix(found).split("/")


def generation_prefix(list_name: str, generation: str) -> str:
    """The folder of one generation; it exists completely or not at all."""
    return f"{list_prefix(list_name)}/{generation}"


def page_folder(limit: int, position: int) -> str:
    """The folder, within its generation, of the page of `limit` items that starts at `position`."""
    return f"{limit}-{position // limit // PAGES_PER_FOLDER}"


def page(list_name: str, generation: str, limit: int, position: int) -> str:
    """The key of the page of `limit` items that starts at `position`, a multiple of `limit` above zero."""
    return f"{generation_prefix(list_name, generation)}/{page_folder(limit, position)}/{position}.json"


def first_page(list_name: str, limit: int) -> str:
    """The key of the page for requests without a cursor."""
    return f"{list_prefix(list_name)}/{FIRST}/{limit}.json"


def head(list_name: str) -> str:
    """The key of the object from which an edge cuts the first pages of every limit."""
    return f"{list_prefix(list_name)}/{HEAD}"


def index(list_name: str, generation: str) -> str:
    """The key of the object that names the chunks of a generation."""
    return f"{generation_prefix(list_name, generation)}/{INDEX}"


def chunk(list_name: str, digest: str) -> str:
    """The key of a chunk of the list, named by the digest of its content, or of a file of a download, by its name."""
    if list_name in DOWNLOADS:
        return f"{list_prefix(list_name)}/{digest}"
    return f"{list_prefix(list_name)}/{CHUNKS}/{digest[:2]}/{digest}.json"


def detail(reference: str) -> str:
    """The key of the detail of one market, by its id, or of one question, by its reference."""
    if reference.startswith(OF_QUESTIONS):
        return question(reference.removeprefix(OF_QUESTIONS))
    return f"{DETAILS}/{reference[:2]}/{reference}.json"


def market_id(key: str) -> str | None:
    """The id of the market whose detail, by its id, has this key; None for any other key."""
    return key[-_DETAIL_END:-_EXTENSION_LENGTH] if key.startswith(_BELOW_DETAILS) else None


def detail_by_slug(slug: str) -> str:
    """The key of the same detail by the market's slug, ignoring case."""
    return _by_slug(SLUGS, slug)


def _by_slug(folder: str, slug: str) -> str:
    digest = hashlib.sha256(slug.lower().encode()).hexdigest()[:SLUG_DIGEST_LENGTH]
    return f"{folder}/{digest[:2]}/{digest}.json"


def details(reference: str, slug: str | None) -> tuple[str, ...]:
    """All keys of the detail of one market or question."""
    if reference.startswith(OF_QUESTIONS):
        return questions(reference.removeprefix(OF_QUESTIONS), slug)
    return (detail(reference),) if slug is None else (detail(reference), detail_by_slug(slug))


def is_detail(key: str) -> bool:
    """Whether the object is a market's detail, by its id or its slug."""
    return key.startswith((f"{DETAILS}/", f"{SLUGS}/"))


def question_reference(question_id: str) -> str:
    """What stands for a question where ids stand for markets: no market has it as its id."""
    return OF_QUESTIONS + question_id


def is_question_reference(reference: str) -> bool:
    """Whether it stands for a question, not for a market."""
    return reference.startswith(OF_QUESTIONS)


def bare_id(reference: str) -> str:
    """The id of the market or question that the reference stands for."""
    return reference.removeprefix(OF_QUESTIONS)


def question_ids(references: Iterable[str]) -> frozenset[str]:
    """The ids of the questions among these references."""
    return frozenset(one.removeprefix(OF_QUESTIONS) for one in references if is_question_reference(one))


def question(question_id: str) -> str:
    """The key of one question's detail."""
    return f"{QUESTION_DETAILS}/{question_id[:2]}/{question_id}.json"


def question_by_slug(slug: str) -> str:
    """The key of the same detail by the question's slug, ignoring case."""
    return _by_slug(QUESTION_SLUGS, slug)


def questions(question_id: str, slug: str | None) -> tuple[str, ...]:
    """All keys of one question's detail, in the order in which a withdrawal deletes them: by slug, then by id."""
    return (question(question_id),) if slug is None else (question_by_slug(slug), question(question_id))


def question_id(key: str) -> str | None:
    """The id of the question whose detail, by its id, has this key; None for any other key."""
    return key[-_DETAIL_END:-_EXTENSION_LENGTH] if key.startswith(_BELOW_QUESTION_DETAILS) else None


def is_question(key: str) -> bool:
    """Whether the object is a question's detail, by its id or its slug."""
    return key.startswith((_BELOW_QUESTION_DETAILS, f"{QUESTION_SLUGS}/"))


def is_of_one(key: str) -> bool:
    """Whether the object is the detail of one market or question."""
    return is_detail(key) or is_question(key)


def feed(name: str, extension: str) -> str:
    """The key of a feed, `new` or `resolved`, as `json` or `atom`."""
    return f"{FEEDS}/{name}.{extension}"


def error(status: int) -> str:
    """The key of the error body for `status`."""
    return f"{ERRORS}/{status}.json"


def is_immutable(key: str) -> bool:
    """Whether the object is part of a generation, which never changes."""
    return key.startswith((*_BELOW_LISTS, *_FOLDERS)) and not is_first_page(key) and key != ATTACH


def is_download(key: str) -> bool:
    """Whether the object is a file of a download: part of a dump, or a step of the change feed."""
    return key.startswith(_FOLDERS) and not key.endswith(".json") and key != ATTACH


def is_generation(folder: str) -> bool:
    """Whether `folder` is that of a generation."""
    if folder.startswith(_FOLDERS):
        return _DOWNLOAD_GENERATION.fullmatch(folder) is not None
    parts = _below_lists(folder)
    return parts is not None and len(parts) == _LIST_PARTS + 1 and parts[-1] not in (FIRST, CHUNKS)


def immutable_control(config: Config) -> str:
    """The Cache-Control of immutable objects, and of pages that an edge cuts out of them."""
    return UNPURGED_IMMUTABLE if config.publish.is_unpurged else IMMUTABLE


def download_control(config: Config) -> str:
    """The Cache-Control of files of downloads."""
    return immutable_control(config) + _UNTOUCHED


def headers(key: str, immutable: str = IMMUTABLE) -> dict[str, str]:
    """The HTTP headers stored with the object; `immutable` is the Cache-Control of immutable ones."""
    control = immutable if is_immutable(key) else ERROR if key.startswith(f"{ERRORS}/") else MUTABLE
    return {"Content-Type": content_type(key), "Cache-Control": control + (_UNTOUCHED if is_download(key) else "")}


def content_type(key: str) -> str:
    """The Content-Type of the object."""
    if key.endswith(".json"):
        return FEED_TYPE if key.startswith(f"{FEEDS}/") else CONTENT_TYPE
    return CONTENT_TYPES.get(f".{key.rpartition('.')[2]}", CONTENT_TYPE)


def is_first_page(key: str) -> bool:
    """Whether readers begin at the object: a first page, or the head of a list or a download."""
    if key.startswith(_FOLDERS):
        return key in _DOWNLOAD_HEADS
    parts = _below_lists(key)
    return parts is not None and parts[_LIST_PARTS : _LIST_PARTS + 1] in ([FIRST], [HEAD])
