"""The command `pm`: a site's markets for people, programs and language models.

Exit codes: 0 done; 1 refused, no site there, or the copy cannot be updated, and trying again will hardly help; 2 wrong
usage; 3 the site did not answer, try again later; 130 interrupted.
"""

import json
import logging
import os
import shutil
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawTextHelpFormatter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import public_markets_client as api
from public_markets_client import tables
from public_markets_client.requester import site_address

_STORES: dict[str, Any] = {"sqlite": api.SqliteStore, "ndjson": api.NdjsonStore, "duckdb": api.DuckDbStore}
#: How many rows there are in all, if that is known; asked only if not all are shown.
Size = Callable[[], int | str | None]
_DEFAULT_ROWS, _ALL, _PAGE = 20, 1 << 40, 100
_FAILED, _TRY_LATER = 1, 3


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    said = logging.Handler()
    said.emit = lambda record: _say(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("public_markets_client")
    log.setLevel(logging.INFO)
    log.handlers = [said]
    try:
        given = _parser().parse_args(arguments)
        progress = _show_bytes if sys.stderr.isatty() else None
        with api.Client(given.url, api.Options(hosts=given.host, progress=progress)) as client:
            given.run(client, given)
        sys.stdout.flush()
    except BrokenPipeError:
        # Who reads has enough; Python would complain when it flushes stdout at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (api.ClientError, OSError) as error:
        hint = _TO_FIND.get(given.run) if isinstance(error, api.NotFoundError) else None
        _say(f"{error}; {hint}" if hint else str(error))
        return _TRY_LATER if isinstance(error, api.UnavailableError) else _FAILED
    return 0


def _say(sentence: str) -> None:
    print(f"pm: {tables.printable(sentence)}", file=sys.stderr)


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="pm", description=__doc__, formatter_class=RawTextHelpFormatter)
    parser.add_argument("--version", action="version", version=f"pm {api.__version__}")
    parser.add_argument("url", metavar="URL", type=site_address, help="address of the site, before /v1")
    parser.add_argument("--host", metavar="HOST", action="append", default=[], help="another host that may be asked")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    listing = _command(commands, "list", _list, "lists markets")
    search = _command(commands, "search", _list, "lists markets whose title or description has all the words")
    search.add_argument("q", metavar="WORD", nargs="+")
    for command, status in ((listing, "open"), (search, "all")):
        command.add_argument("--status", choices=get_args(api.Status), default=status, help=f"(default: {status})")
        command.add_argument("--sort", choices=[*get_args(api.Sort), "prob"], help="(default: as the site sorts)")
        command.add_argument("--category", metavar="NAME", help="markets of a category alone")
    questions = _command(commands, "questions", _questions, "lists questions, each with its markets")
    questions.add_argument("--status", choices=get_args(api.Status), default="open", help="(default: open)")
    questions.add_argument("--sort", choices=get_args(api.Sort), help="(default: as the site sorts)")
    questions.add_argument("--category", metavar="NAME", help="questions of a category alone")
    _command(commands, "market", _market, "shows a market").add_argument("ref", metavar="REF", help="id or slug")
    _command(commands, "question", _question, "shows a question").add_argument("ref", metavar="REF", help="id or slug")
    prices = _command(commands, "prices", _prices, "lists the prices of all open markets")
    prices.add_argument("--sort", choices=("volume", "prob"), default="volume", help="highest first (default: volume)")
    changes = _command(commands, "changes", _changes, "lists what the newest builds changed")
    changes.add_argument("--builds", type=_positive, default=1, metavar="N", help="how many builds (default: 1)")
    mirror = _command(commands, "mirror", _mirror, "makes a copy of all markets, or brings it up to date")
    mirror.add_argument("folder", metavar="DIR", type=Path)
    mirror.add_argument("--to", choices=[*_STORES], default="sqlite", help="what the copy is (default: sqlite)")
    return parser


def _command(commands: Any, name: str, run: Callable[..., None], does: str) -> ArgumentParser:
    parser: ArgumentParser = commands.add_parser(name, help=does, description=does)
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", dest="form", action="store_const", const="json", help="one JSON value")
    forms.add_argument("--ndjson", dest="form", action="store_const", const="ndjson", help="a JSON value per line")
    if name not in {"market", "question", "mirror"}:
        limits = parser.add_mutually_exclusive_group()
        limits.add_argument("--limit", type=_positive, metavar="N", help="how many rows (default: 20, if they fit)")
        limits.add_argument("--all", dest="limit", action="store_const", const=_ALL, help="all rows")
    parser.set_defaults(run=run, form="table")
    return parser


def _positive(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise ArgumentTypeError(f"{text} is not a number from 1 on")
    return int(text)


def _list(client: api.Client, given: Namespace) -> None:
    words, sort = " ".join(getattr(given, "q", ())) or None, None if given.sort == "prob" else given.sort
    markets = client.markets(status=given.status, sort=sort, category=given.category, q=words)

    def size() -> int | str | None:
        # Of a search and of a category no site says it: as many as a page more are counted.
        return _counted_on(given, markets) if words or given.category else _told(given, client.build().lists)

    every = sorted(_counted(markets), key=lambda one: one.prob, reverse=True) if given.sort == "prob" else markets
    _show(given, every, tables.MARKET_COLUMNS, lambda shown: map(tables.market_row, shown), size)


def _questions(client: api.Client, given: Namespace) -> None:
    questions = client.questions(status=given.status, sort=given.sort, category=given.category)

    def size() -> int | str | None:
        counts = None if given.category else client.build().questions
        return _told(given, counts.lists) if counts and counts.lists else _counted_on(given, questions)

    _show(given, questions, tables.QUESTION_COLUMNS, lambda shown: map(tables.question_row, shown), size)


def _counted_on(given: Namespace, listed: Iterator[Any]) -> int | str:
    """How many rows a list has, of which one more was read than is shown."""
    many = (given.limit or _DEFAULT_ROWS) + 1 + (more := len([*islice(listed, _PAGE)]))
    return many if more < _PAGE else f"at least {many}"


def _told(given: Namespace, lists: Mapping[str, int]) -> int | None:
    """What the site says."""
    return next((many for one, many in lists.items() if one.startswith(f"{given.status}/")), None)


def _market(client: api.Client, given: Namespace) -> None:
    _show_one(given, client.market(given.ref), tables.detail_lines)


def _question(client: api.Client, given: Namespace) -> None:
    _show_one(given, client.question(given.ref), tables.question_lines)


def _show_one(given: Namespace, detail: Any, lines: Callable[[Any], Iterable[str]]) -> None:
    if given.form != "table":
        _print_all([_json(detail)])
        return
    every = [*lines(detail)]
    short = [*tables.fitting(every, tables.BUDGET)]
    rest = len(every) - len(short)
    _print_all([*short, f"({rest} lines more; --json has all)"] if rest else short)


#: What to do if it is not found.
_TO_FIND = {
    _market: "to find its id: pm URL search WORDS",
    _question: "to find its id: pm URL questions; those of the kind single are markets: pm URL market ID",
}


def _prices(client: api.Client, given: Namespace) -> None:
    prices = sorted(client.prices().markets, key=lambda one: getattr(one, given.sort), reverse=True)
    _show(given, prices, tables.PRICE_COLUMNS, lambda shown: _questioned(client, "open", tables.price_row, shown))


def _changes(client: api.Client, given: Namespace) -> None:
    changes = client.latest_changes(given.builds)
    _show(given, changes, tables.CHANGE_COLUMNS, lambda shown: _questioned(client, "all", tables.change_row, shown))


def _questioned(client: api.Client, status: Any, row: Any, shown: list[Any]) -> Iterator[tables.Row]:
    """Rows with the questions of these markets, from their details or, if that takes fewer requests, from a list."""
    values = [getattr(one, "json", one) for one in shown]
    questions = {str(one["id"]): one.get("question") for one in values if "id" in one}
    missing = [one for one, question in questions.items() if question is None]
    if missing and len(missing) * _PAGE > client.build().markets:
        questions |= {one.id: one.question for one in client.markets(status=status) if one.id in questions}
    else:
        for one in missing:
            with suppress(api.NotFoundError):
                questions[one] = client.market(one).market.question
    return map(row, shown, (str(questions.get(str(value.get("id"))) or "-") for value in values))


def _mirror(client: api.Client, given: Namespace) -> None:
    given.folder.mkdir(parents=True, exist_ok=True)
    path = given.folder / f"markets.{given.to}"
    store = _STORES[given.to](path)
    found = client.follow(store)
    if given.form == "table":
        kinds = [change.kind for change in found]
        summary = ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("added", "changed", "gone"))
        _print_all([f"{path}: {summary}; serial {store.position().serial}"])
    else:
        told = ({"kind": one.kind, "id": one.id, "market": one.market and one.market.json} for one in found)
        _print_json(given, told)


def _show(given: Namespace, values: Any, columns: tables.Row, rows: Any, size: Size = lambda: None) -> None:
    """Print values as they are, or the `rows` of a table that are made of the list of them."""
    most = given.limit or _DEFAULT_ROWS
    if given.form != "table":
        _print_json(given, islice(values, most))
        return
    some = [*_counted(islice(values, most + 1))]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _ALL
    head, *lines = tables.lines([columns, *rows(some[:most])], width)
    lines = lines if given.limit else [*tables.fitting(lines, tables.BUDGET - 200)]
    rest = ", all"
    if len(lines) < len(some):
        many = len(values) if isinstance(values, list) else len(some) if len(some) <= most else size()
        rest = (f" of {many}" if many else ", and there are more") + "; --limit N or --all shows more"
    _print_all([head, *lines, f"({len(lines)}{rest})"])


def _print_json(given: Namespace, found: Iterable[Any]) -> None:
    texts = map(_json, _counted(found))
    _print_all(texts if given.form == "ndjson" else ["[" + ",\n".join(texts) + "]"])


def _json(value: Any) -> str:
    return json.dumps(getattr(value, "json", value), ensure_ascii=False, separators=(",", ":"))


def _print_all(lines: Iterable[str]) -> None:
    for line in lines:
        print(tables.printable(line))


def _counted(found: Iterable[Any]) -> Iterator[Any]:
    """The same, and how many so far on a terminal."""
    is_shown = sys.stderr.isatty() and not sys.stdout.isatty()
    for many, one in enumerate(found, 1):
        if is_shown and not many % 100:
            print(f"\r{many} rows", end="", file=sys.stderr, flush=True)
        yield one
    if is_shown:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _show_bytes(now: int, most: int) -> None:
    """Show how much of a file has come."""
    print(f"\r{now / 1e6:.1f} of {most / 1e6:.1f} MB", end="\n" if now >= most else "", file=sys.stderr, flush=True)
