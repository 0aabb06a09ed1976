"""What is published already, as the source of a site: the catalog of its dump, and the details that stay.

A takedown has no database, and none of the operator's settings: those that are recorded with the published state count,
as the edges that serve it were deployed with them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import from_json

from generator.api import contract, downloads, keys
from generator.api.downloads import DumpHead
from generator.config.settings import Config
from generator.config.shape import shaped
from generator.downloads import dump, market_lines, parquet
from generator.downloads.dump import Previous
from generator.downloads.segments import Segment
from generator.errors import ConfigError, OutputError
from generator.markets import detail
from generator.markets.market import Market, SearchWords
from generator.markets.slugs import SiteKeys
from generator.models import replaced
from generator.progress import SILENT, Progress
from generator.site import published_downloads
from generator.site.catalog import Catalog, Details, Naming, Takedown
from generator.site.families import fixed_keys
from generator.site.make import Maker
from generator.site.published_downloads import heads
from generator.site.short_lists import Each, ListsInPlace
from generator.site.short_words import WordsInPlace
from generator.site.site_index import BuildRecord
from generator.tree import layouts, manifest, stored
from generator.tree.generation import Artifact, ItemList, Workplace
from generator.tree.manifest import Manifest
from generator.tree.staging import Rendered, Staged, StagedFamily
from generator.wording import counted

#: The lists that have every listed market.
_OF_ALL: Final = tuple(keys.list_name("all", sort) for sort in contract.SORTS)
#: What an item of a list shows, by its names on the wire.
_OF_ITEMS: Final = frozenset(field.alias or name for name, field in contract.PublicMarketListItem.model_fields.items())
_NO_TEXTS: Final[Mapping[str, Any]] = {"question": "", "description": None}
_LEFT_OUT: Final = (
    "left out {}, whose details are missing or damaged; run `public-markets rebuild --verify` to publish them again"
)
_NO_PARQUET: Final = (
    "deleted the Parquet files of the dump: the extra to read them is not installed; run pip install "
    "'public-markets[parquet]', then `public-markets rebuild` to make them again"
)
#: Where a former program made the dump, with histories divided by market.
_DIVIDED: Final = (
    "deleted the files of histories and fills, which an earlier version made; "
    "run `public-markets rebuild` to publish histories again"
)


class OtherVersionError(OutputError):
    """What is published was built by another version, so that this one cannot make it again; `version` is its name."""

    def __init__(self, version: str, done: str = "") -> None:
        super().__init__(
            f"what is published was built by another version{stored.other(version, ' (', ')')}; {done}"
            "run `public-markets rebuild`, or `build` where there is no target, which leaves out what is blocked"
        )
        self.version = version


@dataclass(frozen=True)
class PublishedState:
    """What a manifest says is published, in a locked folder, or in a store that is read like one.

    `each` calls a function for each of many names, in a store for several at a time, and yields the results in order.
    `doubted` are mutable objects that may not be those of the manifest: a run was killed, or somebody altered them.
    """

    manifest: Manifest
    folder: Workplace
    each: Each = map
    doubted: frozenset[str] = frozenset()

    def without(self, ids: frozenset[str], progress: Progress) -> tuple[Rendered, tuple[str, ...]]:
        """Stage the site without these markets.

        Raises OutputError if another version of this program built the site so that this one cannot make it.
        """
        config, warnings = self._config()
        lines, found, words = self._read(config, ids, progress)
        catalog = found.without(ids)
        gone = frozenset(market.id for market in found.listed()) & ids
        takedown = Takedown(lines.head, gone, not self.manifest.complete, lines.previous)
        details = Details(self._staged(catalog), (), lines.in_order(), takedown=takedown)
        staged = self._short_lists(config, found, catalog)
        # It adds no list that an earlier version did not have.
        names = self.manifest.current.keys()
        maker = Maker(self.folder, self.manifest, config, progress, names=names, staged=staged)
        if words:
            maker = replace(maker, words=partial(words.of_markets, found))
        made = maker.make(catalog, details, self._fixed(details.staged), self.manifest)
        if self.manifest.complete and (left_out := len(self.manifest.ids() - ids - catalog.ids())):
            warnings = (*warnings, _LEFT_OUT.format(counted(left_out, "market")))
        return made.rendered, warnings

    def catalog(self) -> Catalog:
        """All published markets, members of FX families included.

        Raises OutputError if another version of this program built the site so that this one cannot read it.
        """
        return self._found(_Lines.of_dump(self), self.settings(), frozenset(), SILENT)[1]

    def settings(self) -> Config:
        """The settings that are recorded, all others at their defaults; raises OutputError as above."""
        try:
            return shaped(self.manifest.settings)
        except ValidationError:
            raise OtherVersionError(self.manifest.version) from None

    def _read(
        self, config: Config, gone: frozenset[str], progress: Progress
    ) -> tuple["_Lines", Catalog, WordsInPlace | None]:
        """The lines of what is published, its catalog, and the words of the index in place if its markets have none."""
        lines = _Lines.of_dump(self)
        # A member of an FX family may have been the last market of a category, which only its detail tells.
        is_unclear = config.variant == "extended" and any(self.manifest.markets.get(one) == () for one in gone)
        if lines and self._is_known and not is_unclear:
            words = self._words(config)
            known = self._known(lines, config, gone, progress, () if words else config.search_texts)
            if known and (words is None or words.count == len(known[1].listed())):
                return *known, words
        return *self._found(lines, config, gone, progress), None

    def _found(
        self, of_dump: "_Lines | None", config: Config, gone: frozenset[str], progress: Progress
    ) -> tuple["_Lines", Catalog]:
        """The lines of what is published, and its catalog; the details of the `gone` markets (ids) are not read."""
        lines = of_dump or _Lines.of_list(self) or _Lines.of_details(self, self.manifest.ids())
        in_lines = {*map(market_lines.id_of, lines.read())}
        # Members of FX families, whatever lists still hold of them from before, are in no dump.
        members = _Lines.of_details(self, self.manifest.ids() - in_lines - gone)
        read = _counted(chain(lines.read(), members.read()), progress)
        try:
            found = Catalog.published(read, config.search_texts, self.manifest.as_of, self.manifest.site_keys)
        except ValidationError:
            raise OtherVersionError(self.manifest.version) from None
        # A killed run may have put details of others, too.
        return lines, self._with_questions(found.without({market.id for market in found.listed()} - in_lines), config)

    def _with_questions(self, catalog: Catalog, config: Config) -> Catalog:
        if not config.has_questions:
            return catalog
        return published_downloads.with_questions(catalog, self.manifest, self.folder, self.details)

    @property
    def _is_known(self) -> bool:
        """Whether all that is in place is what the manifest says, and this version made it."""
        return self.manifest.complete and not self.doubted and not stored.other(self.manifest.version)

    def _known(
        self, lines: "_Lines", config: Config, gone: frozenset[str], progress: Progress, texts: Collection[str]
    ) -> tuple["_Lines", Catalog] | None:
        """The same, of the dump without validation; None if it may not be this version's, or tells too little.

        Searches find markets by the `texts` of these names. Of members of FX families, nothing is read.
        """
        built, parts, listed, market_of = self.manifest, list[Segment](), list[Market](), _trusting(texts)
        try:
            for part, of_part in dump.parts(lines.body):
                progress.advance()
                parts.append(part)
                listed += map(market_of, of_part)
            categories = self._categories(config, listed, gone)
        except (LookupError, TypeError, ValueError):
            return None
        members = built.ids() - {market.id for market in listed} - gone
        is_told = categories is not None and not any(map(built.markets.__getitem__, members))
        if not parts or not is_told:
            return None
        unread = [Market.unread(market_id, *built.slugs.get(market_id, (None,))) for market_id in members]
        naming = Naming(site_keys=SiteKeys(built.site_keys, {}))
        found = Catalog([*listed, *unread], as_of=built.as_of, hidden=0, naming=naming, categories=categories)
        found = self._with_questions(found, config)
        return replace(lines, previous=Previous(lambda start, size: lines.body[start : start + size], parts)), found

    def _categories(self, config: Config, listed: Sequence[Market], gone: Collection[str]) -> dict[str, str] | None:
        """The categories that have lists when the `gone` markets are, names by slug; None if unread members decide."""
        if config.variant == "core":
            return {}
        held = {slug for market in listed if market.id not in gone for slug in market.categories}
        left = {slug for market in listed if market.id in gone for slug in market.categories}
        body = self.folder.read(keys.BUILD)
        if left - held or body is None or manifest.digest(keys.BUILD, body) != self._digest(keys.BUILD):
            return None
        return {one.slug: one.name for one in BuildRecord.model_validate_json(body).categories or ()}

    def details(self, ids: Iterable[str]) -> Iterator[bytes | None]:
        """The bodies of details; None for one that is missing, or is not what the manifest says."""
        names = [keys.detail(market_id) for market_id in ids]
        for key, body in zip(names, self.each(self.folder.read, names), strict=True):
            digest = self._digest(key)
            yield body if body is None or digest in (None, manifest.digest(key, body)) else None

    def _config(self) -> tuple[Config, tuple[str, ...]]:
        """The settings that are recorded, and a warning if they ask for what cannot be made here."""
        config = self.settings()
        try:
            if config.has_parquet:
                parquet.require()
        except ConfigError:
            dumps = replaced(config.dumps, parquet=False)
            return replaced(config, dumps=dumps), (_NO_PARQUET,)
        is_divided = config.has_parquet and self.manifest.settings.get("dumps.histories") == "thinned"
        return config, (_DIVIDED,) if is_divided else ()

    def _staged(self, catalog: Catalog) -> Staged:
        """The details that stay, by their digests; those in doubt are staged as they are found."""
        staged, unknown = Staged(), list[str]()
        for market in catalog.markets:
            for key in keys.details(market.id, market.slug):
                digest = self._digest(key)
                if digest is None:
                    unknown.append(key)
                else:
                    staged.objects[key] = digest
        for key, body in zip(unknown, self.each(self.folder.read, unknown), strict=True):
            if body is not None:
                staged.put(self.folder, Artifact(key, body))
        return staged

    def _words(self, config: Config) -> WordsInPlace | None:
        """The words of the search index in place, unless that is in doubt."""
        current = self.manifest.current.get(keys.SEARCH) if self._is_known and config.can_search else None
        return WordsInPlace.found(current, self.folder.read, self.each) if current else None

    def _short_lists(self, config: Config, found: Catalog, staying: Catalog) -> dict[str, StagedFamily]:
        """The lists without the markets that are not `staying`, made of what is in place unless that is in doubt."""
        if not (self._is_known and layouts.is_cut(config.layout)):
            return {}
        return ListsInPlace(self.folder, self.manifest, self.each).without(found, staying, config)

    def _fixed(self, staged: Staged) -> Iterator[Artifact]:
        """The documents that depend on no market: carried over."""
        for key in fixed_keys():
            digest = self._digest(key)
            if digest is not None:
                staged.objects[key] = digest
            elif key in self.doubted and (body := self.folder.read(key)) is not None:
                yield Artifact(key, body)

    def _digest(self, key: str) -> str | None:
        """The digest of an object that is surely that of the manifest."""
        return None if key in self.doubted else self.manifest.objects.get(key)


@dataclass(frozen=True)
class _Lines:
    """The lines of published markets, ascending by id; `read` begins anew.

    If they are a dump's, `head` and `body` are those of it, and `previous` the same in parts, if it was read so.
    """

    read: Callable[[], Iterator[bytes]]
    head: DumpHead | None = None
    body: bytes = b""
    previous: Previous | None = None

    @classmethod
    def of_dump(cls, state: PublishedState) -> "_Lines | None":
        """The lines of the dump; None if there is none, or none that is whole."""
        for head in heads(state.manifest, state.folder):
            body = state.folder.read(head.ndjson.key)
            if body is not None and downloads.is_named_by(head.ndjson.name, body):
                return cls(partial(dump.lines, [body]), head, body)
        return None

    @classmethod
    def of_list(cls, state: PublishedState) -> "_Lines | None":
        """The lines of the markets that a list of all shows; None if it cannot be read.

        Their items are those of the list: a killed run may have replaced some details, and not yet the list.
        """
        try:
            name = next(filter(state.manifest.current.__contains__, _OF_ALL))
            encoded = layouts.items(state.folder.read, name)
        except (StopIteration, OutputError):
            return None
        # A killed run may have left another layout than the manifest's.
        made = {(name, layouts.make(layout, ItemList(name, encoded)).name) for layout in layouts.LAYOUTS}
        if made.isdisjoint(state.manifest.generations()):
            return None
        items = sorted(map(from_json, encoded), key=itemgetter("id"))
        bodies = zip(items, state.details([item["id"] for item in items]), strict=True)
        lines = [line for item, body in bodies if body and (line := _line(item["id"], body, item))]
        return cls(lambda: iter(lines))

    @classmethod
    def of_details(cls, state: PublishedState, ids: Collection[str]) -> "_Lines":
        """The lines as the details of these markets have them, of those that can be read."""
        bodies = zip(sorted(ids), state.details(sorted(ids)), strict=True)
        lines = [line for market_id, body in bodies if body and (line := _line(market_id, body))]
        return cls(lambda: iter(lines))

    def in_order(self) -> Callable[[str], bytes]:
        """Looks lines up by the ids of their markets, which must ascend."""
        lines = self.read()
        return lambda market_id: next(line for line in lines if market_lines.id_of(line) == market_id)


def _trusting(texts: Collection[str]) -> Callable[[bytes], Market]:
    """Makes a market of a line that this program made; searches find it by the `texts` of these names."""
    words = SearchWords(texts)

    def market_of(line: bytes) -> Market:
        said = from_json(line) if texts else _NO_TEXTS
        return Market.of_item(market_lines.item_of(line), words.of(said["question"], said["description"]))

    return market_of


def _counted(lines: Iterable[bytes], progress: Progress) -> Iterator[bytes]:
    """The lines; each thousand is a step, as reading a million of them takes a minute."""
    for number, line in enumerate(lines):
        if number % 1_000 == 0:
            progress.advance()
        yield line


def _line(market_id: str, body: bytes, item: Mapping[str, Any] | None = None) -> bytes | None:
    """The line in the body of a detail; None if it is damaged, or the detail of another market.

    What lists show of the market is taken from the `item`, if it is given.
    """
    try:
        found = from_json(detail.market_object(body))
        is_its_own = found.get("id") == market_id
        if item is not None:
            found = {**{name: value for name, value in found.items() if name not in _OF_ITEMS}, **item}
        market = contract.PublicMarketDetailMarket.model_validate_json(contract.encode(found))
    except (ValueError, AttributeError):
        return None
    return contract.encode(market) if is_its_own else None
