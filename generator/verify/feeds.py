"""Whether feeds show the right markets, and say of each what it was or is; Atom and JSON alike."""

import html
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from generator.api import contract, keys
from generator.api.feeds import MOST_ENTRIES, Feed, FeedEntry, FeedName
from generator.config.settings import Config
from generator.feeds import atom, json_feed
from generator.verify.earlier_states import UNKNOWN
from generator.verify.inquiry import Inquiry, stale
from generator.verify.mismatches import Mismatch, Verdict, flaws, not_ok, parsed
from generator.verify.reader import SiteAnswer

#: What of an entry of a feed follows from its market alone.
_OF_ENTRY: Final = frozenset({"id", "title", "content_text", "date_published", "tags"})
#: What a market was before a step resolved it.
_UNSETTLED: Final = {"status": "open", "resolution": None, "resolvedAt": None}
#: The properties of a market without which nothing can be said of its entry.
_NEEDED: Final = ("question", "closeTime", "createdAt")
#: The properties of markets that the entry of their question follows from.
_OF_QUESTION: Final = ("status", "closeTime", "resolvedAt", "categories")
_URN: Final = "urn:uuid:"


class AtomEntry(NamedTuple):
    """An entry of an Atom feed, as texts; empty where it has none."""

    id: str
    title: str
    summary: str
    link: str


@dataclass(frozen=True)
class FeedCheck:
    """The feed of this name, where it is published."""

    name: FeedName

    def __call__(self, asked: Inquiry) -> Iterator[Mismatch]:
        """Compare which markets it shows, and what it says of each."""
        if not asked.site.offers.feeds:
            return
        answer = asked.reader.get(keys.feed(self.name, "json"))
        page, broken = parsed(answer, Feed, content_type="application/feed+json")
        yield from broken
        if page is None:
            return
        source = asked.site.lists.get(json_feed.source(self.name, asked.site.settings))
        if source is None:
            return  # of questions, which cannot be told
        made = json_feed.make(self.name, source, Config())
        yield from self._unlike(asked, answer, page.items, made.items, _of_json)
        yield from self._in_atom(asked, page, made)

    def _in_atom(self, asked: Inquiry, page: Feed, made: Feed) -> Iterator[Mismatch]:
        """The same feed in its other form: as the dump says, with the links of the JSON feed."""
        answer = asked.reader.get(keys.feed(self.name, "atom"))
        yield from (Mismatch(Verdict.BROKEN, answer.target, text) for text in flaws(answer, "application/atom+xml"))
        if answer.status != HTTPStatus.OK:
            yield not_ok(answer)
            return
        shown = atom_entries(answer.body)
        links = {entry.id: entry.url for entry in page.items}
        wrong = [*self._unlike(asked, answer, shown, made.items, _of_atom)]
        yield from wrong
        unlike = next((entry for entry in shown if entry.link != links.get(entry.id, entry.link)), None)
        if unlike and not wrong:
            text = f"its entry {unlike.id} leads to {unlike.link!a:.200}; that of the JSON feed to {links[unlike.id]!a}"
            yield Mismatch(Verdict.WRONG, answer.target, text)

    def _unlike(
        self,
        asked: Inquiry,
        answer: SiteAnswer,
        entries: list[Any],
        made: list[FeedEntry],
        part: Callable[[Any], object],
    ) -> Iterator[Mismatch]:
        """Tell if the entries are not those that were made of the dump, in the part that is compared."""
        shown, wanted = ({_market_of(entry): part(entry) for entry in each} for each in (entries, made))
        if [*shown.items()] == [*wanted.items()] and len(shown) == len(entries):
            return
        gone = next((one for one in shown if one and not asked.site.shows(one)), None)
        if gone:
            text = f"shows {asked.site.named(gone)}, which {asked.site.basis} does not have{answer.age}"
            yield Mismatch(Verdict.WITHDRAWN, answer.target, text)
            return

        def can_be(number: int) -> bool:
            return all(self._was(asked, number, one, part) == entry for one, entry in shown.items())

        since = asked.earlier.newest([*shown], [*wanted], can_be)
        if since:
            yield stale(asked, answer, since)
            return
        edited = next((one for one in shown if one in wanted and shown[one] != wanted[one]), None)
        unlike = f"other texts of {asked.site.named(edited)}" if edited else "other markets, or another order,"
        yield Mismatch(Verdict.WRONG, answer.target, f"shows {unlike} than {asked.site.basis} has{answer.age}")

    def _was(self, asked: Inquiry, number: int, market_id: str, part: Callable[[Any], object]) -> object:
        """What is compared of an entry as it was before a step; None if nobody can tell."""
        question = asked.site.questions and asked.site.questions.present.get(market_id)
        if question:
            is_as_now = asked.earlier.is_as_now(number, market_id, _OF_QUESTION)
            return self._made(question.row, part) if is_as_now else None
        values = asked.earlier.before(number, market_id)
        if values is None or any(values[name] is UNKNOWN for name in _NEEDED):
            return None
        item = {name: _UNSETTLED.get(name) if value is UNKNOWN else value for name, value in values.items()}
        if item.get("categories", ()) is None:
            return None
        return self._made(item, part)

    def _made(self, item: Mapping[str, Any], part: Callable[[Any], object]) -> object:
        return part(json_feed.make(self.name, [contract.encode(item)], Config()).items[0])


def atom_entries(body: bytes) -> list[AtomEntry]:
    """The entries of an Atom feed as `build` writes it, and one more than it can have at most."""
    texts = body.decode("utf-8", "replace").split("<entry>", MOST_ENTRIES + 2)[1:][: MOST_ENTRIES + 1]
    return [
        AtomEntry(
            _between(text, "<id>", "</id>"),
            _between(text, "<title>", "</title>"),
            html.unescape(_between(text, '<summary type="html">', "</summary>")),
            _between(text, '<link href="', '"'),
        )
        for text in texts
    ]


def _between(text: str, start: str, end: str) -> str:
    return html.unescape(text.partition(start)[2].partition(end)[0])


def _market_of(entry: FeedEntry | AtomEntry) -> str:
    return entry.id.removeprefix(_URN)


def _of_json(entry: FeedEntry) -> object:
    return entry.model_dump(include={*_OF_ENTRY})


def _of_atom(entry: FeedEntry | AtomEntry) -> object:
    """Title and text of an entry; of one of a JSON feed, as Atom has them."""
    if isinstance(entry, AtomEntry):
        return entry.title, entry.summary
    return atom.in_xml(entry.title), atom.in_xml(entry.content_text)
