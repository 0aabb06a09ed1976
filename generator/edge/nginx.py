"""Values of the nginx templates: folders, addresses, the rate limit in nginx's terms. Pure."""

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from ipaddress import IPv4Address
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from generator.api import contract, cursors, keys
from generator.config.settings import Config
from generator.edge import responses, router
from generator.site import families
from generator.site.family import ROOT
from generator.tree import layouts, pages

#: The folder of nginx's configuration; nginx writes its own files there, too.
FOLDER: Final = "nginx"
SCRIPT: Final = "nginx.js"
LOCAL: Final = "nginx.conf"
BUCKET: Final = "bucket.conf"
#: Parts of these two, for the http block and the server block of an nginx that has other sites, too.
_PARTS: Final = {LOCAL: ("http.conf", "server.conf"), BUCKET: ("bucket-http.conf", "bucket-server.conf")}
#: Everything that any settings produce.
NAMES: Final = (SCRIPT, LOCAL, *_PARTS[LOCAL], BUCKET, *_PARTS[BUCKET])

#: nginx's `variables_hash_bucket_size` allows names of 46 letters; the longest addition is `_searches`.
_LONGEST_WORD: Final = 24
_NO_WORD: Final = re.compile("[^a-z0-9]+")
#: Location through which the router reads objects; internal, so readers cannot reach it.
OBJECTS: Final = "/-/objects/"
#: What a bucket may answer besides an object, 304, or the 403 and 404 of one that it does not have.
_FAILURES: Final = tuple(
    status.value
    for status in HTTPStatus
    if status >= HTTPStatus.MULTIPLE_CHOICES and status not in {HTTPStatus.NOT_MODIFIED, 403, 404}
)
#: Of a range that is not in the file.
_OUTSIDE: Final = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
#: The largest object that the router reads, in bytes: a chunk has at most 2 MB, but the longest line of the search
#: index grows with the site, to 1.4 MB for a million markets.
LARGEST_OBJECT: Final = 16 << 20
#: The inner server's, on a loopback address of each site's own: unregistered, and no port of outgoing connections.
_INSIDE_PORT: Final = 20127
#: The inner server's header for the readers' Cache-Control; its own Cache-Control is for the cache.
_INNER_CONTROL: Final = "X-Reader-Cache-Control"
#: The header that keeps browsers from coming back without TLS.
_TLS_ONLY: Final = "strict-transport-security"
#: Seconds for which the cache may show an answer while it is fetched again.
_STALE: Final = "stale-while-revalidate=1"
#: The types of feeds, SQL and text, by extension; nginx adds the character set.
_TYPED: Final = {
    "json": keys.FEED_TYPE.partition(";")[0],
    **{name: keys.CONTENT_TYPES[f".{name}"].partition(";")[0] for name in ("atom", "sql", "txt")},
}
#: What nginx compresses, and names the character set of.
_COMPRESSIBLE: Final = (keys.CONTENT_TYPE.partition(";")[0], *_TYPED.values())
#: Requests of one network that may be in progress. nginx allows one connection of HTTP/2 128 of them.
CONNECTIONS: Final = 150
#: The port where something in front terminates TLS.
_PLAIN_PORT: Final = 8080


def configurations(config: Config) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Name, template and values of each file: for the output folder, and for the bucket if there is one."""
    yield from _configurations(LOCAL, _values(config) | {"bucket": None})
    if bucket := _bucket(config):
        yield from _configurations(BUCKET, _values(config) | {"bucket": bucket})


def _configurations(complete: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    http, server = _PARTS[complete]
    named = {**values, "http_part": http, "server_part": server}
    yield complete, "nginx.conf.j2", named | {"name": complete, "is_complete": True}
    yield http, "http.conf.j2", named | {"is_complete": False}
    yield server, "server.conf.j2", named | {"is_complete": False}


def site(base_url: str) -> str:
    """The prefix of a site's names, so that several sites can share an nginx: a word, different for each address."""
    url = urlsplit(base_url)
    word = _NO_WORD.sub("_", f"{url.netloc}{url.path}".lower())
    if len(word) > _LONGEST_WORD:
        digest = f"_{zlib.crc32(base_url.encode()):08x}"
        word = word[: _LONGEST_WORD - len(digest)] + digest
    return f"markets_{word}"


def inside(base_url: str) -> str:
    """Address and port of the inner server: one of four million loopback addresses, chosen by the site's address."""
    number = zlib.crc32(base_url.encode()) & 0x3FFFFF | 0x7F400000
    return f"{IPv4Address(number)}:{_INSIDE_PORT}"


def script_values(config: Config) -> dict[str, Any]:
    """Values of the script, in addition to those of the router core."""
    output = config.output.absolute()
    return {
        "site": site(config.base_url),
        "markets_path": router.public_paths(config)[0],
        "public_path": f"{router.public_paths(config)[0].rpartition('/')[0]}/",
        "inner_control": _INNER_CONTROL,
        "tls_only": _TLS_ONLY if _is_secure(config) else "",
        "objects": OBJECTS,
        "largest": LARGEST_OBJECT,
        "always": keys.BUILD,
        "output": f"{output}/",
        "pid": str(output / "edge" / FOLDER / "nginx.pid"),
        "is_apart": True,
        **_usual(),
    }


def _usual() -> dict[str, str]:
    """Patterns, for JavaScript, of what usually follows the list's path; the router decides on everything else."""
    generation = rf"{pages.LETTER}[0-9a-f]{{{cursors.GENERATION_LENGTH - 1}}}"
    position = rf"[1-9][0-9]{{0,{cursors.POSITION_LENGTH - 1}}}"
    cursor = rf"([0-9a-f]{{{cursors.CHECK_LENGTH}}})({generation})({position})"
    page = rf"status=({_one_of(contract.STATUS_FILTERS)})&sort=({_one_of(contract.SORTS)})&limit=([1-9][0-9]{{0,2}})"
    return {
        "usual_market": r"^\/(([0-9a-f]{2})[0-9a-f]{6}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$",
        "usual_page": rf"^\?({page})(?:&cursor={cursor})?$",
    }


def _one_of(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, words))


def _values(config: Config) -> dict[str, Any]:
    output, window = config.output.absolute(), responses.window_seconds(config)
    return {
        "site": site(config.base_url),
        "script": SCRIPT,
        "output": str(output),
        "folder": str(output / "edge" / FOLDER),
        "listen": _listen(config),
        "trusted_proxies": config.rate_limit.trusted_proxies,
        "requests": config.rate_limit.requests,
        "searches": config.rate_limit.searches,
        "window": window,
        "requests_per_minute": rate_per_minute(config.rate_limit.requests, window),
        "searches_per_minute": rate_per_minute(config.rate_limit.searches, window),
        "connections": CONNECTIONS,
        "immutable_keys": rf"~^{_folders_of_lists(config)}/[^/]+/[^/]+/(?!{keys.FIRST}/|{re.escape(keys.HEAD)}$)",
        "inside": inside(config.base_url),
        "inner_control": _INNER_CONTROL,
        "stale": _STALE,
        "search": router.search_pattern(config) if config.can_search else "",
        # Pages of these paths are cut out of several objects, so there is no file for nginx to look for.
        "composed_paths": router.list_paths(config) if layouts.is_cut(config.layout) else (),
        "objects": OBJECTS,
        "largest": LARGEST_OBJECT,
        "immutable": keys.immutable_control(config),
        "mutable": keys.MUTABLE,
        "tls_seconds": responses.TLS_SECONDS if _is_secure(config) else 0,
        "common": _common(config),
        "errors": dict(_errors(config)),
        "preflight": responses.PREFLIGHT | _common(config),
        "failures": _FAILURES,
        **_values_of_files(config),
    }


def _folders_of_lists(config: Config) -> str:
    """A regular expression for the folders of the lists of each resource."""
    if not config.questions.enabled:
        return re.escape(keys.LISTS)
    return f"(?:{'|'.join(map(re.escape, (keys.LISTS, keys.QUESTION_LISTS)))})"


def _values_of_files(config: Config) -> dict[str, Any]:
    """The values for files of downloads, and for documents that are not JSON."""
    files, root = router.pattern(config), f"{urlsplit(config.base_url).path}/"
    typed = [key for key in families.documents_of(config).values() if keys.content_type(key) != keys.CONTENT_TYPE]
    # What is too long is for the router to refuse. The question mark does not count.
    short = f"(?!.{{{contract.TARGET_LENGTH + 2}}})"
    # nginx looks for a location by the path as it has decoded it, so this is only a first look. It does so before it
    # counts the request, so no pattern may take long.
    decoded = f"^{re.escape(unquote(root))}"
    return {
        "files": rf"~^(?:GET|HEAD) {short}{re.escape(root)}({ROOT}(?:{files}))(?:\?|$)" if files else "",
        "file_location": f"{decoded}{ROOT}(?:{files})$",
        "json": keys.CONTENT_TYPE,
        "file_types": keys.DOWNLOAD_TYPES,
        "file_control": keys.download_control(config),
        "file_failures": [status for status in _FAILURES if status != _OUTSIDE],
        "typed_location": f"{decoded}(?:{'|'.join(map(re.escape, typed))})$",
        "typed": _TYPED,
        "compressible": " ".join(_COMPRESSIBLE),
    }


def rate_per_minute(requests: int, seconds: int) -> int:
    """The lowest rate in nginx that grants this many requests; nginx rounds down to thousandths per second."""
    thousandths = -(-requests * 1000 // seconds)
    return -(-thousandths * 60 // 1000)


def _errors(config: Config) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for status, body in responses.error_bodies().items():
        if status == _OUTSIDE:
            continue  # the script's
        headers = responses.error_headers(status, config) | _common(config)
        del headers["content-type"]  # the same as nginx's default_type and charset
        yield status, {"headers": headers, "body": body}


def _common(config: Config) -> dict[str, str]:
    """The headers of every answer; nginx leaves out one whose variable is empty."""
    own = {_TLS_ONLY: f"${site(config.base_url)}_tls"} if _is_secure(config) else {}
    return responses.COMMON | own


def _is_secure(config: Config) -> bool:
    return urlsplit(config.base_url).scheme == "https"


def _listen(config: Config) -> str:
    url = urlsplit(config.base_url)
    if url.scheme == "https":
        return str(_PLAIN_PORT)
    port = url.port or 80
    return f"127.0.0.1:{port}" if config.is_local else str(port)


def _bucket(config: Config) -> dict[str, str] | None:
    target, endpoint = config.publish.bucket(), config.publish.endpoint_url
    if not target or not endpoint:
        return None
    url = urlsplit(endpoint)
    host = f"[{url.hostname}]" if ":" in str(url.hostname) else str(url.hostname)
    return {
        "url": str(config.publish.target),
        "scheme": url.scheme,
        "host": url.netloc,
        "server": f"{host}:{url.port or (443 if url.scheme == 'https' else 80)}",
        # Encoded, because `$` begins a variable here.
        "path": quote(url.path, safe="/%") + "/" + quote("/".join(target).rstrip("/")),
    }
