"""Which markets or questions are meant: by the record, the folder, the blocked list, and the objects that readers see.

The database is not asked: what it hides already may be published still. Nor is the record alone: readers see what the
objects say, whether a record is there or not.
"""

import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from generator import __version__
from generator.api import keys
from generator.api.contract import API_VERSION, PublicMarketListItem
from generator.api.forms import is_uuid
from generator.config.settings import Config
from generator.config.shape import QUESTIONS
from generator.errors import OutputError, PublicMarketsError, StoreError
from generator.models import replaced
from generator.publish import blocklist as store_blocklist
from generator.publish import record, references, store_checks
from generator.publish.decisions import Known, Name, Named, Shown
from generator.publish.lease import Target
from generator.publish.record import Published
from generator.publish.references import QUESTION
from generator.publish.withdrawal import StoredState
from generator.site.catalog import FoundQuestion, matching, matching_questions
from generator.site.published import PublishedState
from generator.stores.requests import body_of, explaining_outage, with_retries
from generator.stores.store import Store, UnavailableError
from generator.tree import blocklist
from generator.tree.blocklist import BlockedList
from generator.tree.files import MANIFEST
from generator.tree.folder import locked, read_only
from generator.tree.manifest import Manifest


def known(
    config: Config, target: Target | None, ids: Collection[str], names: Collection[Name], taken_down: BlockedList
) -> Known:
    """What names markets and questions, as far as store, folder and blocked list can tell.

    Without any to look up, no store is asked. Whatever is wrong with store or folder, it keeps no id from being
    blocked. What reading them raised is raised here only if the rest does not know what each of the `names`, which are
    no ids, means.
    """
    manifests, unrecorded = list[Named](), dict[str, Shown]()
    failure: Exception | None = None
    try:
        with read_only(config.output) as folder:
            if built := folder.manifest():
                manifests.append(Named(str(config.output), str(folder.path(MANIFEST)), built))
    except OutputError as error:
        failure = error
    if target and (ids or names):
        store = target.store
        try:
            with explaining_outage(store):
                manifests[:0] = _recorded(target, config, names, unrecorded)
        except Exception as error:  # noqa: BLE001 - raised below unless nobody need know
            failure = error
    found = Known(tuple(manifests), taken_down, unrecorded)
    if failure and not all(found.meant(name, config) for name in names):
        raise failure
    return found


def _recorded(target: Target, config: Config, names: Collection[Name], unrecorded: dict[str, Shown]) -> list[Named]:
    """The record, if there is one; what the store shows by these names, whatever the record says, is added."""
    store = target.store
    for name in names:
        unrecorded.update(_shown(store, config, name))
    published = target.lease.read()
    if not published or published.built.questions():
        for name in names:  # one of a market that may be a question's, too, is none
            unrecorded.update(_shown(store, config, Name(name.text, QUESTION)))
    if published:
        return [Named(store.name, f"the record of {store.name}", published.built)]
    if names:
        _require_empty(store)
    return []


def _shown(store: Store, config: Config, name: Name) -> Iterator[tuple[str, Shown]]:
    """What the store's objects show by this name: by a slug, or by the beginning of an id."""
    text, kind = name
    for slug in references.slugs_in(text, config, kind):
        body = body_of(store, keys.question_by_slug(slug) if kind is QUESTION else keys.detail_by_slug(slug))
        found = references.subject_of(body)
        if found and (found.said.slug or "").lower() == slug.lower() and is_uuid(found.said.id):
            yield kind.reference(found.said.id.lower()), Shown(store.name, found.said.slug, found.members)
    if start := references.id_begun(text):
        listed = with_retries(lambda: [*store.keys(f"{kind.details}/{start[:2]}/{start}")])
        for identity in map(keys.question_id if kind is QUESTION else keys.market_id, listed):
            if identity and is_uuid(identity):
                yield kind.reference(identity), Shown(store.name, None)


def _require_empty(store: Store) -> None:
    """Raise StoreError if a store without a record holds what one should describe."""
    if with_retries(partial(store_checks.foreign_object, store)):
        raise StoreError(
            f"{store.name}: holds {API_VERSION}/ but no {record.KEY}, so nobody knows all names of its markets; name "
            "the market by its id, its slug or an address of the API, or run `public-markets rebuild --verify`, which "
            "writes the record anew"
        )


class PublishedDetail(NamedTuple):
    """What the detail of a market or question says, the markets (ids) of a question, and where the detail is."""

    place: str
    said: references.Detailed
    members: frozenset[str]


def detailed(config: Config, target: Target | None, reference: str) -> PublishedDetail | None:
    """The detail of a market or question: in the store, or else in the folder; None without either."""
    key = keys.detail(reference)
    with suppress(PublicMarketsError, UnavailableError):
        if target and (stored := _published_in(target.store.name, body_of(target.store, key))):
            return stored
    with suppress(OutputError), read_only(config.output) as folder:
        return _published_in(str(config.output), folder.read(key))
    return None


def _published_in(place: str, body: bytes | None) -> PublishedDetail | None:
    subject = references.subject_of(body)
    return None if subject is None else PublishedDetail(place, *subject)


def blocked(config: Config, target: Target | None) -> BlockedList:
    """What the store or the folder has blocked."""
    found = BlockedList()
    with suppress(OutputError), read_only(config.output) as folder:
        found = blocklist.left(folder)
    if target:
        with explaining_outage(target.store):
            found = found.merged(store_blocklist.read(target.store, keeps_damaged=True))
    return found


# The search of `find`


class Lookup(NamedTuple):
    """The markets and questions that a text may mean, the likeliest first, as they are published in a place, as of."""

    place: str
    as_of: str
    markets: list[PublicMarketListItem]
    questions: list[FoundQuestion]


def look_up(config: Config, target: Target | None, text: str) -> Lookup:
    """Look for an id or the beginning of one, a slug, a key, an address, or words of a question.

    Raises PublicMarketsError if nothing is published, if what is published cannot be read, or if the text is the name
    of a market and of a question.
    """
    with _published(config, target) as (place, state):
        catalog, built = state.catalog(), state.manifest
        if not built.slugs:  # as details have them, where no record has
            slugs = {market.id: (market.slug,) for market in catalog.markets if market.slug is not None}
            questions = {keys.question_reference(one.id): one.slug for one in catalog.questions or ()}
            slugs |= {reference: (slug,) for reference, slug in questions.items() if slug is not None}
            built = replaced(built, slugs=slugs)
        named = references.meant(text, config, built)
        of_questions = references.meant(text, config, built, QUESTION)
        known = Known((Named(place, place, built),))
        if named & catalog.ids() and of_questions & catalog.references():
            known.reference_of(Name(text), config)  # which tells what to do
        is_name = references.is_address(text) or references.reference_in(text, config) is not None
        words = "" if is_name else text
        found = matching_questions(catalog, words, keys.question_ids(of_questions))
        return Lookup(place, built.as_of, [*matching(catalog, words, named)], [*found])


@contextmanager
def _published(config: Config, target: Target | None) -> Iterator[tuple[str, PublishedState]]:
    if target is None:
        with read_only(config.output) as folder:
            manifest = folder.manifest()
            if manifest is None:
                raise PublicMarketsError(f"{config.output}: holds no build; run `public-markets build` first")
            yield str(config.output), PublishedState(manifest, folder)
        return
    store = target.store
    with explaining_outage(store), tempfile.TemporaryDirectory() as scratch, locked(Path(scratch)) as folder:
        published = target.lease.read(is_doubted=True)
        place = store.name
        if published is None or target.lease.is_damaged:
            place = f"{store.name}, whose record is missing, damaged or of another version"
            published = Published(sequence=0, built=_detailed(store, config, target.lease.now), etags={})
        elif published.built.is_first:
            place = f"{store.name}, whose first publish did not end"
        yield place, StoredState(store, published).as_folder(folder)


def _detailed(store: Store, config: Config, now: str) -> Manifest:
    """A manifest of what details show, for a store without a record; raises PublicMarketsError if there are none."""
    found = with_retries(lambda: [*map(keys.market_id, store.keys(f"{keys.DETAILS}/"))])
    asked = with_retries(lambda: [*filter(None, map(keys.question_id, store.keys(f"{keys.QUESTION_DETAILS}/")))])
    if not found:
        _require_empty(store)
        raise PublicMarketsError(f"{store.name}: nothing is published there yet")
    return Manifest(
        complete=True, as_of=now, version=__version__, variant=config.variant, layout=config.layout, current={},
        retired=(), objects={}, settings={QUESTIONS: bool(asked)},
        markets=dict.fromkeys([*filter(None, found), *map(keys.question_reference, asked)], ()),
    )  # fmt: skip
