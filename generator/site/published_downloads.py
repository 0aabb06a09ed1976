"""What is published of downloads: the heads of the dump, and the questions as their definitions say them."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from typing import TypeAlias

from pydantic import ValidationError

from generator.api import downloads, keys
from generator.api.downloads import DefinitionsFile, DumpHead
from generator.downloads import segments
from generator.markets.questions import Question, without
from generator.site import questions
from generator.site.catalog import Catalog
from generator.tree import generations
from generator.tree.generation import Read, Workplace
from generator.tree.manifest import Manifest

#: Reads the details of questions by their references: None for one that is missing or damaged.
ReadDetails: TypeAlias = Callable[[Iterable[str]], Iterable[bytes | None]]


def heads(manifest: Manifest, folder: Workplace) -> Iterator[DumpHead]:
    """The heads of the dump that may be published, the likeliest first.

    A generation's index says what its head said. A killed run may have replaced the head, and with it the state that
    details are of; otherwise, who put another head was not a publisher.
    """
    current = manifest.current.get(keys.DUMPS)
    in_place = folder.read(keys.head(keys.DUMPS)) or b""
    name = generations.name_of_index(keys.DOWNLOAD_LETTER, in_place)
    replaced = [in_place] if (keys.DUMPS, name) in manifest.generations() and not manifest.complete else []
    recorded = folder.read(keys.index(keys.DUMPS, current.generation)) if current else None
    for body in (*replaced, recorded or b""):
        with suppress(ValidationError):
            yield DumpHead.model_validate_json(body)


def holding(read: Read, ids: Collection[str]) -> Iterator[tuple[str, str | None]]:
    """The questions that have one of these markets: reference and slug, by the definitions that the head names.

    Nothing if there are none that can be read.
    """
    head = DumpHead.found_by(read)
    file = head.questions.ndjson if head and head.questions else None
    for question in _read(file, read) or () if file else ():
        if any(member.market_id in ids for member in question.members):
            yield keys.question_reference(question.id), question.slug


def with_questions(
    catalog: Catalog,
    manifest: Manifest,
    folder: Workplace,
    details: ReadDetails,
) -> Catalog:
    """The catalog with the questions that are published, by their definitions, or else by their details.

    What the definitions say of other markets and questions is left out: a killed run may have put them.
    """
    references, found = manifest.questions(), _defined(manifest, folder)
    if found is None:
        found = [*_parted(_detailed(details(sorted(references))))]
    listed = {market.id for market in catalog.listed()}
    gone = {member.market_id for question in found for member in question.members} - listed
    gone.update({keys.question_reference(question.id) for question in found} - references)
    site_keys = manifest.site_keys
    return catalog.of_questions(
        [
            question._replace(key=site_keys.get(keys.question_reference(question.id)))
            for question in without(found, gone)
        ]
    )


def _defined(manifest: Manifest, folder: Workplace) -> list[Question] | None:
    """The questions of the definitions in place; None if there are none, or none that are whole."""
    for head in heads(manifest, folder):
        file = head.questions.ndjson if head.questions else None
        if file and (found := _read(file, folder.read)) is not None:
            return found
    return None


def _read(file: DefinitionsFile, read: Read) -> list[Question] | None:
    """The questions of a file of definitions; None if it is missing or damaged."""
    body = read(file.key)
    if body is None or not downloads.is_named_by(file.key, body):
        return None
    with suppress(ValueError):
        return questions.published(segments.lines([body]))
    return None


def _parted(found: Iterable[Question]) -> Iterator[Question]:
    """The questions, each market in the first that has it: a killed run may have put the details of two states."""
    taken = set[str]()
    for question in found:
        for kept in without([question], taken):
            taken.update(member.market_id for member in kept.members)
            yield kept


def _detailed(bodies: Iterable[bytes | None]) -> Iterator[Question]:
    """The questions of these details, of those that can be read."""
    for body in bodies:
        with suppress(ValueError):
            yield questions.detailed(body or b"")
