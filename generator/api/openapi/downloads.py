"""The operations for what is neither market nor list: index, changelog, prices, feeds, dumps and the change feed.

Ranges and HEAD appear in prose only, as in the rest of the document.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from generator.api import changelog, downloads, feeds, keys, llms, prices, site_index
from generator.api.contract import API_VERSION
from generator.api.openapi import download_examples as examples
from generator.api.openapi import responses
from generator.api.openapi.schemas import JsonObject, ref
from generator.config.settings import Config

_GZIP: Final = keys.CONTENT_TYPES[".gz"]
_PARQUET: Final = keys.CONTENT_TYPES[".parquet"]
_CANDLES: Final = "candles/"
_REFUSED: Final = (405, 429, 503)
_PARTS: Final = """\
Parts can be requested with `Range`: the answer is a 206, or a 416 for a range beyond the end. HEAD tells the size. \
The file is sent as it is stored, without `Content-Encoding`."""
_WITHDRAWN: Final = """\
A file with a market that was withdrawn is gone at once, and answered 404: read the head again."""


def tags(config: Config) -> Iterator[JsonObject]:
    """The groups of these operations that these settings switch on."""
    if config.feeds.enabled:
        yield {"name": "feeds", "description": "New and resolved markets, for feed readers."}
    if config.dumps.ndjson:
        yield {"name": "dumps", "description": "All listed markets in one file, for download."}
    if config.has_changes:
        yield {"name": "changes", "description": "What changed from one build to the next."}


def paths(config: Config) -> JsonObject:
    """The paths that these settings switch on."""
    found = {
        f"/{API_VERSION}/": _get_index(config),
        f"/{keys.LLMS}": _get_llms(config),
        f"/{keys.CHANGELOG}": _get_changelog(),
    }
    if config.prices_file:
        found[f"/{keys.PRICES}"] = _get_prices()
    if config.feeds.enabled:
        found |= _feeds(config)
    if config.dumps.ndjson:
        found[f"/{keys.head(keys.DUMPS)}"] = _get_dump(config)
        found[f"/{keys.chunk(keys.DUMPS, downloads.MARKETS_FOLDER)}{{digest}}.{downloads.NDJSON}"] = _get_ndjson()
    if config.has_parquet:
        found |= _parquet(config)
    if config.archive.days:
        found[f"/{keys.head(keys.ARCHIVE)}"] = _get_archive(config)
        found[f"/{keys.archived_day('{date}')}"] = _get_day(config)
    if config.has_changes:
        found[f"/{keys.head(keys.CHANGES)}"] = _get_changes(config)
        found[f"/{keys.chunk(keys.CHANGES, '{digest}')}.{downloads.NDJSON}"] = _get_step()
    return {path: _item(path, operation, config) for path, operation in found.items()}


def _item(path: str, operation: JsonObject, config: Config) -> JsonObject:
    """The path with its operation, and where else than the others it is served."""
    is_elsewhere = "{digest}" in path and config.dumps.base_url is not None
    return {"get": operation, **({"servers": [{"url": config.files_url}]} if is_elsewhere else {})}


def _operation(tag: str, name: str, told: tuple[str, str], answer: JsonObject, *parameters: JsonObject) -> JsonObject:
    """An operation; `told` are its summary and its description."""
    summary, description = told
    return {
        "operationId": name,
        "summary": summary,
        "description": description,
        "tags": [tag],
        **({"parameters": list(parameters)} if parameters else {}),
        "responses": {"200": answer, **responses.refused(*([404] if parameters else []), *_REFUSED)},
    }


def _get_index(config: Config) -> JsonObject:
    shown = {"index": examples.of("What this site publishes", site_index.make(config))}
    answer = responses.document("The index.", ref("SiteIndex"), shown)
    text = "The addresses of everything else. What this site does not publish is absent."
    return _operation("build", "getIndex", ("Get the addresses of everything", text), answer)


def _get_llms(config: Config) -> JsonObject:
    shown = {"text": {"summary": "The text of this site", "value": llms.text(config)}}
    answer = responses.document("The text.", {"type": "string"}, shown, _media_type(keys.LLMS))
    return _operation("build", "getLlmsText", ("Get a short description as text", "The API on one screen."), answer)


def _get_changelog() -> JsonObject:
    text = (
        "What changed in this API, latest first. What could break a program is announced here at least "
        f"{changelog.NOTICE.days} days before it takes place, unless it mends a harm: its entry then begins with "
        f"`{changelog.WITHOUT_NOTICE.strip()}`"
    )
    oldest = changelog.Changelog(entries=changelog.CHANGELOG.entries[-1:])
    answer = responses.document("The changelog.", ref("Changelog"), {"oldest": examples.of("The oldest entry", oldest)})
    return _operation("build", "getChangelog", ("Get what changed in the API, and when", text), answer)


def _get_prices() -> JsonObject:
    text = (
        "Every open market in one object: what a price board would otherwise gather from many pages. It is a 404 if it "
        f"would be larger than {prices.MOST_BYTES // 1_000_000} MB: then read the dump."
    )
    shown = {"prices": examples.of("Two open markets", examples.prices_file())}
    answer = responses.document("The prices.", ref("Prices"), shown)
    operation = _operation("markets", "getPrices", ("Get the prices of all open markets", text), answer)
    return {**operation, "responses": {"200": answer, **responses.refused(404, *_REFUSED)}}


def _feeds(config: Config) -> JsonObject:
    text = (
        f"New markets, latest created first, or resolved ones, latest resolved first: {feeds.MOST_ENTRIES} at most. "
        "An entry shows only what seldom changes of a market, no price and no volume. Its id is the same in all feeds."
    )
    shown = {
        "json": ("getJsonFeed", ref("Feed"), examples.json_feeds(config), "JSON Feed", "JSON Feed 1.1."),
        "atom": ("getAtomFeed", {"type": "string"}, examples.atom_feeds(config), "Atom", "Atom, RFC 4287."),
    }
    found = {}
    for extension, (name, schema, example, form, standard) in shown.items():
        key = keys.feed("{feed}", extension)
        answer = responses.document("The feed.", schema, example, _media_type(key))
        told = (f"Get markets as {form}", f"{text} {standard}")
        found[f"/{key}"] = _operation("feeds", name, told, answer, _feed())
    return found


def _feed() -> JsonObject:
    return {
        "name": "feed",
        "in": "path",
        "required": True,
        "description": "Which markets.",
        "schema": ref("FeedName"),
        "examples": {name: {"summary": f"The feed `{name}`", "value": name} for name in feeds.FEED_NAMES},
    }


def _get_dump(config: Config) -> JsonObject:
    text = (
        "Names the files that hold all listed markets, with address, digest and size. Files never change: when a "
        "market does, this head names new ones. Members of public FX families are in none, as they are in no list. "
        "Take an address from here; do not build one."
    )
    shown = {"dump": examples.of("A dump without Parquet", examples.dump_head(config))}
    answer = responses.document("The head.", ref("DumpHead"), shown)
    return _operation("dumps", "getDump", ("Get the names of the files with all markets", text), answer)


def _get_ndjson() -> JsonObject:
    text = f"""\
A line for each listed market, ascending by id: the `market` of its detail. Compressed with gzip. {_PARTS}

A file that was replaced stays as long as the cursors of its time are valid. {_WITHDRAWN}"""
    answer = responses.file("The file.", _GZIP)
    return _operation("dumps", "getMarketsNdjson", ("Get all markets as NDJSON", text), answer, _digest())


def _parquet(config: Config) -> JsonObject:
    folder = f"/{keys.chunk(keys.DUMPS, '')}"
    answer = responses.file("The file.", _PARQUET)
    of_markets = f"The same markets as in NDJSON, a row for each. {_PARTS} {_WITHDRAWN}"
    found = {
        f"{folder}{downloads.MARKETS_FOLDER}{{digest}}.{downloads.PARQUET}": _operation(
            "dumps", "getMarketsParquet", ("Get all markets as Parquet", of_markets), answer, _digest()
        )
    }
    for path, name, title, what, parameters in _tables(config):
        text = f"{what}, made once a day. {_PARTS} {_WITHDRAWN}"
        found[f"{folder}{path}/{{digest}}.{downloads.PARQUET}"] = _operation(
            "dumps", name, (title, text), answer, *parameters, _digest()
        )
    return found


def _tables(config: Config) -> Iterator[tuple[str, str, str, str, tuple[JsonObject, ...]]]:
    """Path, name, title and content of the operations for tables, with their parameters."""
    tables = [table for table in downloads.tables(fills=config.has_fills) if table not in downloads.CANDLES]
    rows = "points or trades" if config.has_fills else "points"
    what = f"All {rows} of a period, or the prices of the markets that closed in it"
    name, title = "getTableParquet", "Get histories, fills or closes as Parquet"
    yield "{table}/{period}", name, title, what, (_of_table(tables), _period())
    lengths = [table.removeprefix(_CANDLES) for table in downloads.CANDLES]
    what = "All candles of a month or year: of days, or of hours, which are kept for 90 days at least"
    length = _parameter("length", "How long a candle is.", f"^({'|'.join(lengths)})$", lengths[0])
    yield f"{_CANDLES}{{length}}/{{period}}", "getCandlesParquet", "Get candles as Parquet", what, (length, _period())


def _period() -> JsonObject:
    form = "^period=[0-9]{4}(-[0-9]{2})?$"
    return _parameter("period", "The month or the year of its rows.", form, "period=2026-01")


def _of_table(tables: Sequence[str]) -> JsonObject:
    return _parameter("table", "Which rows.", f"^({'|'.join(tables)})$", "history")


def _get_archive(config: Config) -> JsonObject:
    text = (
        f"The days whose last dump is kept: {config.archive.days} at most besides `today`, which is not over and may "
        "change. A day without a build is not among them. To cite a day, quote its date and its `state`. A day that is "
        "over changes only when a market is withdrawn, which leaves every day, or when old texts are purged."
    )
    shown = {"archive": examples.of("A day that is over, and today", examples.archive_head(config))}
    answer = responses.document("The index.", ref("ArchiveHead"), shown)
    return _operation("dumps", "getArchive", ("Get the days of the archive", text), answer)


def _get_day(config: Config) -> JsonObject:
    text = (
        "The last dump of a day, in UTC: its files, with address, digest and size. A 404 if the archive lacks the day."
    )
    shown = {"day": examples.of("A day without Parquet", examples.archived_day(config))}
    answer = responses.document("The day.", ref("ArchivedDay"), shown)
    date = _parameter("date", "The day, in UTC.", "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", examples.DATE)
    return _operation("dumps", "getArchivedDay", ("Get the last dump of a day", text), answer, date)


def _get_changes(config: Config) -> JsonObject:
    text = f"""\
Names the steps from one serial to the next, oldest first and without gaps. There is a step for each build that \
changed a market. The newest steps are kept: for {downloads.STEP_LIFETIME.days} days at most, and as long as together \
with their entries here they are no larger than the dump.

To follow: fetch the `dump` named here once, and remember `session` and `serial`. Later, read this head again. Let n \
be its `serial` minus yours. If its `session` is another, if n is negative, or if there are fewer than n steps, start \
again from the dump; otherwise apply the last n steps. Then the SHA-256 digest of your markets, a line for each, \
ascending by id, must be `state`; if it is not, start again from the dump."""
    shown = {"changes": examples.of("Two steps", examples.changes_head(config))}
    answer = responses.document("The head.", ref("ChangesHead"), shown)
    return _operation("changes", "getChanges", ("Get the names of the steps", text), answer)


def _get_step() -> JsonObject:
    text = f"""\
One JSON object per line, compressed with gzip. First, for each market that is gone, `{{"gone": …}}` with the SHA-256 \
digest of its id. Then, ascending by id, each market that changed, with its `id` and the new values of its changed \
properties only, and each new one with all properties. A market that gained, lost or reordered properties is gone and \
new in the same step. {_PARTS} {_WITHDRAWN}"""
    answer = responses.file("The step.", _GZIP)
    return _operation("changes", "getChangeStep", ("Get what changed", text), answer, _digest())


def _digest() -> JsonObject:
    text = f"The first {downloads.NAME_LENGTH} hexadecimal digits of the SHA-256 digest of the file's bytes."
    return _parameter("digest", text, f"^[0-9a-f]{{{downloads.NAME_LENGTH}}}$", examples.DIGEST)


def _parameter(name: str, text: str, pattern: str, example: str) -> JsonObject:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": text,
        "schema": {"type": "string", "pattern": pattern},
        "example": example,
    }


def _media_type(key: str) -> str:
    return keys.content_type(key).partition(";")[0]
