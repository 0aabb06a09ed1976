"""After any sequence of changes, damages and kills, a build leaves the same bytes as one into a new folder."""
# ruff: noqa: S311 - nothing here is secret, and every run must do the same

import random
import shutil
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import keys
from generator.tree import blocklist, files
from generator.tree.folder import locked
from tests.builder.test_part_staging import EARLIER, MARKETS, VersionedSite, assert_as_fresh, edited
from tests.support.campaigns import rounds
from tests.support.deaths import dying
from tests.support.sites.builds import NOW, OTHER_BUILDS, manifest_in
from tests.support.sites.rows import (
    insert_category,
    insert_fx_member,
    insert_order,
    insert_point,
    market_id,
    tell_row_versions,
)

#: Both layouts and variants; the extended one has categories, slugs and a search index.
SITES: Final[dict[str, Mapping[str, str]]] = {
    name: {"layout": "pages", "variant": "core", "search": "title+description", **settings}
    for name, settings in {"core-pages": {}, **OTHER_BUILDS}.items()
}


#: Changes of rows of a market's detail, and of its own.
LIES: Final = (
    "UPDATE orders SET amount = amount + 1 WHERE market_id = ?",
    "UPDATE fills SET amount = amount + 1 WHERE market_id = ?",
    "DELETE FROM probabilities WHERE market_id = ?",
    "DELETE FROM fills WHERE market_id = ?",
    "UPDATE probabilities SET prob = 1 - prob WHERE market_id = ? AND prob <> 0.5",
)
LIES_ABOUT_ROWS: Final = (
    "UPDATE markets SET volume = volume + 1 WHERE id = ?",
    "UPDATE markets SET description = 'A lie' WHERE id = ?",
    "UPDATE markets SET prob = 1 - prob, trader_count = trader_count + 1 WHERE id = ?",
    "DELETE FROM market_categories WHERE market_id = ?",
    "DELETE FROM fx_members WHERE market_id = ?",
)


class History:
    """A random sequence of changes of a site. What it does to rows of details, it tells, but for `lie`.

    If it `tells_rows`, it tells of all rows.
    """

    def __init__(self, site: VersionedSite, seed: int, *, tells_rows: bool) -> None:
        self.site = site
        self.tells_rows = tells_rows
        if tells_rows:
            tell_row_versions(site.database)
        self.chance = random.Random(seed)
        self.settings: dict[str, Any] = {}
        self._lies = 0
        self._edits = 0

    def number(self) -> int:
        return self.chance.randrange(MARKETS)

    def trade(self) -> None:
        times = (EARLIER, "2026-01-31 11:30:00.000000", "2026-02-03 00:00:00.000000", "no time")
        self.site.trade(
            self.number(), amount=self.chance.choice((1.0, 2.5, -1.0)), created_at=self.chance.choice(times)
        )

    def order(self) -> None:
        number = self.number()
        insert_order(self.site.database, market_id=market_id(number), price=self.chance.choice((0.4, 0.3, 7)))
        self.site.tell(number)

    def point(self) -> None:
        number = self.number()
        insert_point(self.site.database, EARLIER, self.chance.choice((0.1, 0.9, 7)), market_id=market_id(number))
        self.site.tell(number)

    def mend(self) -> None:
        """Delete every row to quarantine."""
        self.site.database.execute("DELETE FROM fills WHERE amount < 0 OR created_at = 'no time'")
        self.site.database.execute("DELETE FROM orders WHERE price > 1")
        self.site.database.execute("DELETE FROM probabilities WHERE prob > 1")
        self.site.database.execute("UPDATE markets SET detail_version = detail_version + 1")

    def edit(self) -> None:
        columns: list[dict[str, Any]] = [
            {"prob": self.chance.random()},
            {"question": f'"{self.chance.random()}'},
            {"description": self.chance.choice((None, "", ',"orderBook":'))},
            {"status": self.chance.choice(("open", "closed", "resolved")), "resolution": "YES"},
            {"close_time": "2026-01-31 20:00:00.000000"},
            {"slug": self.chance.choice((None, "same", f"slug-{self.chance.random()}"))},
            {"trading_pause_reason": "Halted"},
        ]
        self.site.edit(self.number(), **self.chance.choice(columns))

    def hide(self) -> None:
        self.site.edit(self.number(), approval=self.chance.choice(("approved", "pending")))

    def forget(self) -> None:
        name = self.chance.choice(("detail_version", *["market_version"] * self.tells_rows))
        self.site.edit(self.number(), **{name: self.chance.choice((None, "x", 2.5))})

    def family(self) -> None:
        with suppress(sqlite3.IntegrityError):
            insert_fx_member(self.site.database, market_id=market_id(self.number()))

    def category(self) -> None:
        name = self.chance.choice(("politics", "u.s. 2024 elections", "not offered"))
        with suppress(sqlite3.IntegrityError):
            insert_category(self.site.database, name, market_id=market_id(self.number()))

    def block(self) -> None:
        """Take a market down, or undo that."""
        with locked(self.site.output) as folder:
            known = blocklist.load(folder)
            chosen, is_blocked = [market_id(self.number())], self.chance.random() < 0.5
            folder.save(blocklist.KEY, known.decided(chosen, is_blocked=is_blocked, now=NOW).encoded())

    def lose(self) -> None:
        """Lose a detail, another file that builds may replace, or a whole list."""
        path = self.chance.choice((self.detail, self.mutable, self.whole_list))()
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    def damage(self) -> None:
        """Edit a detail, which only a full build has to notice."""
        path = self.detail()
        before = path.read_bytes()
        edited(path)
        if path.read_bytes() == before:
            path.write_bytes(before + b" ")
        self._edits += 1

    def replace(self) -> None:
        """Another program's bytes, in a file that builds may replace."""
        path = self.mutable()
        path.write_bytes(b"{}")
        self._edits += keys.is_detail(path.relative_to(self.site.output).as_posix())

    def detail(self) -> Path:
        found = [path for place in (keys.DETAILS, keys.SLUGS) for path in (self.site.output / place).rglob("*.json")]
        return self.chance.choice(sorted(found) or [self.mutable()])

    def mutable(self) -> Path:
        return self._one_of(manifest_in(self.site.output).objects)

    def whole_list(self) -> Path:
        return self._one_of(f"{keys.LISTS}/{name}" for name in manifest_in(self.site.output).lists())

    def _one_of(self, places: Iterable[str]) -> Path:
        return self.chance.choice([path for key in sorted(places) if (path := self.site.output / key).exists()])

    def lose_all(self) -> None:
        (self.site.output / files.FINGERPRINTS).unlink(missing_ok=True)

    def set(self) -> None:
        """Change a setting that shapes details, or one that they have nothing to do with."""
        searches = ("off", "title", "title+description")
        choices = {"detail.recent_fills": (1, 50), "fills_window_step": ("0 s", "1 h"), "search": searches}
        key = self.chance.choice([*choices, "cursor.lifetime"])
        self.settings[key] = self.chance.choice(choices.get(key, ("6 h", "1 h")))

    def switch(self) -> None:
        """Switch to another layout and variant, or back."""
        self.settings |= {"categories": "", **SITES[self.chance.choice(sorted(SITES))]}

    def lie(self) -> None:
        """Change rows without a word."""
        if self.tells_rows and self.chance.random() < 0.5:
            self._lie_about_row()
            return
        owner = (market_id(self.number()),)
        act = self.chance.choice(LIES)
        self.site.database.execute(act, owner)
        self._lies += 1

    def _lie_about_row(self) -> None:
        """Change a row without a word."""
        owner = market_id(self.number())
        told = self.site.database.execute("SELECT market_version FROM markets WHERE id = ?", [owner]).fetchone()
        act = self.chance.choice(LIES_ABOUT_ROWS)
        self.site.database.execute(act, [owner])
        self.site.edit(int(owner[:8], 16), market_version=told[0])
        self._lies += 1

    def kill(self) -> None:
        """Build, and stop at some rename or deletion."""
        last, calls = self.chance.choice((self.chance.randrange(10), self.chance.randrange(300))), count()
        with dying(lambda *_: next(calls) == last):
            self.build()

    def build(self) -> None:
        share = 1 if self._lies else self.chance.choice((0, 0, 0.3, 1))
        later, full = self.chance.choice((0, 5, 300, 1500, -60)), self.chance.random() < 0.05
        self.site.build(later=later, full=full, source__audit=share, **self.written())
        if self._edits and not full:  # which that build may have taken as they are
            self.site.build(later=0, full=True, **self.written())
        self._lies = self._edits = 0

    def written(self) -> dict[str, Any]:
        return {key.replace(".", "__"): value for key, value in self.settings.items()}

    def step(self) -> None:
        acts = (
            self.trade, self.order, self.point, self.mend, self.edit, self.edit, self.edit, self.hide, self.forget,
            self.family, self.category, self.block, self.lose, self.damage, self.replace, self.lose_all, self.set,
            self.switch, self.lie, self.lie, self.kill, self.kill,
        )  # fmt: skip
        for act in self.chance.choices(acts, k=self.chance.randrange(1, 4)):
            act()
        self.build()
        assert_as_fresh(self.site, **self.written())


@pytest.mark.campaign(short=2)
@pytest.mark.usefixtures("few_limits")
@pytest.mark.parametrize("seed", range(rounds(1, 2)))
@pytest.mark.parametrize("kind", SITES)
def test_any_sequence_of_changes_gives_the_bytes_of_a_full_build(
    database: sqlite3.Connection, tmp_path: Path, kind: str, seed: int
) -> None:
    place = [*SITES].index(kind)
    tells_rows = (seed + place) % 2 == 0
    site = VersionedSite(database, tmp_path)
    # Beside those that change: so many that these are few, and in every other site enough for two ranges.
    for number in range(MARKETS, 60 if seed % 2 else 40):
        site.add(number)
    history = History(site, seed * len(SITES) + place, tells_rows=tells_rows)
    history.settings |= {**SITES[kind], "guards.max_invalid": 1, "guards.max_shrink": 1}
    history.build()
    for _ in range(rounds(2, 5)):
        history.step()
