"""The router core: the values of its template, the paths it knows, and its text with no edge around it.

It decides nothing about requests; `templates/edge/router.js.j2` does.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import product
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from generator.api import contract, cursors, downloads, file_names, forms, keys, slugs
from generator.api.downloads import MARKETS_FOLDER, NDJSON, PARQUET, QUESTIONS_FOLDER, tables
from generator.api.file_names import SHAPES_OF_TABLE
from generator.config.settings import Config
from generator.edge import responses, templates
from generator.search import buckets, folding, numbers, words
from generator.search import generation as index
from generator.site import families
from generator.site.family import ROOT
from generator.tree import chunks, layouts, pages


class Shapes(NamedTuple):
    """The paths of all files below the API's root: `0` is any digit, and `*` the digest that names a file.

    They are `whole`, or `root`, the name of one of these `tables`, and one of these `rests`.
    """

    whole: Sequence[str]
    root: str
    tables: Sequence[str]
    rests: Sequence[str]

    def all(self) -> list[str]:
        """Every path from its beginning to its end."""
        return [*self.whole, *(f"{self.root}{table}{rest}" for table, rest in product(self.tables, self.rests))]


def shapes(config: Config) -> Shapes:
    """The paths of all files that these settings switch on."""
    root, whole = f"{keys.DUMPS}/", list[str]()
    folders = (MARKETS_FOLDER, *([QUESTIONS_FOLDER] if config.questions.enabled else []))
    if config.dumps.ndjson:
        whole += (f"{root}{folder}*.{NDJSON}" for folder in folders)
    if config.has_parquet:
        whole += (f"{root}{folder}*.{PARQUET}" for folder in folders)
    if config.has_changes:
        whole.append(f"{keys.CHANGES}/*.{NDJSON}")
    return Shapes(whole, root, tables(fills=config.has_fills) if config.has_parquet else (), SHAPES_OF_TABLE)


def pattern(config: Config) -> str:
    """A regular expression for the files of downloads, without anchors and groups; nginx's and Python's."""
    return "|".join(file_names.expression(shape) for shape in shapes(config).all())


#: What all resources have in common: their paths below the API's root.
_PUBLIC: Final = keys.MARKETS.removeprefix(ROOT).rpartition("/")[0] + "/"
#: The resources, by their names in paths and keys.
_MARKETS, _QUESTIONS = (of.rpartition("/")[2] for of in (keys.MARKETS, keys.QUESTIONS))


def list_paths(config: Config) -> list[str]:
    """The path of each resource's list below `base_url`."""
    base, shown = (
        urlsplit(config.base_url).path,
        (keys.MARKETS, *([keys.QUESTIONS] if config.has_question_lists else [])),
    )
    return [f"{base}/{one}" for one in shown]


def resource_values(config: Config) -> dict[str, Any]:
    """All resources if there are others besides markets, and the folders that each of them has."""
    return {
        "markets": _MARKETS,
        "others": (_QUESTIONS,) if config.questions.enabled else (),
        "has_lists": config.has_question_lists,
        "version": ROOT,
        "public": _PUBLIC,
        "lists_folder": keys.LISTS.rpartition("/")[2],
        "detail_folder": keys.DETAILS.rpartition("/")[2],
        "slug_folder": keys.SLUGS.rpartition("/")[2],
        # Of the names of path parameters, such as `marketRef`.
        "reference": contract.market_parameter(config.variant).removeprefix("market"),
    }


def _name(key: str) -> str:
    return key.removeprefix(ROOT)


#: What `encodeURIComponent` leaves alone besides letters, digits, `-` and `_` (ECMA-262).
_UNRESERVED: Final = ".!~*'()"
#: Where an edge that cannot search names searches, below their list; no object lies there.
_SEARCH_FOLDER: Final = "q"
#: Where markets with all words are many, so many 91sts of the list are looked at for a page of them, before the whole.
_MOST_BLOCKS: Final = 8
#: The default sort of most statuses.
_USUAL_SORT: Final = Counter(contract.DEFAULT_SORT.values()).most_common(1)[0][0]
#: The errors that every router can answer, and that do not depend on the request.
_FIXED: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
#: The faults of requests that only those notice who read objects.
_FOUND_BY_READING: Final = ("cursor.gone", "q.absent", "q.words")
#: Those of an edge that counts requests and reads objects, and parts of them, itself.
_OF_READERS: Final = (
    HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
#: For edges that count requests before a script runs; the rule itself is `isSearch` in counting.js.j2. The name of the
#: parameter in its two spellings, and what may follow it.
_NAME: Final = "(?:q|%71)(?:=|&|$)"
#: Matches the query of a search, as sent. Groups capture nothing, as WAF refuses such.
QUERY_OF_SEARCH: Final = f"(?:^|&){_NAME}"


def render(config: Config) -> str:
    """The router core alone; its template documents how to call it."""
    return templates.rendered("edge/router.js.j2", counter_values(config))


def public_paths(config: Config) -> tuple[str, dict[str, str]]:
    """The path of the list below `base_url`, and the key of each document by its path."""
    base = urlsplit(config.base_url).path
    documents = {f"{base}/{ROOT}{name}": key for name, key in families.documents_of(config).items()}
    return f"{base}/{keys.MARKETS}", documents


def search_pattern(config: Config) -> str:
    """Matches the method and the target of a search, as sent, with a blank between them."""
    return rf"^(?:GET|HEAD) {re.escape(public_paths(config)[0])}[?](?:.*&)?{_NAME}"


def rewriter_values(config: Config) -> dict[str, Any]:
    """Values for an edge that cannot read objects: it rewrites a request to a key."""
    values = _values(config)
    if layouts.is_cut(config.layout):
        # Behind the router, another function cuts the pages that it names.
        values |= {"names_windows": True}
        if config.can_search:
            found = search_values()
            values |= {name: found[name] for name in ("longest_q", "search_folder", "letters", "sentences")}
            values |= {"names_searches": True}
    said = _said(values["sentences"], config)
    return values | {"sentences": {fault: said[fault] for fault in said if fault not in _FOUND_BY_READING}}


def _said(sentences: Mapping[str, str], config: Config) -> Mapping[str, str]:
    """What an edge says of faults, by their keys; with questions, the path's parameter has several names."""
    if not config.questions.enabled:
        return sentences
    found = {**sentences, **contract.question_errors(can_search="q.words" in sentences)}
    del found[contract.market_parameter(config.variant)]
    return found


def reader_values(config: Config) -> dict[str, Any]:
    """Values for an edge that can read objects: it serves both layouts, and tries the configured one first."""
    values = _values(config, *_OF_READERS) | cutter_values(config)
    values["sentences"] = _said(values["sentences"], config)
    return values | {"can_read": True, "is_cut": layouts.is_cut(config.layout), "instant_length": forms.LENGTH}


def counter_values(config: Config) -> dict[str, Any]:
    """Values for an edge that reads objects, and counts requests by the router's rules."""
    return reader_values(config) | {"counts": True}


def window_values(config: Config) -> dict[str, Any]:
    """Values for a script that cuts pages out of chunks."""
    return {
        **resource_values(config),
        "can_search": False,
        "lists": keys.LISTS,
        "head": keys.HEAD,
        "index": keys.INDEX,
        "chunks": keys.CHUNKS,
        "head_size": chunks.HEAD_SIZE,
        "index_line": chunks.LINE_LENGTH,
        "check_length": cursors.CHECK_LENGTH,
        "of_category": keys.CATEGORY_SEPARATOR,
        "first_headers": {"content-type": keys.CONTENT_TYPE, "cache-control": keys.MUTABLE},
        "later_headers": {"content-type": keys.CONTENT_TYPE, "cache-control": keys.immutable_control(config)},
    }


def cutter_values(config: Config) -> dict[str, Any]:
    """Values for a script that cuts pages, and searches where there is an index."""
    return window_values(config) | (search_values() if config.can_search else {})


def search_values() -> dict[str, Any]:
    """Values for a script that evaluates `q`."""
    codes = {state: code for code, state in enumerate(contract.MARKET_STATUSES)}
    return {
        "can_search": True,
        "sentences": contract.parameter_errors("extended", can_search=True),
        "search_list": keys.SEARCH,
        "search_folder": _SEARCH_FOLDER,
        "all": keys.SEARCH.partition("/")[0],
        "search_letter": keys.SEARCH_LETTER,
        "letters": layouts.LETTERS + keys.SEARCH_LETTER,
        "longest_q": contract.Q_LENGTH,
        "most_objects": index.MOST_OBJECTS,
        "most_buckets": index.MOST_BUCKETS,
        "page_letter": pages.LETTER,
        "pages_per_folder": keys.PAGES_PER_FOLDER,
        "block_sizes": index.BLOCK_SIZES,
        "word_length": words.WORD_LENGTH,
        "of_category_word": words.OF_CATEGORY,
        "key_length": buckets.KEY_LENGTH,
        "unspaced_key_length": buckets.UNSPACED_KEY_LENGTH,
        "states_count": index.STATES,
        "states_of": {name: sum(1 << codes[one] for one in found) for name, found in contract.STATES_OF_FILTER.items()},
        "first_digit": numbers.FIRST,
        "backslash": numbers.BACKSLASH,
        "last_base": numbers.LAST_BASE,
        "high_base": numbers.HIGH_BASE,
        "base": numbers.BASE,
        "bits_length": numbers.BITS,
        "highest_bit": 1 << numbers.BITS - 1,
        "most_blocks": _MOST_BLOCKS,
        "any": buckets.ANY,
        "word_end": buckets.MARK,
        "word_end_code": ord(buckets.MARK),
        "letter": folding.LETTER,
        "combining": folding.MARK,
        "separator": folding.SEPARATOR,
        "unspaced": folding.UNSPACED,
        "hangul": folding.HANGUL,
        "blank": ord(" "),
    }


def _documents(config: Config) -> Iterator[tuple[str, str]]:
    """Keys by paths, both below the API's root; an empty key is equal to the path."""
    for name, key in families.documents_of(config).items():
        below = key.removeprefix(ROOT)
        yield name, "" if below == name else below


def _path_values(config: Config) -> dict[str, Any]:
    """The paths of the API below its root."""
    return {
        **resource_values(config),
        "api_path": f"{urlsplit(config.base_url).path}/{ROOT}",
        "markets_name": keys.MARKETS.removeprefix(ROOT),
        "documents": dict(_documents(config)),
        "optional": families.optional(config),
        "shapes": shapes(config),
        "file_digest_length": downloads.NAME_LENGTH,
    }


def _order_values() -> dict[str, Any]:
    """What a list may show, and in which order."""
    return {
        "statuses": contract.STATUS_FILTERS,
        "default_status": contract.DEFAULT_STATUS,
        "sorts": contract.SORTS,
        "default_sorts": contract.DEFAULT_SORT,
        "usual_default_sort": _USUAL_SORT,
        "other_default_sorts": {one: sort for one, sort in contract.DEFAULT_SORT.items() if sort != _USUAL_SORT},
    }


def _values(config: Config, *statuses: HTTPStatus) -> dict[str, Any]:
    """Constants of the contract, keys, cursors and layouts, and the paths of the API; `statuses` of further errors."""
    errors = {status: responses.error_bodies()[status] for status in (*_FIXED, *statuses)}
    sentences = contract.parameter_errors(config.variant)
    others = (contract.market_parameter(config.variant), contract.REQUEST)
    return {
        "is_extended": config.variant == "extended",
        "slugs": keys.SLUGS,
        "slug_digest_length": keys.SLUG_DIGEST_LENGTH,
        "of_category": keys.CATEGORY_SEPARATOR,
        # Some engines count a character beyond the basic plane twice.
        "longest_category": 2 * contract.CATEGORY_LENGTH,
        "words_length": slugs.WORDS_LENGTH,
        "without_words": slugs.WITHOUT_WORDS,
        "name_digest_length": slugs.DIGEST_LENGTH,
        "reference_length": slugs.REFERENCE_LENGTH,
        "unreserved": _UNRESERVED,
        **_path_values(config),
        "lists": keys.LISTS,
        "details": keys.DETAILS,
        "first": keys.FIRST,
        "pages_per_folder": keys.PAGES_PER_FOLDER,
        "longest_target": contract.TARGET_LENGTH,
        "request": contract.REQUEST,
        "parameters": [name for name in sentences if name not in others and "." not in name],
        **_order_values(),
        "reference_sentence": sentences[contract.market_parameter(config.variant)],
        "limit_min": contract.LIMIT_MIN,
        "limit_max": contract.LIMIT_MAX,
        "limit_default": contract.LIMIT_DEFAULT,
        "check_length": cursors.CHECK_LENGTH,
        "generation_length": cursors.GENERATION_LENGTH,
        "position_length": cursors.POSITION_LENGTH,
        "can_read": False,
        "counts": False,
        "is_apart": False,
        "can_search": False,
        "names_windows": False,
        "names_searches": False,
        "letters": layouts.LETTERS,
        "page_letter": pages.LETTER,
        "common": responses.COMMON,
        "sentences": sentences,
        "invalid": contract.invalid().error,
        "invalid_headers": responses.error_headers(HTTPStatus.BAD_REQUEST, config),
        "fixed_headers": {204: responses.PREFLIGHT} | {code: responses.error_headers(code, config) for code in errors},
        "fixed_bodies": {204: ""} | errors,
    }
