"""The command `pm`: a site's markets for people, programs and language models.

Exit codes: 0 done; 1 refused, no site there, or the copy cannot be updated, and trying again will hardly help; 2 wrong
usage; 3 the site did not answer, try again later; 130 interrupted.
"""

import logging
import os
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawTextHelpFormatter
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import public_markets_client as api
from public_markets_client import reading, selecting, tables
from public_markets_client.decoding import wire_name
from public_markets_client.printing import (
    ALL,
    DEFAULT_ROWS,
    Size,
    json_of,
    print_all,
    print_json,
    say,
    show,
    show_bytes,
)
from public_markets_client.reading import Reading
from public_markets_client.requester import site_address

_STORES: dict[str, Any] = {"sqlite": api.SqliteStore, "ndjson": api.NdjsonStore, "duckdb": api.DuckDbStore}
_PAGE = 100
_FAILED, _TRY_LATER = 1, 3
#: Data of this age is older than any usual schedule makes it.
_OLD = timedelta(days=1)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    said = logging.Handler()
    said.emit = lambda record: say(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("public_markets_client")
    log.setLevel(logging.INFO)
    log.handlers = [said]
    given = Namespace(run=None)
    try:
        given = _parser().parse_args(_joined(sys.argv[1:] if arguments is None else arguments))
        progress = show_bytes if sys.stderr.isatty() else None
        with api.Client(given.url, api.Options(hosts=given.host, progress=progress)) as client:
            given.run(client, given)
        sys.stdout.flush()
    except BrokenPipeError:
        # Who reads has enough; Python would complain when it flushes stdout at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (api.ClientError, OSError) as error:
        say(_told_of(error, given))
        return _TRY_LATER if isinstance(error, api.UnavailableError) else _FAILED
    return 0


def _joined(arguments: list[str]) -> list[str]:
    """The same with `--since -24h` as one word: argparse takes what begins with a dash for an option."""
    joined = list[str]()
    for word in arguments:
        if joined[-1:] == ["--since"] and re.match("-[0-9]", word):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _told_of(error: Exception, given: Namespace) -> str:
    """What went wrong, and what to do."""
    if isinstance(error, api.OtherHostError):
        return f"{error.url}: {reading.elsewhere(error)}"
    hint = _TO_FIND.get(given.run) if isinstance(error, api.NotFoundError) else None
    return f"{error}; {hint}" if hint else str(error)


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="pm", description=__doc__, formatter_class=RawTextHelpFormatter)
    parser.add_argument("--version", action="version", version=f"pm {api.__version__}")
    parser.add_argument("url", metavar="URL", type=site_address, help="address of the site, before /v1")
    parser.add_argument("--host", metavar="HOST", action="append", default=[], help="another host that may be asked")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _command(commands, "about", _about, "says how old the data is, what there is, and where to get all of it")
    listing = _command(commands, "list", _list, "lists markets")
    search = _command(commands, "search", _list, "lists markets whose title or description has all the words")
    search.add_argument("q", metavar="WORD", nargs="+")
    questions = _command(commands, "questions", _questions, "lists questions, each with its markets")
    for command, status in ((listing, "open"), (search, "all"), (questions, "open")):
        _add_selection(command, api.Question if command is questions else api.Market, status)
    market = _command(commands, "market", _market, "shows markets")
    market.add_argument("refs", metavar="REF", nargs="+", help="id or slug")
    _command(commands, "question", _question, "shows a question").add_argument("ref", metavar="REF", help="id or slug")
    prices = _command(commands, "prices", _prices, "lists the prices of all open markets")
    prices.add_argument("--sort", choices=("volume", "prob"), default="volume", help="highest first (default: volume)")
    changes = _command(commands, "changes", _changes, "lists what the newest builds changed")
    of_changes = changes.add_mutually_exclusive_group()
    of_changes.add_argument("--builds", type=_positive, default=1, metavar="N", help="how many builds (default: 1)")
    of_changes.add_argument("--since", type=_since, metavar="TIME", help="all of this time: 24h, 7d, 2026-01-31")
    moves = _command(commands, "moves", _moves, "lists the markets whose probability moved most")
    moves.add_argument("--since", type=_since, default="24h", metavar="TIME", help="such as 7d (default: 24h)")
    direction = moves.add_mutually_exclusive_group()
    for name, sign in (("--up", 1), ("--down", -1)):
        direction.add_argument(name, dest="sign", action="store_const", const=sign, help=f"only {name[2:]}wards")
    moves.set_defaults(sign=0)
    mirror = _command(commands, "mirror", _mirror, "makes a copy of all markets, or brings it up to date")
    mirror.add_argument("folder", metavar="DIR", type=Path)
    mirror.add_argument("--to", choices=[*_STORES], default="sqlite", help="what the copy is (default: sqlite)")
    return parser


def _add_selection(command: ArgumentParser, kind: Any, status: str) -> None:
    """Which rows of a list, in which order, and what of them."""
    known = ", ".join(selecting.fields_of(kind))
    command.epilog = f"FIELD is one of {known}. Times are as 2026-01-31 or, from the data's as-of, now, -24h or +7d."
    usual = f"(default: {status}{', or all with a condition on it' if status != 'all' else ''})"
    command.add_argument("--status", choices=get_args(api.Status), help=usual)
    sorts = f"highest first: {', '.join(get_args(api.Sort))}, or a FIELD (default: as the site sorts)"
    command.add_argument("--sort", type=_typed(selecting.order, kind), metavar="SORT", help=sorts)
    command.add_argument("--reverse", action="store_true", help="lowest first")
    command.add_argument("--category", metavar="NAME", help="of a category alone")
    for how, says in (("is", "equal to"), ("min", "at least"), ("max", "at most")):
        command.add_argument(
            f"--{how}", dest="conditions", type=_typed(selecting.condition, kind, how), action="append", default=[],
            metavar="FIELD=VALUE", help=f"only {says} this; may be repeated",
        )  # fmt: skip
    parts = command.add_mutually_exclusive_group()
    parts.add_argument("--fields", type=_typed(selecting.fields, kind), metavar="FIELD,…", help="the columns")
    parts.add_argument(
        "--count", type=_typed(selecting.field, kind), nargs="?", const=selecting.STATE, metavar="FIELD",
        help="how many there are in all, and with each value (default: state)",
    )  # fmt: skip
    command.set_defaults(kind=kind, usual=status)


def _command(commands: Any, name: str, run: Callable[..., None], does: str) -> ArgumentParser:
    parser: ArgumentParser = commands.add_parser(name, help=does, description=does)
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", dest="form", action="store_const", const="json", help="one JSON value")
    forms.add_argument("--ndjson", dest="form", action="store_const", const="ndjson", help="a JSON value per line")
    if name not in {"about", "market", "question", "mirror"}:
        limits = parser.add_mutually_exclusive_group()
        limits.add_argument("--limit", type=_positive, metavar="N", help="how many rows (default: 20, if they fit)")
        limits.add_argument("--all", dest="limit", action="store_const", const=ALL, help="all rows")
    parser.set_defaults(run=run, form="table")
    return parser


def _since(text: str) -> Any:
    """A time, or how long ago it is."""
    ago = re.fullmatch(r"-?([0-9]+[mhdw])", text)
    try:
        return selecting.moment(f"-{ago[1]}" if ago else text)
    except ValueError:
        raise ArgumentTypeError(f"{text} is no time such as 24h, 7d or 2026-01-31") from None


def _positive(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise ArgumentTypeError(f"{text} is not a number from 1 on")
    return int(text)


def _typed(read: Callable[..., Any], *known: Any) -> Callable[[str], Any]:
    """What argparse calls with the text of an option; a ValueError becomes wrong usage."""

    def typed(text: str) -> Any:
        try:
            return read(*known, text)
        except (ValueError, KeyError) as error:
            raise ArgumentTypeError(f"{text}: {error}") from None

    return typed


def _about(client: api.Client, given: Namespace) -> None:
    build, index = client.build(), client.index()
    if given.form != "table":
        print_all([json_of({"build": build.json, "index": index.json})])
        return
    print_all(tables.fitting(tables.about_lines(build, index.json, datetime.now(timezone.utc)), tables.BUDGET))


def _list(client: api.Client, given: Namespace) -> None:
    words = " ".join(getattr(given, "q", ())) or None
    given.status = given.status or selecting.status_for(given.conditions, given.usual)
    if not _is_selective(given):
        try:
            _show_walk(client, given, words)
        except api.ApiError as error:
            if error.path != "q" or client.build().search:
                raise
        else:
            return
    _show_selected(client, given, reading.markets(client, given.status, given.category, words))


def _show_walk(client: api.Client, given: Namespace, words: str | None) -> None:
    markets = client.markets(status=given.status, sort=given.sort, category=given.category, q=words)

    def size() -> int | str | None:
        # Of a search and of a category no site says it: as many as a page more are counted.
        return _counted_on(given, markets) if words or given.category else _told(given, client.build().lists)

    _show_list(given, markets, size)


def _questions(client: api.Client, given: Namespace) -> None:
    given.status = given.status or selecting.status_for(given.conditions, given.usual)
    if _is_selective(given):
        _show_selected(client, given, reading.questions(client, given.status, given.category))
        return
    questions = client.questions(status=given.status, sort=given.sort, category=given.category)

    def size() -> int | str | None:
        counts = None if given.category else client.build().questions
        return _told(given, counts.lists) if counts and counts.lists else _counted_on(given, questions)

    _show_list(given, questions, size)


def _is_selective(given: Namespace) -> bool:
    """Whether the whole list has to be read."""
    is_sorted = given.sort in {None, *get_args(api.Sort)}
    return bool(given.conditions or given.count or given.reverse or not is_sorted)


def _show_selected(client: api.Client, given: Namespace, found: Reading) -> None:
    as_of = _as_of(client)
    rows = [row for row in found.rows if all(one.holds(row, as_of) for one in given.conditions)]
    if not given.count:
        ordered = selecting.in_order(rows, given.sort, given.status, is_reversed=given.reverse)
        _show_list(given, ordered, lambda: None, found.missing)
        return
    counts = selecting.counts(rows, given.count)
    given.limit = given.limit or (ALL if given.form != "table" else None)
    many = f"{len(rows)}{'' if given.status == 'all' else f' {given.status}'}"
    told = f"at least {many}; partial: {found.missing}" if found.missing else f"{many} in all"
    columns = ["count", "volume", given.count]
    show(given, counts, columns, lambda shown: (tables.count_row(one) for one in shown), told)


def _show_list(given: Namespace, rows: Any, size: Size, missing: str = "") -> None:
    usual = tables.QUESTION_COLUMNS if given.kind is api.Question else tables.MARKET_COLUMNS
    asked = [given.sort, *(one.name for one in given.conditions)]
    columns = given.fields or tables.with_columns(usual, asked)
    if given.fields and given.form != "table":
        names = [(wire_name(name), name) for name in given.fields]
        rows = ({key: row.json.get(key, selecting.made(row, name)) for key, name in names} for row in rows)
    note = f"partial: {missing}" if missing else ""
    show(given, rows, columns, lambda shown: (tables.row(one, columns) for one in shown), note, size)


def _as_of(client: api.Client) -> datetime:
    """The as-of of the data; says so if it is old."""
    as_of = client.build().as_of
    age = datetime.now(timezone.utc) - as_of
    if age > _OLD:
        say(f"the data is {age.days} days old, of {tables.shown(as_of)}")
    return as_of


def _counted_on(given: Namespace, listed: Iterator[Any]) -> int | str:
    """How many rows a list has, of which one more was read than is shown."""
    many = (given.limit or DEFAULT_ROWS) + 1 + (more := len([*islice(listed, _PAGE)]))
    return many if more < _PAGE else f"at least {many}"


def _told(given: Namespace, lists: Mapping[str, int]) -> int | None:
    """What the site says."""
    return next((many for one, many in lists.items() if one.startswith(f"{given.status}/")), None)


def _market(client: api.Client, given: Namespace) -> None:
    details = [client.market(ref) for ref in given.refs]
    as_of = _as_of(client) if given.form == "table" else None
    _show_details(given, details, lambda one: tables.detail_lines(one, reading.trend(one, as_of)))  # type: ignore[arg-type]


def _question(client: api.Client, given: Namespace) -> None:
    _show_details(given, [client.question(given.ref)], tables.question_lines)


def _show_details(given: Namespace, details: list[Any], lines: Callable[[Any], Iterable[str]]) -> None:
    if given.form == "json" and len(details) > 1:
        print_json(given, details)
        return
    for at, detail in enumerate(details):
        if given.form != "table":
            print_all([json_of(detail)])
            continue
        every = [*lines(detail)]
        short = [*tables.fitting(every, (tables.BUDGET - tables.LAST) // len(details))]
        rest = len(every) - len(short)
        more = [f"({rest} lines more; --json has all)"] if rest else []
        print_all([*([""] if at else []), *short, *more])


def _prices(client: api.Client, given: Namespace) -> None:
    prices = sorted(client.prices().markets, key=lambda one: getattr(one, given.sort), reverse=True)
    show(given, prices, tables.PRICE_COLUMNS, lambda shown: _with_markets(client, "open", tables.price_row, shown))


def _changes(client: api.Client, given: Namespace) -> None:
    changes: Any = client.latest_changes(given.builds)
    note = ""
    if given.since is not None:
        changes, note = _changes_since(client, _instant(client, given))
    show(
        given,
        changes,
        tables.CHANGE_COLUMNS,
        lambda shown: _with_markets(client, "all", tables.change_row, shown),
        note,
    )


def _changes_since(client: api.Client, since: datetime) -> tuple[list[dict[str, Any]], str]:
    """The changes since then, one for each market, and what they are."""
    times = client.step_times()
    builds = sum(as_of > since for as_of in times)
    changes = selecting.merged(client.latest_changes(builds) if builds else ())
    kinds = Counter(one["kind"] for one in changes)
    told = ", ".join(f"{kinds[kind]} {kind}" for kind in selecting.KINDS if kinds[kind]) or "nothing"
    if builds < len(times):
        return changes, f"{told} since {tables.shown(since)}"
    begins = f"begins at {tables.shown(times[0])}" if times else "is empty"
    return changes, f"{told}; partial: the feed {begins}"


def _moves(client: api.Client, given: Namespace) -> None:
    since = _instant(client, given)
    found = reading.moves(client, since)
    moves = [one for one in found.rows if one.by * given.sign >= 0]
    note = f"since {tables.shown(since)}" + (f"; partial: {found.missing}" if found.missing else "")
    show(given, moves, tables.MOVE_COLUMNS, lambda shown: _with_markets(client, "all", tables.move_row, shown), note)


def _instant(client: api.Client, given: Namespace) -> datetime:
    """The time of --since, which may be counted from as-of."""
    as_of = _as_of(client)
    return given.since if isinstance(given.since, datetime) else as_of + given.since


def _with_markets(client: api.Client, status: Any, row: Any, shown: list[Any]) -> Iterator[tables.Row]:
    """Rows, each of a value and its market, None where there is none any more."""
    ids = [one.get("id") if isinstance(one, dict) else one.id for one in shown]
    missing = [known for one, known in zip(shown, ids, strict=True) if known and "question" not in _values(one)]
    markets = reading.shown(client, missing, status) if missing else {}
    return (row(one, markets.get(str(known))) for one, known in zip(shown, ids, strict=True))


def _values(one: Any) -> Mapping[str, Any]:
    return one if isinstance(one, dict) else {}


def _mirror(client: api.Client, given: Namespace) -> None:
    given.folder.mkdir(parents=True, exist_ok=True)
    path = given.folder / f"markets.{given.to}"
    store = _STORES[given.to](path)
    found = client.follow(store)
    if given.form == "table":
        kinds = [change.kind for change in found]
        summary = ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("added", "changed", "gone"))
        print_all([f"{path}: {summary}; serial {store.position().serial}"])
    else:
        told = ({"kind": one.kind, "id": one.id, "market": one.market and one.market.json} for one in found)
        print_json(given, told)


#: What to do if it is not found.
_TO_FIND = {
    _market: "it was withdrawn or hidden, or never was: sites do not say which; to find its id: pm URL search WORDS",
    _question: "to find its id: pm URL questions; those of the kind single are markets: pm URL market ID",
    _questions: "the site publishes no questions",
    _prices: "the site publishes no prices; pm URL list --all has those of markets",
    _changes: "the site publishes no change feed; pm URL list --sort activity has what happened last",
    _mirror: "the site publishes no change feed, which a copy is made from; pm URL list --all --ndjson has its markets",
}
