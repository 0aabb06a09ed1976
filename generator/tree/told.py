"""What a build told of bad rows and remarks, as its report keeps it for the next build. Pure.

It holds digests, and no text of the site; those of markets that are taken down go.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Final

from pydantic import ValidationError

from generator.models import replaced
from generator.tree.stored import StoredModel

#: Stands between the digests of a finding's key and of its value.
AND: Final = "-"
#: What came less than this time before a build is new in it.
_NEW: Final = timedelta(days=1)


class ToldKind(StoredModel):
    """The findings of one kind: their number, and since when (as-of) each is there, by digest; None: not known.

    `rows` has the number of those that are there more than once.
    """

    subject: str
    what: str
    count: int
    since: Mapping[str, str | None] = {}
    rows: Mapping[str, int] = {}

    def counts(self) -> Counter[str]:
        """How many there are, by digest."""
        return Counter({**dict.fromkeys(self.since, 1), **self.rows})

    def without(self, gone: Collection[str]) -> "ToldKind":
        """The same without those whose key has one of these digests."""
        kept = {found: since for found, since in self.since.items() if key_half(found) not in gone}
        counts = self.counts()
        fewer = sum(counts[found] for found in counts.keys() - kept.keys())
        rows = {found: number for found, number in self.rows.items() if found in kept}
        return replaced(self, count=self.count - fewer, since=kept, rows=rows)


class Told(StoredModel):
    """What a build told: faults of quarantined rows, of which `unnamed` rows are only counted, and remarks."""

    unnamed: int = 0
    faults: tuple[ToldKind, ...] = ()
    remarks: tuple[ToldKind, ...] = ()

    @classmethod
    def of(cls, report: bytes | None) -> "Told | None":
        """What a saved report says; None if it is missing, damaged, or of a version that did not say it."""
        try:
            return _Report.model_validate_json(report or b"{}").told
        except ValidationError:
            return None

    def without(self, ids: Collection[str]) -> "Told":
        """The same without what is about these ids, in lower case, of markets or questions."""
        gone = {digest(spelled) for one in ids for spelled in (one, one.upper())}
        faults, remarks = (tuple(kind.without(gone) for kind in kinds) for kinds in (self.faults, self.remarks))
        return replaced(self, faults=faults, remarks=remarks)


class _Report(StoredModel, extra="ignore"):
    told: Told


def is_new(since: str | None, as_of: str) -> bool:
    """Whether what is there since then is new in the build of `as_of`. What is there nobody knows since when is not."""
    return since is not None and datetime.fromisoformat(as_of) - datetime.fromisoformat(since) < _NEW


def digest(text: str) -> str:
    """What stands for a key or a value."""
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def key_half(found: str) -> str:
    """What a finding's digest has of its key."""
    return found.partition(AND)[0]
