"""Small sites: what their databases say of each market in two states, their settings, and whom to take down."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

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
SAME_DAY, NEXT_DAY = "2026-01-31T15:00:00Z", "2026-02-01T12:00:00Z"

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
class ChosenSite:
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
        found = {text for number in self.gone for text in (market_id(number), slug(number))}
        own = ("qx{:02}question", "dz{:02}description", f"{KEY_LETTERS}{{:02}}site")  # what only this market says
        found |= {text.format(number) for number in self.gone for text in own}
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


def create(folder: Path) -> None:
    """An empty database, with all optional columns but versions."""
    with closing(create_database(folder / "markets.db")) as database:
        database.execute("ALTER TABLE markets ADD COLUMN key")


def write_config(folder: Path, settings: Mapping[str, Any]) -> None:
    """The settings of a site whose database is in the folder, as YAML, which JSON is."""
    source = {"source": {"url": f"sqlite:///{folder / 'markets.db'}"}}
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


_MONTHS: Final = ("2025-10-05", "2025-11-20", "2026-01-20")


def rich_site(layout: str, variant: str, *, count: int = 10, size: int = 3) -> ChosenSite:
    """A site with all kinds of objects, of which go: listed markets, a member of a family, the last of a category.

    The second state edits one that goes and one that stays, with their histories.
    """
    extended = {"search": "title+description"} if variant == "extended" else {}
    settings = {
        "layout": layout, "variant": variant, "snapshot": {"size": size}, "dumps": FULL,
        "history": {"public": True}, "market_url": KEYED, **extended,
    }  # fmt: skip
    first = {number: _chosen(number) for number in range(1, count + 1)}
    edited = {
        number: replace(rows, columns={**rows.columns, "volume": 77.0}, points=3)
        for number, rows in first.items() if number in (3, 4)
    }  # fmt: skip
    return ChosenSite(settings, first, {**first, **edited}, SAME_DAY, (2, 3, 5, 7))


def _chosen(number: int) -> Rows:
    """Of ten: six open ones in a category of several spellings, the fifth alone in one, the seventh in a family."""
    settled = {8: "closed", 9: "resolved", 10: "cancelled", 2: "resolved"}
    status = settled.get(number, "open")
    ended = f"{_MONTHS[number % 3]} 00:00:00.000000"
    columns = {
        "status": status,
        "resolution": "YES" if status == "resolved" else None,
        "resolved_at": ended if status in ("resolved", "cancelled") else None,
        "close_time": "2026-06-30 00:00:00.000000" if status == "open" else ended,
        "slug": slug(number),
        "key": site_key(number),
        "volume": float(number),
        "created_at": f"2025-01-{1 + number % 28:02} 00:00:00.000000",
    }
    own = ("obskura",) if number == 5 else ()
    names = (CATEGORIES[number % 3], *own, *(("Käse  + Ärger",) if number == 7 else ()))
    return Rows(columns, names, is_member=number == 7)
