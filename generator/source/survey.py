"""What a build must know of all markets before it reads ranges of them independently. It opens no connection."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from generator.findings import Finding
from generator.markets.categories import AS_GIVEN, Spellings
from generator.markets.site_keys import NO_KEYS, SiteKeys
from generator.source.queries import EVERYTHING, Range


class Part(NamedTuple):
    """A range, and its place among all visible markets in the database's order: from `first` to before `last`."""

    within: Range
    first: int
    last: int


@dataclass(frozen=True)
class Facts:
    """What the rows of a part do not tell about its markets.

    `columns` are those of OPTIONAL that the database has. `slugs` are by market id as the database spells it, `fx`
    memberships by id in lower case. `repeated` counts the occurrences of every id, in lower case, that is not unique.
    """

    columns: tuple[str, ...] = ()
    fx: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    slugs: Mapping[str, str] = field(default_factory=dict)
    spellings: Spellings = AS_GIVEN
    repeated: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Survey:
    """All visible markets, by id as the database spells and sorts them, and what is known of them together.

    `hidden` is the number of hidden markets. `site_keys` are those of the operator's site, which no detail shows.
    """

    keys: Sequence[Any]
    hidden: int
    facts: Facts
    refused_slugs: Mapping[str, Finding]
    site_keys: SiteKeys = NO_KEYS

    def parts(self, size: int) -> list[Part]:
        """Divide all markets into parts of about `size` markets, in the database's order."""
        starts = [*self._starts(size)]
        if not starts:
            return [Part(EVERYTHING, 0, len(self.keys))]
        # No comparison is true of NULL, so one part asks for it by name.
        first = Range(None, self.keys[starts[0]], has_null=None in self.keys)
        bounds = zip(starts, [*starts[1:], len(self.keys)], strict=True)
        later = (Part(Range(self.keys[start], self._end(end)), start, end) for start, end in bounds)
        return [Part(first, 0, starts[0]), *later]

    def _starts(self, size: int) -> Iterator[int]:
        """Where all parts but the first begin: at ids that any database can compare with."""
        start = size
        while start < len(self.keys):
            if _can_be_asked_for(self.keys[start]):
                yield start
                start += size
            else:
                start += 1

    def _end(self, place: int) -> Any:
        return self.keys[place] if place < len(self.keys) else None

    def ids(self, part: Part) -> list[str]:
        """The ids of a part's markets, in lower case, malformed ones included."""
        return [str(key).lower() for key in self.keys[part.first : part.last]]

    def facts_of(self, part: Part) -> Facts:
        """What is known of the markets of a part."""
        known, keys, found = self.facts, self.keys[part.first : part.last], self.ids(part)
        return Facts(
            known.columns, _of(known.fx, found), _of(known.slugs, keys), known.spellings, _of(known.repeated, found)
        )


def _of(mapping: Mapping[Any, Any], keys: Iterable[Any]) -> dict[Any, Any]:
    return {key: mapping[key] for key in keys if key in mapping} if mapping else {}


def repeated(keys: Sequence[Any]) -> dict[str, int]:
    """How often each id occurs that is not unique, by the id in lower case; spellings that differ in case are equal."""
    found = [str(key).lower() for key in keys]
    return {key: count for key, count in Counter(found).items() if count > 1} if len({*found}) < len(found) else {}


def _can_be_asked_for(key: Any) -> bool:
    """Whether this is a plain text. One that is no UUID will be quarantined, but a million must not be one part."""
    return isinstance(key, str) and key.isprintable()  # which neither NUL nor invalid UTF-8 is
