"""`plan`: what builds like the next one will cost, before anything is written; both layouts side by side.

The conclusion comes first; what it is made of is told with `--all`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import click

from generator.api import forms, keys
from generator.api.contract import LIMIT_MAX, SORTS, STATUS_FILTERS
from generator.builder.dry_run import DryRun, dry_run, in_words, trial
from generator.cli import logs
from generator.cli.build import clock
from generator.cli.command import Subcommand
from generator.cli.parameters import Amount, as_of_option
from generator.cli.progress_bar import progress_bar
from generator.config.settings import Config
from generator.cost import estimate, prices
from generator.cost.estimate import Basis, Cost, Terms
from generator.cost.prices import PriceList
from generator.cost.readers import Limit, address_cost, egress_cost, reading_cost, refusal_cost
from generator.cost.sizes import Site
from generator.errors import GuardError
from generator.markets import fills
from generator.markets.fills import WINDOW
from generator.markets.market import Market
from generator.markets.quarantine import Quarantine
from generator.publish.guards import refuse_costly
from generator.site.catalog import Catalog
from generator.source.address import display_url
from generator.source.reader import open_reader
from generator.stores.store import MOST_LISTED
from generator.tree import chunks, dry_folder, files, pages
from generator.tree.generation import Weight
from generator.tree.layouts import LAYOUTS
from generator.wording import counted, span

#: Savings in USD a month that justify an edge that reads objects.
_WORTHWHILE_USD: Final = 5.0
#: Values of `fills_window_step` to advise, in hours, and the fewest builds of one from which it is worth its vagueness.
_STEPS_H: Final = (1, 2, 3, 4, 6, 12, 24)
_BUILDS_PER_STEP: Final = 4


class Readers(NamedTuple):
    """What readers do in a month, as far as it is to be estimated: reads, and downloads of the dump."""

    reads: int | None
    downloads: int | None


@click.command(cls=Subcommand, name="plan")
@as_of_option
@click.option("--reads", type=Amount(), default=None, metavar="N", help="Include the cost of N reads a month.")
@click.option(
    "--downloads", type=Amount(), default=None, metavar="N", help="Include the cost of N downloads of the dump a month."
)
@click.option("--all", "names_all", is_flag=True, help="Say what the figures are made of, too.")
def plan_command(
    settings: Config, as_of: datetime | None, reads: int | None, downloads: int | None, *, names_all: bool
) -> None:
    """Estimate the cost of publishing, for every layout and store, without writing anything."""
    terms = Terms(settings.schedule, settings.cursor.lifetime, prices.load())
    with dry_folder.brief(settings.output) as folder, progress_bar("reading") as bar:
        quarantine, last = Quarantine(), estimate.of_report(folder.read(files.REPORT))
        with open_reader(settings, quarantine) as reader:
            measured = dry_run(trial(folder, settings, clock(as_of), quarantine, bar), reader)
    cost = estimate.cost(measured.site, last.basis if last else Basis(), terms)
    for line in _conclusion(settings, measured, cost, terms.prices):
        logs.result(line)
    logs.gap()
    readers = Readers(reads, downloads if measured.site.downloads.dump_bytes else None)
    _show_table([*cost.layouts], [*_rows(measured, cost, terms), *_reader_rows(measured, terms, readers)])
    logs.gap()
    if names_all:
        _show_table([*cost.layouts], [*_more_rows(measured, cost, terms), *_rows_of_address(settings, measured, terms)])
        logs.gap()
        _change(measured, terms.prices)
        for note in _notes(settings, measured, cost, terms):
            logs.result(note)
    for note in _notes_on_readers(measured, readers):
        logs.result(note)
    logs.result(
        f"{display_url(settings)} as of {measured.catalog.as_of}: {counted(len(measured.catalog.markets), 'market')} "
        f"in {counted(len(measured.site.lists), 'list')}, {counted(quarantine.total(), 'row')} quarantined; nothing "
        f"was written{'' if names_all else '; --all says what the figures are made of'}"
    )


def _conclusion(settings: Config, measured: DryRun, cost: Cost, known: PriceList) -> Iterator[str]:
    """What the configured layout comes to, what the other one would, and whether a run would be refused.

    Where the target has no known price, or no store is paid, there is no bill, and no layout to recommend for it.
    """
    layout, place = cost.layouts[settings.layout], prices.judged(known, settings)
    size = f"layout {settings.layout}: {counted(layout.objects, 'object', ',')} of {counted(layout.bytes, 'byte', ',')}"
    if settings.publish.target is None and settings.publish.cdn:
        yield f"{size}; readers are served from {settings.output}/, and no store is paid"
    elif settings.publish.target and place is None:
        yield _verdict(settings, cost, known)
        yield size
    else:
        place = place or known.places[0]
        worst = "" if cost.basis.builds else "at worst "
        yield f"{size}, {worst}{layout.usd_per_month[place.name]:,.2f} USD a month at {place.name}"
        yield _recommendation(settings, cost, known)
        yield _verdict(settings, cost, known)
    for refusal in measured.refusals():
        yield f"`public-markets build` would refuse: {refusal.sentence()}"


def _show_table(layouts: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A line per row, with a figure per layout; a line of JSON needs no head."""
    head, *lines = _table([("", *layouts), *rows])
    if not logs.are_json():
        logs.result(head)
    for (name, *figures), line in zip(rows, lines, strict=True):
        logs.result(name if logs.are_json() else line, **dict(zip(layouts, figures, strict=True)))


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The rows as aligned columns, figures flush right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for name, *figures in rows:
        cells = (figure.rjust(width) for figure, width in zip(figures, widths[1:], strict=True))
        yield "  ".join((name.ljust(widths[0]), *cells))


def _rows(measured: DryRun, cost: Cost, terms: Terms) -> Iterator[tuple[str, ...]]:
    previous = measured.preparation.previous
    changed = estimate.changed_objects(measured.site, measured.prepared.change)
    since = "new objects: nothing is built yet"
    if previous and not previous.is_first:
        since = f"objects changed since {previous.as_of}"
    layouts = cost.layouts.values()
    yield ("objects of a build", *(f"{layout.objects:,}" for layout in layouts))
    yield ("bytes of a build", *(f"{layout.bytes:,}" for layout in layouts))
    yield (since, *(f"{changed[name]:,}" for name in cost.layouts))
    yield (
        f"PUT requests per month, with a publish every {counted(cost.schedule, 'minute')}",
        *(f"{layout.puts_per_month:,}" for layout in layouts),
    )
    for place in terms.prices.places:
        yield (f"USD per month at {place.name}", *(f"{layout.usd_per_month[place.name]:,.2f}" for layout in layouts))


def _more_rows(measured: DryRun, cost: Cost, terms: Terms) -> Iterator[tuple[str, ...]]:
    """What these are made of, and what the store holds."""
    site, change, layouts = measured.site, measured.prepared.change, cost.layouts.values()
    minutes = terms.lifetime.total_seconds() / 60
    both = ("search index", site.index, change.index), ("dump and change feed", site.downloads.weight, change.downloads)
    for name, part, new in both:
        if part.objects:
            yield _row_of_part(f"objects of its {name}", part.objects)
            yield _row_of_part(f"bytes of its {name}", part.bytes)
            yield _row_of_part(f"objects changed in its {name}", new.objects)
    yield from _question_rows(site)
    yield (
        f"objects in the store, retired ones kept for {counted(minutes, 'minute', 'g')}",
        *(f"{layout.stored_objects:,}" for layout in layouts),
    )
    lists = (-(-layout.stored_objects // MOST_LISTED) for layout in layouts)
    yield ("LIST requests for all of the store", *(f"{number:,}" for number in lists))
    yield ("bytes in the store", *(f"{layout.stored_bytes:,}" for layout in layouts))
    yield ("PUT requests per publish", *(f"{layout.puts_per_publish:,}" for layout in layouts))


def _row_of_part(name: str, figure: int) -> tuple[str, ...]:
    """A row for what is the same in every layout."""
    return (name, *(f"{figure:,}" for _ in LAYOUTS))


def _reader_rows(measured: DryRun, terms: Terms, readers: Readers) -> Iterator[tuple[str, ...]]:
    yield from _read_cost_rows(measured, terms, readers.reads)
    for place in terms.prices.places if readers.downloads is not None else ():
        for way, per_gb in place.egress.items():
            usd = egress_cost(measured.site, readers.downloads or 0, per_gb)
            name = f"plus {counted(readers.downloads or 0, 'download', ',')} at {place.name}, {way}"
            yield (name, *(f"{usd:,.2f}" for _ in LAYOUTS))


def _rows_of_address(settings: Config, measured: DryRun, terms: Terms) -> Iterator[tuple[str, ...]]:
    limit, reads = Limit.of(settings), measured.reads_per_search
    for place in terms.prices.places:
        most = (address_cost(measured.site, name, limit, place, reads) for name in LAYOUTS)
        yield (f"plus one reader at the rate limit at {place.name}", *(f"{usd:,.2f}" for usd in most))


def _read_cost_rows(measured: DryRun, terms: Terms, reads: int | None) -> Iterator[tuple[str, ...]]:
    for place in terms.prices.places if reads is not None else ():
        usd = (reading_cost(measured.site, name, reads or 0, place) for name in LAYOUTS)
        yield (f"plus {counted(reads or 0, 'read', ',')} at {place.name}", *(f"{price:,.2f}" for price in usd))
        if measured.index:
            most = (reading_cost(measured.site, name, reads or 0, place, measured.reads_per_search) for name in LAYOUTS)
            name = f"plus {counted(reads or 0, 'search', ',')} at {place.name}, at most"
            yield (name, *(f"{price:,.2f}" for price in most))


def _notes(settings: Config, measured: DryRun, cost: Cost, terms: Terms) -> Iterator[str]:
    basis, known = cost.basis, terms.prices
    if basis.builds:
        apart = counted(basis.minutes, "minute", "g")
        yield f"changes per publish: mean of {counted(basis.builds, 'build')}, {apart} apart"
    else:
        yield "changes per publish: worst case, as if everything changed every time; no two builds were compared yet"
    yield f"prices as of {known.as_of}, without free tiers and taxes; check them before you rely on them"
    for place in known.places:
        yield f"  {place.name}: {place.note}"
    yield from _notes_on_questions(measured, cost, terms)
    yield _note_on_address(settings, measured, known)
    yield from _expiries(settings, measured, known)


def _notes_on_questions(measured: DryRun, cost: Cost, terms: Terms) -> Iterator[str]:
    """What the lists of questions cost, which a site need not have."""
    names = _question_lists(measured.site)
    if not names:
        return
    saved = estimate.saved(measured.site, cost, terms, names)
    for layout, usd in saved.items():
        at = ", ".join(f"{price:,.2f} USD at {place}" for place, price in usd.items())
        yield f"questions.lists: false would save about {at} a month in layout {layout}"


def _question_lists(site: Site) -> frozenset[str]:
    return frozenset(size.name for size in site.lists if size.name.startswith(keys.OF_QUESTIONS))


def _question_rows(site: Site) -> Iterator[tuple[str, ...]]:
    """What lists of questions there are, and how many of their objects a category has on average."""
    names = _question_lists(site)
    if not names:
        return
    found = [{name: weight for name, weight in site.weights(layout).items() if name in names} for layout in LAYOUTS]
    of_categories = {name for name in names if keys.CATEGORY_SEPARATOR in name}
    yield ("objects of its lists of questions", *(f"{_objects(weights, names):,}" for weights in found))
    yield ("bytes of its lists of questions", *(f"{sum(one.bytes for one in of.values()):,}" for of in found))
    if of_categories:
        count = len(of_categories) // (len(STATUS_FILTERS) * len(SORTS))
        each = (f"{_objects(weights, of_categories) / count:,.0f}" for weights in found)
        yield (f"objects of a category's lists of questions, of {counted(count, 'category')}", *each)


def _objects(weights: Mapping[str, Weight], names: Collection[str]) -> int:
    return sum(weights[name].objects for name in names)


def _notes_on_readers(measured: DryRun, readers: Readers) -> Iterator[str]:
    """What readers cost, or how to find out."""
    dump_bytes, missing = measured.site.downloads.dump_bytes, list[str]()
    if readers.reads is None:
        missing.append("of reads (add --reads 10M)")
    if readers.downloads is None and dump_bytes:
        missing.append("of downloads (add --downloads 1k)")
    if missing:
        yield f"not included: the cost {', '.join(missing)} and of the publishing machine"
    if readers.reads is not None:
        size = measured.site.page_bytes()
        yield f"a read counts as {counted(size, 'byte', ',')}, neither cached nor compressed; real reads cost less"
        if measured.index:
            yield (
                f"a search reads {counted(measured.reads_per_search, 'object')} at most; CloudFront cannot search in "
                f"layout {pages.LAYOUT}"
            )
    if readers.downloads is not None:
        yield f"a download counts as the whole dump, {counted(dump_bytes, 'byte', ',')}; the change feed needs less"


def _note_on_address(settings: Config, measured: DryRun, known: PriceList) -> str:
    """What the most that one address can cost is made of."""
    limit, dump_bytes = Limit.of(settings), measured.site.downloads.dump_bytes
    searches = f", {limit.searches:,} of them searches" if limit.searches else ""
    size = max(measured.site.page_bytes(LIMIT_MAX), dump_bytes)
    refused = ", ".join(f"{refusal_cost(place):.2f} USD at {place.name}" for place in known.places)
    return (
        f"a reader at the rate limit makes {counted(limit.requests, 'request', ',')} a month{searches}; each counts as "
        f"what costs most, with up to {counted(size, 'byte', ',')}; a million that are refused cost up to {refused}"
    )


def _recommendation(settings: Config, cost: Cost, known: PriceList) -> str:
    """Which layout to choose: `pages` works with every edge, `chunks` needs fewer requests."""
    place = prices.judged(known, settings) or known.places[0]
    saved = cost.layouts[pages.LAYOUT].usd_per_month[place.name] - cost.layouts[chunks.LAYOUT].usd_per_month[place.name]
    if saved <= _WORTHWHILE_USD:
        return (
            f"recommended: layout {pages.LAYOUT}, which every edge can serve; {chunks.LAYOUT} would save "
            f"{max(0.0, saved):,.2f} USD a month at {place.name}"
        )
    return (
        f"recommended: layout {chunks.LAYOUT}, which saves {saved:,.2f} USD a month at {place.name}; its edge must "
        "read objects"
    )


def _change(measured: DryRun, known: PriceList) -> None:
    """Show what one changed market costs; a line of JSON has its figures."""
    if (found := measured.of_one_market(known)) is not None:
        sentence, cost = found
        logs.result(sentence, **cost._asdict())


def _expiries(settings: Config, measured: DryRun, known: PriceList) -> Iterator[str]:
    """What changes without any trade, and how a longer `fills_window_step` would reduce it."""
    as_of, step = datetime.fromisoformat(measured.catalog.as_of), settings.fills_window_step
    following = as_of + timedelta(minutes=settings.schedule)
    moment = max(following, fills.opening(as_of, step) + step + WINDOW) if step else following
    due = _overdue(measured.catalog, moment)
    cost = measured.cost_of(due, known)
    how = f"fills leave fills24h in steps of {span(step)}" if step else "fills leave fills24h once they are a day old"
    yield (
        f"{how}: without any trade, {counted(len(due), 'market', ',')} will have changed or closed by "
        f"{forms.instant(moment)}" + (f"; a build then writes {in_words(cost, settings.layout)}" if due else "")
    )
    longer = next((hours for hours in _STEPS_H if hours * 60 >= _BUILDS_PER_STEP * settings.schedule), 0)
    if due and timedelta(hours=longer) > step:
        later = _overdue(measured.catalog, as_of + timedelta(hours=longer))
        hours = span(timedelta(hours=longer))
        yield (
            f"fills_window_step: {longer} h would let them leave fills24h only every {hours}, then of "
            f"{counted(len(later), 'market', ',')}, and count up to {hours} more"
        )


def _overdue(catalog: Catalog, moment: datetime) -> list[Market]:
    """The markets that will have changed at a later moment without any trade: a fill left fills24h, or they closed."""
    now = forms.instant(moment)
    return [market for market in catalog.markets if not market.holds_at(now)]


def _verdict(settings: Config, cost: Cost, known: PriceList) -> str:
    host = prices.host(settings)
    if settings.publish.target is None:
        return "publish.target is not set, so nothing is published and nothing is paid"
    if host is None:
        return f"publish.target is the directory {settings.publish.target}: publishing there costs nothing"
    place = prices.judged(known, settings)
    if place is None:
        return (
            f"the prices of {host} are not known; if you set guards.max_monthly_cost to another number than its "
            f"default, it applies, by the prices of {known.places[0].name}"
        )
    try:
        refuse_costly(cost, settings, known, frozenset())
    except GuardError as error:
        return f"`public-markets publish` would refuse: {error}"
    usd = cost.layouts[settings.layout].usd_per_month[place.name]
    limit = settings.guards.max_monthly_cost
    return f"{usd:,.2f} USD at {place.name} is within guards.max_monthly_cost ({limit:g})"
