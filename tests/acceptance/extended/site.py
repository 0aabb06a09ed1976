"""A site in the extended variant that tests change and rebuild."""

import json
import sqlite3
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from generator.api import cursors, keys, slugs
from generator.api.contract import SORTS, STATUS_FILTERS
from generator.builder.report import Report
from generator.config.settings import Config
from generator.tree.manifest import Manifest
from tests.support.sites.builds import AS_OF, build_now, make_config
from tests.support.sites.rows import market_id

POLITICS: Final = "politics"
ELECTIONS: Final = slugs.of_category("u.s. 2024 elections")


class ExtendedSite:
    """A database that tests change, and the folder built from it."""

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self.connection = connection
        self._builds = 0

    @property
    def output(self) -> Path:
        return self.folder / "output"

    def settings(self, **settings: object) -> Config:
        return make_config(self.folder, **{"variant": "extended", **settings})

    def build(self, **settings: object) -> Report:
        """Build as of one minute after the previous build."""
        self._builds += 1
        return build_now(self.settings(**settings), AS_OF + timedelta(minutes=self._builds), shrink=True)

    def set(self, number: int, **columns: object) -> None:
        for name, value in columns.items():
            self.connection.execute(f"UPDATE markets SET {name} = ? WHERE id = ?", [value, market_id(number)])

    def move(self, number: int, category: str) -> None:
        self.connection.execute(
            "UPDATE market_categories SET category = ? WHERE market_id = ?", [category, market_id(number)]
        )

    def read(self, key: str) -> Any:
        return json.loads((self.output / key).read_bytes())

    def item(self, number: int = 1) -> dict[str, Any]:
        items = self.read(keys.first_page("all/new", 100))["items"]
        (found,) = (item for item in items if item["id"] == market_id(number))
        return dict(found)

    def market(self, number: int = 1) -> dict[str, Any]:
        return dict(self.read(keys.detail(market_id(number)))["market"])

    def listed(self, name: str) -> list[str]:
        return [item["id"] for item in self.read(keys.first_page(name, 100))["items"]]

    def has_lists(self, category: str) -> bool:
        names = [keys.list_name(status, sort, category) for status in STATUS_FILTERS for sort in SORTS]
        found = {(self.output / keys.first_page(name, limit)).is_file() for name in names for limit in (1, 20, 100)}
        assert len(found) == 1, "some of its lists are there and some are not"
        return found.pop()

    def by_slug(self, slug: str) -> bytes | None:
        path = self.output / keys.detail_by_slug(slug)
        return path.read_bytes() if path.exists() else None

    def manifest(self) -> Manifest:
        return Manifest.model_validate_json((self.output / "manifest.json").read_bytes())


def walk(published: Mapping[str, bytes], list_name: str, limit: int) -> list[str]:
    page = json.loads(published[keys.first_page(list_name, limit)])
    found = [item["id"] for item in page["items"]]
    while page["nextCursor"] is not None:
        assert len(page["items"]) == limit
        place = cursors.read(list_name, page["nextCursor"])
        page = json.loads(published[keys.page(list_name, place.generation, limit, place.position)])
        found += [item["id"] for item in page["items"]]
    return found


def home(folder: Path) -> Path:
    (folder / "config.yaml").touch()
    return folder
