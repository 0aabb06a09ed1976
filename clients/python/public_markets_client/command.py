"""The command `pm`: a site's markets for people, programs and language models.

Exit codes: 0 done; 1 refused, or the copy cannot be updated, and trying again will hardly help; 2 wrong usage; 3 the
site did not answer, try again later.
"""

import argparse
import json
import logging
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, get_args

from public_markets_client import tables
from public_markets_client.clients import Client
from public_markets_client.errors import ClientError, NotFoundError, UnavailableError
from public_markets_client.models import Price, Sort, Status, encoded
from public_markets_client.requester import Options
from public_markets_client.site import LOG
from public_markets_client.stores import DuckDbStore, NdjsonStore, SqliteStore

_STORES: dict[str, Callable[[Path], Any]] = {"sqlite": SqliteStore, "ndjson": NdjsonStore, "duckdb": DuckDbStore}
_PRICE_ORDERS: dict[str, Callable[[Price], Any]] = {
    "volume": lambda price: -price.volume,
    "prob": lambda price: -price.prob,
    "activity": lambda price: -price.last_activity_at.timestamp(),
}
_DEFAULT_ROWS = 20
_FAILED, _TRY_LATER, _INTERRUPTED = 1, 3, 130


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    given = _parser().parse_args(arguments)
    LOG.setLevel(logging.INFO)
    said = logging.Handler()
    said.emit = lambda record: _say(record.getMessage())  # type: ignore[method-assign]
    LOG.addHandler(said)
    try:
        options = Options(timeout=given.timeout, progress=_show_bytes if sys.stderr.isatty() else None)
        with Client(given.url, options) as client:
            given.run(client, given)
        sys.stdout.flush()
    except (ClientError, OSError, ImportError) as error:
        return _code_of(error)
    except KeyboardInterrupt:
        return _INTERRUPTED
    finally:
        LOG.removeHandler(said)
    return 0


def _say(sentence: str) -> None:
    print(f"pm: {tables.printable(sentence)}", file=sys.stderr)


def _code_of(error: Exception) -> int:
    if isinstance(error, BrokenPipeError):
        # Who reads has enough; Python would complain when it flushes stdout at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    _say(str(error))
    if isinstance(error, ImportError):
        _say("install it with: pip install 'public-markets-client[duckdb]'")
    if isinstance(error, NotFoundError):
        _say("search for words of the question to find an id: pm URL search WORDS")
    return _TRY_LATER if isinstance(error, UnavailableError) else _FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pm", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("url", metavar="URL", help="address of the site, before /v1")
    parser.add_argument("--timeout", type=float, default=30, help="seconds without a byte to wait for (default: 30)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    listing = _command(commands, "list", _list, "lists markets")
    search = _command(commands, "search", _list, "lists markets whose title or description has all the words")
    search.add_argument("q", metavar="WORD", nargs="+")
    for command, status in ((listing, "open"), (search, "all")):
        command.add_argument("--status", choices=get_args(Status), default=status, help=f"(default: {status})")
        command.add_argument("--sort", choices=get_args(Sort), help="(default: as the site sorts)")
        command.add_argument("--category", metavar="NAME", help="markets of a category alone")
    _command(commands, "market", _market, "shows a market").add_argument("ref", metavar="REF", help="id or slug")
    prices = _command(commands, "prices", _prices, "lists the prices of all open markets")
    prices.add_argument("--sort", choices=[*_PRICE_ORDERS], default="volume", help="highest first (default: volume)")
    changes = _command(commands, "changes", _changes, "lists what the newest builds changed")
    changes.add_argument("--builds", type=_positive, default=1, metavar="N", help="how many builds (default: 1)")
    mirror = _command(commands, "mirror", _mirror, "makes a copy of all markets, or brings it up to date")
    mirror.add_argument("folder", metavar="DIR", type=Path)
    mirror.add_argument("--to", choices=[*_STORES], default="sqlite", help="what the copy is (default: sqlite)")
    return parser


def _command(commands: Any, name: str, run: Callable[..., None], does: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=does, description=does)
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", dest="form", action="store_const", const="json", help="one JSON value")
    forms.add_argument("--ndjson", dest="form", action="store_const", const="ndjson", help="a JSON value per line")
    if name not in {"market", "mirror"}:
        parser.add_argument(
            "--limit", type=_positive, metavar="N", help="how many rows (default: what fits, 20 at most)"
        )
        parser.add_argument("--all", action="store_true", help="all rows")
    parser.set_defaults(run=run, form="table")
    return parser


def _positive(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return int(text)


def _list(client: Client, given: argparse.Namespace) -> None:
    words = " ".join(getattr(given, "q", ())) or None
    most = _most(given)
    asked = {name: getattr(given, name) for name in ("status", "sort", "category")}
    found = client.markets(**asked, q=words, page_size=min(most + 1 if most else 100, 100))

    def size() -> int | None:
        if words:
            return None
        build = client.build()
        slugs = [one.slug for one in build.categories or () if given.category in {one.slug, one.name}]
        name = ".".join([given.status, *slugs])
        return next((many for one, many in build.lists.items() if one.startswith(f"{name}/")), None)

    _show(given, found, tables.market_row, tables.MARKET_COLUMNS, size)


def _market(client: Client, given: argparse.Namespace) -> None:
    detail = client.market(given.ref)
    if given.form == "table":
        _print_all(tables.fitting(tables.detail_lines(detail), tables.BUDGET))
    else:
        _print_all([_json(detail)])


def _prices(client: Client, given: argparse.Namespace) -> None:
    prices = sorted(client.prices().markets, key=_PRICE_ORDERS[given.sort])
    _show(given, prices, tables.price_row, tables.PRICE_COLUMNS, lambda: len(prices))


def _changes(client: Client, given: argparse.Namespace) -> None:
    _show(given, client.latest_changes(given.builds), tables.change_row, "id changed values", lambda: None)


def _mirror(client: Client, given: argparse.Namespace) -> None:
    given.folder.mkdir(parents=True, exist_ok=True)
    store = _STORES[given.to](given.folder / f"markets.{given.to}")
    counts = {"added": 0, "changed": 0, "gone": 0}

    def counted() -> Iterator[Any]:
        for change in client.follow(store):
            counts[change.kind] += 1
            yield {"kind": change.kind, "id": change.id, "market": change.market}

    if given.form == "table":
        deque(counted(), maxlen=0)
        summary = ", ".join(f"{many} {kind}" for kind, many in counts.items())
        _print_all([f"{store.name}: {summary}; serial {store.position().serial}"])
    else:
        given.limit, given.all = None, True
        _show(given, counted(), lambda _: "", "", lambda: None)


def _most(given: argparse.Namespace) -> int | None:
    """How many rows are wanted; None for all."""
    return None if given.all else given.limit or _DEFAULT_ROWS


def _show(
    given: argparse.Namespace,
    found: Iterable[Any],
    row: Callable[[Any], str],
    columns: str,
    size: Callable[[], int | None],
) -> None:
    """Print what was found in the form that was asked for."""
    most = _most(given)
    if given.form != "table":
        texts = map(_json, _counted(islice(found, most)))
        _print_all(texts if given.form == "ndjson" else ["[" + ",\n".join(texts) + "]"])
        return
    rows = [row(one) for one in _counted(islice(found, most and most + 1))]
    wanted = rows[:most]
    lines = wanted if given.limit or given.all else [*tables.fitting(wanted, tables.BUDGET - 200)]
    _print_all([columns, *lines])
    if len(lines) == len(rows):
        _print_all([f"({len(lines)}, all)"])
    else:
        many = size()
        of = f" of {many}" if many else ", and there are more"
        _print_all([f"({len(lines)}{of}; --limit N or --all shows more)"])


def _json(value: Any) -> str:
    values = {key: encoded(one) for key, one in value.items()} if isinstance(value, dict) else encoded(value)
    return tables.printable(json.dumps(values, ensure_ascii=False, separators=(",", ":")))


def _print_all(lines: Iterable[str]) -> None:
    for line in lines:
        print(tables.printable(line))


def _counted(found: Iterable[Any]) -> Iterator[Any]:
    """The same, and how many so far on a terminal."""
    is_shown = sys.stderr.isatty() and not sys.stdout.isatty()
    for many, one in enumerate(found, 1):
        if is_shown and not many % 100:
            print(f"\r{many} markets", end="", file=sys.stderr, flush=True)
        yield one
    if is_shown:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _show_bytes(now: int, most: int) -> None:
    """Show how much of a file has come."""
    end = "\n" if now >= most else ""
    print(f"\r{now / 1e6:.1f} of {most / 1e6:.1f} MB", end=end, file=sys.stderr, flush=True)


def run() -> None:
    """The entry point of `pm`."""
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    sys.exit(main())
