"""Random small sites: what their databases say of each market in two states, their settings, and whom to take down."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st

from generator.api import keys, slugs
from generator.markets import categories
from tests.support.sites.rows import (
    create_database,
    insert_category,
    insert_fill,
    insert_fx_member,
    insert_market,
    insert_order,
    insert_point,
    market_id,
)

#: The as-of of the first state, and those of the second: of the same day, or of another, when Parquet has histories.
FIRST: Final = "2026-01-31T12:00:00Z"
SAME_DAY, NEXT_DAY, LATER = "2026-01-31T15:00:00Z", "2026-02-01T12:00:00Z", "2026-02-03T12:00:00Z"

#: Spellings of four categories, in words that nothing else has.
CATEGORIES: Final = (
    *("Zwergsport", "zwergsport", "ZWERGSPORT"),
    *("Q.X. elektions", "q.x. Elektions"),
    *("Käse  + Ärger", "käse + ärger"),
    "obskura",
)
#: What every key of a market on the operator's site begins with, in words that nothing else has.
KEY_LETTERS: Final = "qk"
KEYED: Final = "https://example.org/m/{key}?from=feed"
#: Dumps with every point and fill.
FULL: Final[Mapping[str, Any]] = {"parquet": True, "fills": True}
_RELATIONS: Final = ("fx_members", "market_categories", "fills", "orders", "probabilities", "markets")


@dataclass(frozen=True)
class Rows:
    """What the database says of one market: columns and categories by position, and how many rows beside it.

    A family shows the market in place of lists if it `is_member`.
    """

    columns: Mapping[str, Any] = field(default_factory=dict)
    categories: tuple[str, ...] = ()
    fills: int = 1
    points: int = 1
    is_member: bool = False

    @property
    def is_public(self) -> bool:
        return bool(self.columns.get("approval", "approved") == "approved" and self.columns.get("is_listed", 1))

    @property
    def is_in_lists(self) -> bool:
        return self.is_public and not self.is_member


#: A state of the database: the rows of each market, by its number.
State = Mapping[int, Rows]


@dataclass(frozen=True)
class RandomSite:
    """Two states of a database, the second `as_of` some hours later; settings; numbers of `gone` markets."""

    settings: Mapping[str, Any]
    first: State
    second: State
    as_of: str
    gone: tuple[int, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(map(market_id, self.gone))

    def removed(self) -> dict[int, Rows]:
        """The markets to take down that are public in the second state."""
        return {number: rows for number, rows in self.second.items() if number in self.gone and rows.is_public}

    def texts(self) -> frozenset[str]:
        """What no file may say after the takedown: ids, words, slugs, and categories that no other market was ever in.

        What was shown of others before stays in lists that replaced ones retain.
        """
        found = {text for number in self.gone for text in texts_of(number)}
        left = {
            categories.folded(name) for state in (self.first, self.second) for number, rows in state.items()
            if number not in self.gone for name in rows.categories if rows.is_public
        }  # fmt: skip
        named = {categories.folded(name) for name in self.settings.get("categories") or ()}
        ended = {name for name in CATEGORIES if categories.folded(name) not in left | named}
        return frozenset({*found, *ended, *map(slugs.of_category, ended)})

    def keys(self) -> frozenset[str]:
        """The keys that the details of these markets had."""
        return frozenset(key for number in self.gone for key in keys.details(market_id(number), slug(number)))


def slug(number: int) -> str:
    return f"slug-of-{number}-"


def site_key(number: int) -> str:
    """The market's key on the operator's site, with letters that addresses cannot have."""
    return f"{KEY_LETTERS}{number:02}site/käy"


def texts_of(number: int) -> tuple[str, ...]:
    """What only this market says."""
    own = f"qx{number:02}question", f"dz{number:02}description", f"{KEY_LETTERS}{number:02}site"
    return market_id(number), slug(number), *own


def create(folder: Path) -> None:
    """An empty database, with all optional columns but versions."""
    with closing(create_database(folder / "markets.db")) as database:
        database.execute("ALTER TABLE markets ADD COLUMN key")


def write_config(folder: Path, settings: Mapping[str, Any]) -> None:
    """The settings of a site whose database is in the folder, as YAML, which JSON is."""
    source = {"source": {"url": f"sqlite:///{folder / 'markets.db'}"}, "publish": {"cache_fill": 0}}
    (folder / "config.yaml").write_text(json.dumps({**source, **settings}), "utf-8")


def fill(folder: Path, state: State) -> None:
    """Have the database say this and nothing else."""
    with closing(sqlite3.connect(folder / "markets.db")) as database, database:
        for relation in _RELATIONS:
            database.execute(f"DELETE FROM {relation}")
        for number, rows in state.items():
            _insert(database, number, rows)


def _insert(database: sqlite3.Connection, number: int, rows: Rows) -> None:
    text = {"question": f"Will qx{number:02}question come?", "description": f"As dz{number:02}description says."}
    insert_market(database, number, **{**text, **rows.columns})
    mine = {"market_id": market_id(number)}
    for position, name in enumerate(rows.categories):
        insert_category(database, name, position, **mine)
    for count in range(rows.fills):
        insert_fill(database, 100 * number + count, **mine, created_at=f"2026-01-31 {count:02}:30:00.000000")
    for count in range(rows.points):
        insert_point(database, f"2026-01-{10 + count} 00:00:00.000000", 0.25 * (count + 1), **mine)
    if rows.points:
        insert_order(database, **mine)
    if rows.is_member:
        insert_fx_member(database, **mine)


# Strategies

_MONTHS: Final = ("2025-10-05", "2025-11-20", "2026-01-20")


def _of_status(status: str, ended: str) -> dict[str, Any]:
    """The columns that say how far a market is, which was open until it `ended`."""
    return {
        "status": status,
        "resolution": "YES" if status == "resolved" else None,
        "resolved_at": ended if status in ("resolved", "cancelled") else None,
        "close_time": "2026-06-30 00:00:00.000000" if status == "open" else ended,
    }


@st.composite
def _rows(draw: st.DrawFn, number: int) -> Rows:
    status = draw(st.sampled_from(("open", "open", "closed", "resolved", "cancelled")))
    ended = f"{draw(st.sampled_from(_MONTHS))} 00:00:00.000000"
    columns = {
        **_of_status(status, ended),
        "slug": draw(st.sampled_from((slug(number), slug(number), None, "Ours", "ours"))),
        "key": draw(st.sampled_from((site_key(number), site_key(number), None, "ours", 7_000 + number))),
        "created_at": f"2025-0{draw(st.integers(1, 4))}-01 00:00:00.000000",
        "last_activity_at": f"2026-01-{draw(st.integers(15, 18))} 00:00:00.000000",
        "volume": draw(st.sampled_from((0.0, 12.5, 100.0))),
        "trader_count": draw(st.integers(0, 3)),
        "approval": draw(st.sampled_from(("approved",) * 9 + ("pending",))),
    }
    if draw(st.booleans()):
        columns["question"] = f"Is it qx{number:02}question, then?"
    if not draw(st.integers(0, 3)):
        columns["description"] = None
    return Rows(
        columns,
        categories=tuple(draw(st.lists(st.sampled_from(CATEGORIES), max_size=3, unique=True))),
        fills=draw(st.integers(0, 2)),
        points=draw(st.integers(0, 3)),
        is_member=not draw(st.integers(0, 7)),
    )


@st.composite
def _settings(draw: st.DrawFn, layout: str, variant: str) -> dict[str, Any]:
    named = "https://example.org/{slug}" if variant == "extended" else "https://example.org/{id}"
    dumps = draw(st.sampled_from(({"parquet": True}, FULL, FULL, {}, {"ndjson": False})))
    found: dict[str, Any] = {
        "layout": layout,
        "variant": variant,
        "snapshot": {"size": draw(st.integers(0, 4))},
        "prices_file": draw(st.sampled_from((True, True, False))),
        "dumps": dumps,
        "changes": {"enabled": draw(st.sampled_from((True, True, False)))},
        "market_url": draw(st.sampled_from((None, named, KEYED))),
        "feeds": draw(st.sampled_from(({}, {}, {"enabled": False}))),
    }
    if variant == "extended":
        found["search"] = draw(st.sampled_from(("title+description", "title+description", "title", "off")))
        found["categories"] = draw(st.sampled_from((None, None, ["obskura"])))
    return found


@st.composite
def _states(draw: st.DrawFn) -> tuple[State, State]:
    first, second = dict[int, Rows](), dict[int, Rows]()
    changes = ("same", "same", "same", "edited", "added", "removed") if draw(st.integers(0, 3)) else ("same",)
    for number in range(1, draw(st.integers(3, 12)) + 1):
        rows = draw(_rows(number))
        match draw(st.sampled_from(changes)):
            case "same":
                first[number] = second[number] = rows
            case "edited":
                first[number], second[number] = rows, draw(_rows(number))
            case "added":
                second[number] = rows
            case "removed":
                first[number] = rows
    return first, second


@st.composite
def random_sites(draw: st.DrawFn, layout: str, variant: str) -> RandomSite:
    """Sites in this layout and variant."""
    first, second = draw(_states())
    numbers = sorted(first.keys() | second.keys())
    if draw(st.sampled_from((True, False, False))):  # the last ones of a category
        name = categories.folded(draw(st.sampled_from(CATEGORIES)))
        gone = [number for number, rows in second.items() if name in map(categories.folded, rows.categories)]
    elif not draw(st.integers(0, 7)):
        gone = numbers
    else:
        gone = draw(st.lists(st.sampled_from(numbers), min_size=1, max_size=4, unique=True))
    as_of = draw(st.sampled_from((SAME_DAY, NEXT_DAY)))
    return RandomSite(draw(_settings(layout, variant)), first, second, as_of, tuple(sorted(gone)))


# Chosen ones


def rich_site(layout: str, variant: str, *, count: int = 10, size: int = 3) -> RandomSite:
    """A site with all kinds of objects, of which go: listed markets, a member of a family, the last of a category.

    The second state edits one that goes and one that stays, with their histories.
    """
    extended = {"search": "title+description"} if variant == "extended" else {}
    settings = {
        "layout": layout, "variant": variant, "snapshot": {"size": size}, "dumps": FULL,
        "market_url": KEYED, **extended,
    }  # fmt: skip
    first = {number: _chosen(number) for number in range(1, count + 1)}
    edited = {
        number: replace(rows, columns={**rows.columns, "volume": 77.0}, points=3)
        for number, rows in first.items() if number in (3, 4)
    }  # fmt: skip
    return RandomSite(settings, first, {**first, **edited}, SAME_DAY, (2, 3, 5, 7))


def _chosen(number: int) -> Rows:
    """Of ten: six open ones in a category of several spellings, the fifth alone in one, the seventh in a family."""
    settled = {8: "closed", 9: "resolved", 10: "cancelled", 2: "resolved"}
    status = settled.get(number, "open")
    ended = f"{_MONTHS[number % 3]} 00:00:00.000000"
    columns = {
        **_of_status(status, ended),
        "slug": slug(number),
        "key": site_key(number),
        "volume": float(number),
        "created_at": f"2025-01-{1 + number % 28:02} 00:00:00.000000",
    }
    own = ("obskura",) if number == 5 else ()
    names = (CATEGORIES[number % 3], *own, *(("Käse  + Ärger",) if number == 7 else ()))
    return Rows(columns, names, is_member=number == 7)
