"""How an answer can differ from what it must be, and how bad that is."""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from itertools import islice
from typing import Final, NamedTuple

from generator.wording import escaped


class Verdict(IntEnum):
    """How bad a mismatch is: also the exit code of a run whose worst one it is. A note is none, and does not count."""

    NOTE = 0
    STALE = 6
    WITHDRAWN = 7
    WRONG = 8
    BROKEN = 9


#: What the last line says of a run, by its worst mismatch.
MEANINGS: Final = {
    Verdict.STALE: "some answers are of an earlier state; run again in some minutes, and purge the CDN if they stay",
    Verdict.WITHDRAWN: "markets that were withdrawn are still shown; purge the CDN now",
    Verdict.WRONG: "some answers contradict the dump; purge the CDN, then run `public-markets publish --verify`",
    Verdict.BROKEN: "some answers break the contract; compare the edge's configuration with what `build` rendered",
}
#: The same where a deployment was held to the contract alone.
CONTRACT_MEANINGS: Final = {
    Verdict.WRONG: "some answers contradict each other, or the order of their sort; each line names where",
    Verdict.BROKEN: "some answers have not the form that the contract gives them; each line names what",
}


#: How much of what one check finds is told, and of each text: all of it may come from the site.
_MOST: Final = 1_000
_LONGEST: Final = 1_000


class Mismatch(NamedTuple):
    """What is wrong with the answer to a request: `target` is its path and query, `text` a sentence."""

    verdict: Verdict
    target: str
    text: str

    def __str__(self) -> str:
        return escaped(f"{self.verdict.name.lower()}: {self.target}: {self.text}")


def told(found: Iterable[Mismatch]) -> Iterator[Mismatch]:
    """As much of what is wrong as anybody reads."""
    for one in islice(found, _MOST):
        yield one._replace(target=one.target[:_LONGEST], text=one.text[:_LONGEST])
