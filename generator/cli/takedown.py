"""`takedown`: removes markets from everything published, and blocks them in later builds."""

import sys
from contextlib import suppress
from dataclasses import replace

import click

from generator import garbage
from generator.api import forms
from generator.cli import logs
from generator.cli.command import Subcommand, now
from generator.cli.logs import LOG
from generator.cli.parameters import Reference
from generator.cli.progress_bar import progress_bar
from generator.cli.target import open_target
from generator.config.settings import Config
from generator.errors import PublicMarketsError, StoreError
from generator.markets.quarantine import printable
from generator.publish import copies, lookup, references, takedown
from generator.publish.decisions import Change, Known, Request, Shown
from generator.publish.lease import Target
from generator.stores.requests import with_retries
from generator.stores.store import UnavailableError
from generator.tree.blocklist import BlockedList
from generator.wording import are, counted


@click.command(cls=Subcommand, name="takedown")
@click.argument("markets", metavar="REF...", nargs=-1, type=Reference())
@click.option("--undo", is_flag=True, help="Let the markets come back with the next build.")
@click.option("-y", "--yes", "is_sure", is_flag=True, help="Do not ask, even in a terminal.")
def takedown_command(settings: Config, markets: tuple[str, ...], *, undo: bool, is_sure: bool) -> None:
    """Remove markets from everything that is published, now, and block them in later builds.

    REF is a market's id, at least 8 characters of it, its slug or key, or its address on your site or in the API;
    `find` looks for words of its question. Without REF, list the blocked markets.
    """
    target = Target.of(open_target(settings), settings) if settings.publish.target else None
    # A program that was started without a standard input has None.
    asks = not is_sure and not undo and bool(markets) and sys.stdin is not None and sys.stdin.isatty()
    found, ids = _understood(settings, target, markets, is_blocked=not undo, asks=asks)
    if not undo:
        found = _with_details(settings, target, ids, found)
    if asks and not click.confirm("Remove from everything that is published?", err=True):
        raise PublicMarketsError("not confirmed, so nothing was removed")
    with garbage.uncollected():
        change = _take_down(settings, target, _request(target, ids, found, is_blocked=not undo), found)
    for market_id in sorted(change.after.ids()):
        logs.result(f"{market_id} blocked since {change.after.markets[market_id].at}")
    count = len(change.after.ids())
    logs.result(f"{counted(count, 'market')} {are(count)} blocked")
    if ids and not undo:
        gone = sum(map(found.names, ids))
        repeats = any(market_id in change.before.ids() for market_id in ids)
        logs.result(_end(settings, target, gone, found.places({*ids}), may_be_cached=bool(gone) or repeats), gone=gone)


def _understood(
    settings: Config, target: Target | None, markets: tuple[str, ...], *, is_blocked: bool, asks: bool
) -> tuple[Known, tuple[str, ...]]:
    """What is known of markets, and the ids that the operator means."""
    by_itself = {text: references.id_in(text, settings) for text in markets}
    ids = tuple(dict.fromkeys(filter(None, by_itself.values())))
    names = [text for text, market_id in by_itself.items() if market_id is None]
    blocked = lookup.blocked(settings, target) if names else BlockedList()
    try:
        found = lookup.known(settings, target, ids if is_blocked else (), names, blocked)
    except Exception:
        # Nobody knows what the names mean, but the ids are sure.
        if target and is_blocked and not asks and ids:
            shown = _with_details(settings, target, ids, Known(()))
            takedown.block(target.store, _request(target, ids, shown, is_blocked=True))
            logs.notice(f"{', '.join(ids)}: blocked in every later publish, and not removed yet")
        raise
    id_of = found.id_of if is_blocked else found.blocked_id_of
    meant = (market_id or id_of(text, settings) for text, market_id in by_itself.items())
    named = tuple(dict.fromkeys(meant))
    return found.about(named), named


def _request(target: Target | None, ids: tuple[str, ...], found: Known, *, is_blocked: bool) -> Request:
    names = {market_id: found.digests(market_id) for market_id in ids}
    # Publishers judge by the store's clock how lately it was decided.
    at = now()
    if target:
        with suppress(StoreError, UnavailableError):  # which whoever writes the list will be told
            at = with_retries(target.store.now)
    return Request(ids, is_blocked=is_blocked, at=forms.instant(at), names=names)


def _with_details(settings: Config, target: Target | None, ids: tuple[str, ...], found: Known) -> Known:
    """Show each market that is to be removed. Some may be public though no record names them."""
    unrecorded = dict(found.unrecorded)
    for market_id in ids:
        if detailed := lookup.detailed(settings, target, market_id):
            place, market = detailed
            logs.notice(f'{market_id}: "{printable(market.question)}", {market.status}')
            unrecorded[market_id] = Shown(place, market.slug)
        elif found.names(market_id):
            logs.notice(f"{market_id}: its question cannot be read, as its detail is missing or damaged")
        else:
            logs.notice(f"{market_id}: no detail of it is published")
    return replace(found, unrecorded=unrecorded)


def _end(settings: Config, target: Target | None, gone: int, places: list[str], *, may_be_cached: bool) -> str:
    """The last line: what is gone, from where, and what is still in caches."""
    if not gone:
        built = [str(settings.output)] if settings.output.exists() else []
        searched = " and ".join([*([target.store.name] if target else []), *built])
        line = f"{searched or settings.output} had nothing left of what was named"
    else:
        line = f"gone from {' and '.join(places)}: {counted(gone, 'market')}"
    if not may_be_cached:
        return line
    published = target.lease.published if target else None
    return f"{line}; {copies.remaining(settings, published, now(), has_target=target is not None)}"


def _take_down(settings: Config, target: Target | None, request: Request, found: Known) -> Change:
    """Carry out the request in the store, if there is one, and in the output folder; say what it means."""
    change = (
        _take_down_everywhere(target, settings, request)
        if target
        else takedown.from_folder(settings, request, logs.notice)
    )
    for sentence in request.consequences(change, has_target=target is not None):
        logs.notice(sentence)
    for sentence in request.doubts(change, found):
        LOG.warning("%s", sentence)
    return change


def _take_down_everywhere(target: Target, settings: Config, request: Request) -> Change:
    change: Change | None = None
    try:
        change = takedown.blocked_by_store(target.store, request)
        _take_down_published(target, change.after, request.ids)
    except Exception:
        # Whatever is wrong with the store, the folder must not publish the markets again.
        if settings.output.exists():
            try:
                takedown.from_folder(settings, request, logs.notice, change)
            except PublicMarketsError as error:
                LOG.warning("%s", error)  # the run ends with what is wrong with the store
        raise
    return takedown.from_folder(settings, request, logs.notice, change) if settings.output.exists() else change


def _take_down_published(target: Target, blocked: BlockedList, named: tuple[str, ...]) -> None:
    with progress_bar("publishing") as bar:
        tally = takedown.from_store(target, blocked, named, bar, logs.notice)
    for warning in tally.warnings:
        LOG.warning("%s", warning)
    deleted = counted(tally.deleted, "object")
    logs.notice(
        f"{target.store.name}: nothing is left of the blocked markets ({deleted} deleted, {tally.uploaded} replaced)"
    )
    for fault in tally.faults:
        raise StoreError(fault)
