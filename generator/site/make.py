"""Makes everything that is derived from a catalog, and stages what is not in place yet: see `generator.site`."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, Final, TypeAlias, TypeVar

from generator.api import keys
from generator.api.downloads import PeriodFile
from generator.config.settings import Config
from generator.downloads import parquet
from generator.errors import DamageError
from generator.markets.market import Market
from generator.models import replaced
from generator.progress import Progress, Stopwatch
from generator.search.generation import LISTS, NUMBERED_BY, Order, SearchIndex, WordObjects
from generator.site import documents, downloads, families, known_words, worker_pool
from generator.site.catalog import Catalog, Details, Listed
from generator.site.download_files import NewFiles
from generator.site.downloads import StagedDownloads
from generator.site.family import Ingredients
from generator.site.questions import QuestionRows
from generator.tree import manifest, membership, staging
from generator.tree.files import DUMP_PARTS, WORDS
from generator.tree.generation import Artifact, ItemList, Workplace
from generator.tree.generations import Generations
from generator.tree.manifest import Manifest
from generator.tree.membership import Membership, Memberships
from generator.tree.staging import Rendered, Staged, StagedFamily

#: Makes the words of markets in the order of their numbers, of which these categories (slugs) have lists, and the file
#: to save beside `v1/`, if there is one.
Words: TypeAlias = Callable[[Sequence[Market], Collection[str]], tuple[WordObjects, bytes | None]]


def make_index(
    catalog: Catalog, offered: Collection[str], layout: str, generations: Mapping[str, str], words: Words
) -> tuple[SearchIndex, bytes | None]:
    """The index of a catalog, and the file of its words; `offered` are the slugs of the categories that have lists.

    `generations` has the name of every list's generation.
    """
    ranked = dict(catalog.ranked())
    oldest_first = ranked[NUMBERED_BY][::-1]
    number_of = {market.id: number for number, market in enumerate(oldest_first)}
    orders = {
        sort: Order.of(
            layout,
            generations[LISTS[sort]],
            [number_of[market.id] for market in markets],
            markets[0].body if markets else b"",
        )
        for sort, markets in ranked.items()
    }
    objects, words_file = words(oldest_first, offered)
    return SearchIndex(objects, [market.status for market in oldest_first], orders), words_file


_Result = TypeVar("_Result")
#: What a worker does, after a rough measure of how long it takes.
_Unit: TypeAlias = tuple[float, Callable[[], StagedFamily | StagedDownloads]]

#: So many items of lists (some fifty markets without categories) are staged sooner than workers are forked and end.
_ALONE: Final = 500


@dataclass(frozen=True)
class MadeSite:
    """What was made: the staged state, all its lists, its downloads, and its search index, if it has one."""

    rendered: Rendered
    lists: Sequence[ItemList]
    downloads: StagedDownloads
    index: SearchIndex | None


@dataclass(frozen=True)
class Maker:
    """Makes a site with the settings `config` in a locked folder, which holds the state `before`.

    `workers` processes stage lists at the same time; with one, or if there is little to stage, this process does. Only
    lists of these `names` are made, if they are given; those that are `staged` already, by name, are not made again.
    `words` makes those of the search index, if they are not made of the markets' own.
    `stopwatch` measures `render`, `index` if there is one for searches, and the beginning of `place`.
    """

    folder: Workplace
    before: Manifest | None
    config: Config
    progress: Progress
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    workers: int = 1
    names: Collection[str] | None = None
    staged: Mapping[str, StagedFamily] = field(default_factory=dict)
    words: Words | None = None

    def make(self, catalog: Catalog, details: Details, fixed: Iterable[Artifact], base: Manifest) -> MadeSite:
        """Stage everything but the details, in publication order.

        `fixed` are the documents that do not depend on markets. `base` says whose state this will be: its as-of,
        version and settings; all else in it is replaced.
        """
        staged = details.staged
        with self.stopwatch.stage("render"):
            categories = documents.offered(catalog, self.config)
            rows = None if catalog.questions is None else QuestionRows(catalog, catalog.questions, self.config.variant)
            all_lists = self._lists(catalog, rows, categories)
            # Before the workers are forked: from then on, touching an object of the catalog copies its memory page.
            items_of = partial(_items_of, catalog, rows, all_lists)
            ingredients = Ingredients(catalog, items_of, self.config, self._in_place, rows)
            for artifact in chain(families.of_markets(ingredients), fixed):
                staged.put(self.folder, artifact)
            self.progress.expect(len(all_lists) + self.config.can_search + self.config.dumps.ndjson)
            self.progress.describe("lists")
            known = self.before.generations() if self.before and not details.is_full else {}
            lists, files = self._stage(all_lists, self._listed(catalog, details, rows), known)
            self._stage_of_dump(staged, ingredients, files, is_takedown=details.takedown is not None)
        index, staged_index, words_file = None, None, None
        if self.config.can_search and lists:  # what is left of a first publish that did not end has none
            with self.stopwatch.stage("index"):
                index, staged_index, words_file = self._advanced(self._index(catalog, categories, lists, known))
        with self.stopwatch.stage("place"):
            found = {one.name: one for one in (*lists, *([staged_index] if staged_index else []), *files.families)}
            for one in sorted(found.values(), key=_place):
                staged.add(one.first_pages)
            counts = {staged_list.name: staged_list.current.count for staged_list in lists}
            staged.put(self.folder, documents.build_json(self.config, base.version, catalog, counts, categories))
            staged.objects = {key: staged.objects[key] for key in sorted(staged.objects)}
            # Large mappings are set unvalidated: validation would copy them.
            built = replaced(
                base,
                format=manifest.FORMAT,
                complete=True,
                current={name: one.current for name, one in found.items()},
                retired=(),
                objects=staged.objects,
                markets={},
                slugs={**_slugs(catalog.markets), **(rows.slugs() if rows else {})},
                site_keys={**catalog.site_keys(), **catalog.question_keys()},
                members=rows.members() if rows else {},
                question_counts=rows.counts() if rows else (0, 0, 0),
            )
            memberships = _memberships(catalog, categories, rows)
            beside = {DUMP_PARTS: files.side_file, WORDS: words_file}
            rendered = Rendered(found, staged, built, memberships, details.fingerprints, beside)
            return MadeSite(rendered, all_lists, files, index)

    def _lists(self, catalog: Catalog, rows: QuestionRows | None, categories: Collection[str]) -> list[ItemList]:
        """The lists to make, of both resources."""
        names = documents.list_parts(categories)
        of_markets = documents.lists(catalog, categories, self._chosen(names))
        if rows is None or not self.config.questions.lists:
            return of_markets
        chosen = self._chosen(map(keys.OF_QUESTIONS.__add__, names))
        return [*of_markets, *documents.question_lists(rows, categories, chosen)]

    def _chosen(self, names: Iterable[str]) -> list[str] | None:
        """Which of these lists to make; None for all."""
        if self.names is None:
            return None
        return [name for name in names if name in self.names and name not in self.staged]

    def _listed(self, catalog: Catalog, details: Details, rows: QuestionRows | None) -> Listed | None:
        """What downloads are made from; None if there are none."""
        if not self.config.dumps.ndjson:
            return None
        ids = [market.id for market in catalog.listed()]
        is_known = self.before is not None and self.before.complete
        changed = frozenset(details.changed) if is_known else frozenset(ids)
        return Listed(catalog, ids, changed, details, [*rows.definitions()] if rows else None)

    def _in_place(self, key: str) -> bytes | None:
        """A document in place; None if it is missing, or damaged, as far as that is known."""
        body = self.folder.read(key)
        digest = self.before.objects.get(key) if self.before and self.before.complete else None
        return body if body is None or digest in (None, manifest.digest(key, body)) else None

    def _stage_of_dump(self, staged: Staged, site: Ingredients, made: StagedDownloads, *, is_takedown: bool) -> None:
        """Stage the documents that are made of the dump.

        Raises DamageError if a file of it is damaged; a takedown goes on without those that need its tables, as builds
        make them again.
        """
        of_head = replace(site, dump=made.dump)
        try:
            found = [*families.of_dump(replace(of_head, rows=None if made.is_partial else self._rows))]
        except DamageError:
            if not is_takedown:
                raise
            found = [*families.of_dump(of_head)]
        for artifact in found:
            staged.put(self.folder, artifact)

    def _rows(self, found: Sequence[PeriodFile], columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """The rows of files that are staged or in place. Raises DamageError."""
        for file in found:
            with NewFiles(self.folder).opened(file) as opened:
                yield from parquet.values(opened, columns)

    def _stage(
        self, lists: Sequence[ItemList], listed: Listed | None, known: Generations
    ) -> tuple[list[StagedFamily], StagedDownloads]:
        """Stage lists and downloads, the longest first; generations that are `known` are believed to be whole."""
        stage_list = partial(staging.stage_list, self.folder, self.config.layout, known)
        units: list[_Unit] = [(len(items.items), partial(stage_list, items)) for items in lists]
        if listed:  # they take longer than any list
            units.append((math.inf, partial(downloads.stage, self.folder, self.config, listed, self.before)))
        staged_lists, made = list[StagedFamily](), downloads.NONE
        is_little = sum(len(items.items) for items in lists) <= _ALONE and not self.config.has_parquet
        workers = 1 if is_little else self.workers
        pool = worker_pool.results(lambda unit: unit[1](), units, lambda unit: unit[0], workers)
        with pool as results, self.folder.written_ahead() as ahead:
            for staged in map(self._advanced, results):
                if isinstance(staged, StagedDownloads):
                    made = staged
                    continue
                staged_lists.append(staged)
                if staged.first_pages.changed:
                    ahead.begin()
        return sorted([*staged_lists, *self.staged.values()], key=lambda staged: staged.name), made

    def _advanced(self, result: _Result) -> _Result:
        self.progress.advance()
        return result

    def _index(
        self, catalog: Catalog, categories: Collection[str], lists: Sequence[StagedFamily], known: Generations
    ) -> tuple[SearchIndex, StagedFamily, bytes | None]:
        """Stage the search index, which leads into the lists; with the file of its words."""
        generations = {staged_list.name: staged_list.current.generation for staged_list in lists}
        read = self.folder.read if known else dict[str, bytes]().get
        words = self.words or partial(known_words.of_markets, read)
        index, words_file = make_index(catalog, categories, self.config.layout, generations, words)
        return index, staging.stage_generation(self.folder, known, index), words_file


def _place(staged: StagedFamily) -> tuple[int, str]:
    """Where in publication order what leads into the family is."""
    head = keys.head(staged.name)
    return families.rank(head), head


def _items_of(catalog: Catalog, rows: QuestionRows | None, made: Iterable[ItemList], name: str) -> Sequence[bytes]:
    """The items of a list of all categories, which may not have been made."""
    known = next((one.items for one in made if one.name == name), None)
    if known is not None:
        return known
    of = rows if rows and name.startswith(keys.OF_QUESTIONS) else catalog
    return of.items(*documents.list_parts(())[name.removeprefix(keys.OF_QUESTIONS)])


def _slugs(markets: Iterable[Market]) -> dict[str, tuple[str, ...]]:
    return {market.id: (market.slug,) for market in markets if market.slug is not None}


def _memberships(catalog: Catalog, offered: Collection[str], rows: QuestionRows | None) -> Memberships:
    """Those of all markets, with what determines the lists of questions that show them; and of all questions."""
    found = {market.id: memberships_of(market, offered) for market in catalog.markets}
    if rows is None:
        return found
    for row in rows.listed():
        of_row = membership.memberships_of(row.status, _offered(row.categories, offered), keys.OF_QUESTIONS)
        for market_id in rows.markets_of(row.id):
            found[market_id] += of_row
        if row.id not in found:
            found[keys.question_reference(row.id)] = of_row
    return found


def memberships_of(market: Market, offered: Collection[str]) -> tuple[Membership, ...]:
    """What determines the lists of a market; `offered` are the slugs of the categories that have lists."""
    if market.fx:
        return ()
    return membership.memberships_of(market.status, _offered(market.categories, offered))


def _offered(categories: Iterable[str], offered: Collection[str]) -> Iterator[str]:
    return (slug for slug in categories if slug in offered)
