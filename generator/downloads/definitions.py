"""The file of definitions of questions, and their table: a row for each market, made of the lines of the file. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from generator.api import contract
from generator.api.questions import DefinitionRow, QuestionDefinition
from generator.downloads import segments
from generator.downloads.segments import GzipMember


class WrittenDefinitions(NamedTuple):
    """A finished file: its SHA-256 digest, its bytes, and the digest of its text."""

    sha256: str
    size: int
    state: str


def written(write: Callable[[bytes], object], lines: Sequence[bytes]) -> WrittenDefinitions:
    """Write the file of these lines: gzip, without a time or name in it, so that equal lines give equal bytes."""
    member = GzipMember(write)
    if lines:
        text = b"".join(line + b"\n" for line in lines)
        member.part(segments.compress(text), text)
    digest, state = member.close()
    return WrittenDefinitions(digest, member.size, state)


def rows(
    lines: Iterable[bytes], url_of: Callable[[str, str | None], str | None] | None = None
) -> Iterator[DefinitionRow]:
    """The rows of definitions, in their order; `url_of` gives the address of a question's page by id and slug.

    Raises ValueError for a line that is no definition.
    """
    for line in lines:
        found = QuestionDefinition.model_validate_json(line)
        url = url_of(found.id, found.slug) if url_of else None
        for member in found.members:
            yield DefinitionRow(
                question_id=found.id,
                kind=found.kind,
                slug=found.slug,
                title=found.title,
                description=found.description,
                created_at=found.created_at,
                market_id=member.id,
                label=member.label,
                position=member.position,
                payout=member.payout,
                url=url,
            )


def encoded(rows: Iterable[DefinitionRow]) -> Iterator[bytes]:
    """The rows as JSON lines, without line feeds."""
    return map(contract.encode, rows)
