"""`takedown`: removes markets and questions from everything published, and blocks them in later builds."""

import sys
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

import click

from generator import garbage
from generator.api import forms, keys
from generator.cli import logs, status_file
from generator.cli.command import Subcommand, now
from generator.cli.logs import LOG
from generator.cli.parameters import Reference
from generator.cli.progress_bar import progress_bar
from generator.cli.target import open_target
from generator.config.settings import Config
from generator.errors import PublicMarketsError, StoreError
from generator.markets.quarantine import printable
from generator.publish import copies, lookup, references, takedown
from generator.publish.decisions import Change, Known, Name, Request, Shown
from generator.publish.lease import Target
from generator.publish.references import QUESTION
from generator.stores.requests import with_retries
from generator.stores.store import UnavailableError
from generator.tree.blocklist import BlockedList
from generator.wording import are, counted


@click.command(cls=Subcommand, name="takedown")
@click.argument("markets", metavar="REF...", nargs=-1, type=Reference())
@click.option(
    "--question",
    "questions",
    metavar="REF",
    multiple=True,
    type=Reference(),
    help="Take a question down, with all its markets, and those that join it later; repeatable.",
)
@click.option("--undo", is_flag=True, help="Let them come back with the next build.")
@click.option("-y", "--yes", "is_sure", is_flag=True, help="Do not ask, even in a terminal.")
def takedown_command(
    settings: Config, markets: tuple[str, ...], questions: tuple[str, ...], *, undo: bool, is_sure: bool
) -> None:
    """Remove markets from everything that is published, now, and block them in later builds.

    REF is a market's id, at least 8 characters of it, its slug or key, or its address on your site or in the API;
    `find` looks for words of its question. Without REF, list what is blocked.
    """
    target = Target.of(open_target(settings), settings) if settings.publish.target else None
    names = [*map(Name, markets), *(Name(text, QUESTION) for text in questions)]
    # A program that was started without a standard input has None.
    asks = not is_sure and not undo and bool(names) and sys.stdin is not None and sys.stdin.isatty()
    found, ids = _understood(settings, target, names, is_blocked=not undo, asks=asks)
    if not undo:
        found = _with_details(settings, target, ids, found)
    if asks and not click.confirm("Remove from everything that is published?", err=True):
        raise PublicMarketsError("not confirmed, so nothing was removed")
    with garbage.uncollected():
        request = _request(target, ids, found, is_blocked=not undo)
        with status_file.left(settings, "takedown"):
            change = _take_down(settings, target, request, found)
    _list(change.after)
    if ids and not undo:
        gone = [*filter(found.names, request.removed)]
        repeats = not change.before.ids().isdisjoint(ids)
        line = _end(settings, target, gone, found.places({*gone}), may_be_cached=bool(gone) or repeats)
        logs.result(line, gone=len(gone))


def _list(blocked: BlockedList) -> None:
    """What is blocked, and since when."""
    references = sorted(blocked.ids())
    for reference in references:
        noun = "question " if keys.is_question_reference(reference) else ""
        through = "" if blocked.is_own(reference) else f", through question {', '.join(blocked.through(reference))}"
        logs.result(f"{noun}{keys.bare_id(reference)} blocked since {blocked.markets[reference].at}{through}")
    logs.result(f"{_counted(references)} {are(len(references))} blocked")


def _counted(references: Collection[str]) -> str:
    """How many markets, and how many questions, if there are any."""
    questions = len(keys.question_ids(references))
    markets = len(references) - questions
    found = [counted(markets, "market")] if markets or not questions else []
    return " and ".join([*found, *([counted(questions, "question")] if questions else [])])


def _understood(
    settings: Config, target: Target | None, names: Sequence[Name], *, is_blocked: bool, asks: bool
) -> tuple[Known, tuple[str, ...]]:
    """What is known, and the references of what the operator means."""
    by_itself = {name: references.reference_in(name.text, settings, name.kind) for name in names}
    sure = tuple(dict.fromkeys(filter(None, by_itself.values())))
    unclear = [name for name, reference in by_itself.items() if reference is None]
    blocked = lookup.blocked(settings, target) if unclear or not is_blocked else BlockedList()
    try:
        found = lookup.known(settings, target, sure if is_blocked else (), unclear, blocked)
    except Exception:
        # Nobody knows what the names mean, but the ids are sure.
        if target and is_blocked and not asks and sure:
            shown = _with_details(settings, target, sure, Known(()))
            takedown.block(target.store, _request(target, sure, shown, is_blocked=True))
            logs.notice(f"{_shown(sure)}: blocked in every later publish, and not removed yet")
        raise
    for reference in sure:
        found.require_kind(reference)
    reference_of = found.reference_of if is_blocked else found.blocked_reference_of
    meant = (reference or reference_of(name, settings) for name, reference in by_itself.items())
    named = tuple(dict.fromkeys(meant))
    return found.about([*named, *(one for reference in named for one in found.members(reference))]), named


def _shown(found: Iterable[str]) -> str:
    return ", ".join(map(keys.bare_id, found))


def _request(target: Target | None, ids: tuple[str, ...], found: Known, *, is_blocked: bool) -> Request:
    members = {one: found.members(one) for one in ids if QUESTION.is_of(one)} if is_blocked else {}
    # Publishers judge by the store's clock how lately it was decided.
    at = now()
    if target:
        with suppress(StoreError, UnavailableError):  # which whoever writes the list will be told
            at = with_retries(target.store.now)
    request = Request(ids, is_blocked=is_blocked, at=forms.instant(at), members=members)
    return replace(request, names={one: found.digests(one) for one in request.removed})


def _with_details(settings: Config, target: Target | None, ids: tuple[str, ...], found: Known) -> Known:
    """Show what is to be removed. Some may be public though no record names it."""
    unrecorded = dict(found.unrecorded)
    for reference in ids:
        shown, of = keys.bare_id(reference), "its title" if QUESTION.is_of(reference) else "its question"
        if detailed := lookup.detailed(settings, target, reference):
            place, said, members = detailed
            size = f", with {counted(len(members), 'market')}" if members else ""
            logs.notice(f'{shown}: "{printable(said.question)}", {said.status}{size}')
            unrecorded[reference] = Shown(place, said.slug, members)
            unrecorded |= {one: Shown(place, None) for one in members if one not in unrecorded}
        elif found.names(reference):
            logs.notice(f"{shown}: {of} cannot be read, as its detail is missing or damaged")
        else:
            logs.notice(f"{shown}: no detail of it is published")
    return replace(found, unrecorded=unrecorded)


def _end(
    settings: Config, target: Target | None, gone: Collection[str], places: list[str], *, may_be_cached: bool
) -> str:
    """The last line: what is gone, from where, and what is still in caches."""
    if not gone:
        built = [str(settings.output)] if settings.output.exists() else []
        searched = " and ".join([*([target.store.name] if target else []), *built])
        line = f"{searched or settings.output} had nothing left of what was named"
    else:
        line = f"gone from {' and '.join(places)}: {_counted(gone)}"
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
        _take_down_published(target, change.after, request.removed)
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
