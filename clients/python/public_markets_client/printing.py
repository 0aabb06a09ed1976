"""What the command prints: tables that stay short, JSON for programs, and how far a long run is."""

import json
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from public_markets_client import tables

#: How many rows there are in all, if that is known; asked only if not all are shown.
Size = Callable[[], int | str | None]
#: How many rows are shown by default, and with --all.
DEFAULT_ROWS, ALL = 20, 1 << 40


def say(sentence: str) -> None:
    """Print a sentence that is no part of the answer."""
    print(f"pm: {tables.printable(sentence)}", file=sys.stderr)


def show(  # noqa: PLR0913, PLR0917 - what a table is
    given: Namespace, values: Any, columns: tables.Row, rows: Any, note: str = "", size: Size = lambda: None
) -> None:
    """Print values as they are, or the `rows` of a table that are made of the list of them; the note comes last."""
    most = given.limit or DEFAULT_ROWS
    if given.form != "table":
        left = iter(values)
        print_json(given, islice(left, most))
        if not given.limit and next(left, None) is not None:
            say(f"{most} shown; --all has the rest")
        if "partial" in note:
            say(note)
        return
    some = [*counted(islice(values, most + 1))]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else ALL
    head, *lines = tables.lines([columns, *rows(some[:most])], width)
    room = tables.BUDGET - tables.LAST - tables.tokens(f"{head}{note}")
    lines = lines if given.limit else [*tables.fitting(lines, room)]
    rest = ", all"
    if len(lines) < len(some):
        many = len(values) if isinstance(values, list) else len(some) if len(some) <= most else size()
        rest = (f" of {many}" if many else ", and there are more") + "; --limit N or --all shows more"
    print_all([head, *lines, f"({len(lines)}{rest}{'; ' if note else ''}{note})"])


def print_json(given: Namespace, found: Iterable[Any]) -> None:
    """Print JSON values, as one array or one on a line."""
    texts = map(json_of, counted(found))
    print_all(texts if given.form == "ndjson" else ["[" + ",\n".join(texts) + "]"])


def json_of(value: Any) -> str:
    """A value as the site sent it, or as it is."""
    values = getattr(value, "json", value)
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=vars)


def print_all(lines: Iterable[str]) -> None:
    """Print lines of a site, without what would act on a terminal."""
    for line in lines:
        print(tables.printable(line))


def counted(found: Iterable[Any]) -> Iterator[Any]:
    """The same, and how many so far on a terminal."""
    is_shown = sys.stderr.isatty() and not sys.stdout.isatty()
    for many, one in enumerate(found, 1):
        if is_shown and not many % 100:
            print(f"\r{many} rows", end="", file=sys.stderr, flush=True)
        yield one
    if is_shown:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def show_bytes(now: int, most: int) -> None:
    """Show how much of a file has come."""
    print(f"\r{now / 1e6:.1f} of {most / 1e6:.1f} MB", end="\n" if now >= most else "", file=sys.stderr, flush=True)
