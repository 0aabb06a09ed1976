"""What a report counts of searches, questions and downloads."""

from typing import TYPE_CHECKING, Self

from generator.api.changes import ChangesHead
from generator.api.downloads import DumpHead
from generator.models import replaced
from generator.tree.stored import StoredModel
from generator.wording import counted

if TYPE_CHECKING:
    from generator.search.generation import SearchIndex
    from generator.site.catalog import Catalog


class SearchCounts(StoredModel):
    """The search index: its words, categories aside, its objects and their bytes, and those of the largest one."""

    words: int
    generation: str
    objects: int
    bytes: int
    largest_bytes: int

    @classmethod
    def of(cls, index: "SearchIndex") -> "SearchCounts":
        """Count an index."""
        weight = index.weight()
        largest = max(len(body) for _, body in (*index.objects(), *index.first_pages()))
        return cls(
            words=index.words,
            generation=index.name,
            objects=weight.objects,
            bytes=weight.bytes,
            largest_bytes=largest,
        )


class QuestionCounts(StoredModel):
    """The questions that are published, the markets in them, and the listed markets that are in none."""

    published: int
    members: int
    alone: int

    @classmethod
    def of(cls, catalog: "Catalog") -> "QuestionCounts | None":
        """Count those of a catalog; None where there is no such resource."""
        if catalog.questions is None:
            return None
        members = sum(len(question.members) for question in catalog.questions)
        return cls(published=len(catalog.questions), members=members, alone=len(catalog.listed()) - members)

    def sentence(self) -> str:
        """The same in words, of a build that is to come."""
        listed = counted(self.members + self.alone, "listed market", ",")
        return f"{self.published:,} can be published, with {self.members:,} of {listed}"


class DownloadCounts(StoredModel):
    """Dump and change feed: the markets of the dump, the bytes of its files, and the retained steps.

    `history_files` and `history_bytes` are those of histories and fills. Without a change feed, `session` is empty.
    """

    as_of: str = ""
    markets: int = 0
    ndjson_bytes: int = 0
    parquet_bytes: int = 0
    history_files: int = 0
    history_bytes: int = 0
    session: str = ""
    serial: int = 0
    steps: int = 0
    steps_bytes: int = 0

    @classmethod
    def of(cls, head: DumpHead, feed: ChangesHead | None) -> "DownloadCounts":
        """Count a dump, and its change feed, if it has one."""
        histories = head.tables()
        counts = cls(
            as_of=head.as_of,
            markets=head.count,
            ndjson_bytes=head.ndjson.size,
            parquet_bytes=head.parquet.size if head.parquet else 0,
            history_files=len(histories),
            history_bytes=sum(file.size for file in histories),
        )
        return counts.followed_by(feed) if feed else counts

    def followed_by(self, feed: ChangesHead) -> Self:
        """The same with this change feed."""
        size = sum(step.size for step in feed.steps)
        changes = {"session": feed.session, "serial": feed.serial, "steps": len(feed.steps), "steps_bytes": size}
        return replaced(self, **changes)
