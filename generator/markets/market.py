"""A public market, as lists show it, and the digests by which its detail is known to be unchanged. Pure."""

import hashlib
from binascii import b2a_base64
from collections.abc import Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple, get_args

from pydantic_core import from_json

from generator.api import contract, resources, slugs
from generator.api.contract import (
    MarketStatus,
    PublicMarketListItem,
)
from generator.markets import legibility
from generator.markets.fills import Window
from generator.search.words import Vocabulary

#: A multiple of three, so that Base64 needs no padding.
_BYTES: Final = 15


class Fingerprint(NamedTuple):
    """Digests of the database's `detail_version`, and of the market object that begins the detail."""

    version: str
    market: str


def digest(content: bytes) -> str:
    """A short digest."""
    return b2a_base64(hashlib.blake2b(content, digest_size=_BYTES).digest(), newline=False).decode()


def version_digest(value: object) -> str | None:
    """A digest of a version, which differs if the value or its type does; None for NULL, which says nothing."""
    return None if value is None else digest(f"{type(value).__name__} {value!r}".encode())


class Market(NamedTuple):
    """A public market. `body` is what lists show of it, encoded once for all lists and pages.

    Sites may have a million of them, so each is a kilobyte: of the values in `body` it keeps those that all markets are
    sorted or looked up by, and nothing else. It is a tuple because a tuple is made in a tenth of the time.

    `categories` holds the slugs of the item's categories; empty in the core variant. `has_early_outcome` tells that the
    row has an outcome or a settlement time, which the item does not show yet, `has_bidi_override` that one of its texts
    shows others in another order than they have, `hides_characters` and `mixes_scripts` that the question is not what
    it looks like (see `legibility`). `words` are the distinct ones that a
    search finds the market by. `fingerprint` is None if the database does not tell the detail's version; `until` is
    that of `fills.Window`.
    """

    id: str
    body: bytes
    status: MarketStatus
    resolution: contract.Resolution | None
    slug: str | None
    volume: float
    close_time: str
    created_at: str
    resolved_at: str | None
    last_activity_at: str
    trader_count: int
    fills24h: int
    accepting_bets: bool
    has_visible_question: bool
    has_bidi_override: bool
    hides_characters: bool
    mixes_scripts: bool
    fx: contract.FxFamilyMember | None
    categories: tuple[str, ...]
    has_early_outcome: bool
    words: tuple[str, ...] = ()
    fingerprint: Fingerprint | None = None
    until: str = ""

    @classmethod
    def of(
        cls,
        market: contract.PublicMarketDetailMarket,
        *,
        has_early_outcome: bool = False,
        words: tuple[str, ...] = (),
        version: str | None = None,
        until: str = "",
    ) -> "Market":
        """Keep only what lists show, and the `words`; `version` is a digest.

        A description may be a megabyte, and is read again for the detail if need be.
        """
        item = resources.of_valid(PublicMarketListItem, dict(zip(_ITEM, _item_values(market), strict=True)))
        body = contract.encode(item)
        return cls(
            **dict(zip(_KEPT, _kept_values(item), strict=True)),
            body=body,
            # One text for all markets, not one for each.
            status=ONE[item.status],
            resolution=ONE[item.resolution],
            has_visible_question=is_visible(item.question),
            has_bidi_override=overrides_direction(_texts_of(market), market.fx_family_member, market.categories),
            hides_characters=legibility.hides_characters(item.question),
            mixes_scripts=legibility.mixes_scripts(item.question),
            fx=market.fx_family_member,
            categories=slugs_of(item.categories),
            has_early_outcome=has_early_outcome,
            words=words,
            fingerprint=None if version is None else fingerprint(version, body, _rest_values(market)),
            until=until,
        )

    @classmethod
    def of_item(cls, body: bytes, words: tuple[str, ...] = ()) -> "Market":
        """The market of an item that this program made, not validated again; what only builds ask is not known of it.

        Raises ValueError or KeyError if it is no item.
        """
        item = from_json(body)
        shown = (item["id"], body, ONE[item["status"]], ONE[item["resolution"]], item.get("slug"), *_more_shown(item))
        return cls._make((*shown, *_NOT_ASKED, None, slugs_of(item.get("categories")), False, words, None, ""))

    @classmethod
    def unread(cls, market_id: str, slug: str | None) -> "Market":
        """A member of a public FX family of which nothing else is known."""
        return _UNREAD._replace(id=market_id, slug=slug)

    def holds_at(self, now: str) -> bool:
        """Whether time alone changes nothing by a later instant: it is not closed, and its count of fills the same."""
        is_open_still = not self.accepting_bets or now < self.close_time
        return is_open_still and Window(self.fills24h, self.until).holds_at(now)

    @property
    def item(self) -> PublicMarketListItem:
        """What lists show of it, decoded anew."""
        found = from_json(self.body)
        return resources.of_valid(PublicMarketListItem, {name: found.get(key) for name, key in _KEYS.items()})

    def category_names(self) -> dict[str, str]:
        """The names of its categories, by slug."""
        return dict(zip(self.categories, self.item.categories or (), strict=True))


class SearchWords:
    """The words that searches find markets by, in the texts of these names: `title` or `description`."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(names)
        self._vocabulary = Vocabulary()

    def of(self, question: str, description: str | None) -> tuple[str, ...]:
        """The distinct words of a market."""
        if not self._names:
            return ()
        texts = {"title": question, "description": description or ""}
        return self._vocabulary.of_texts(texts[name] for name in self._names)


def is_visible(question: str) -> bool:
    """Whether a question has a visible character."""
    return question[:1].isalnum() or any(letter.isprintable() and not letter.isspace() for letter in question)


def overrides_direction(
    texts: Iterable[str | None], fx: contract.FxFamilyMember | None, categories: Iterable[str] | None
) -> bool:
    """Whether a text of a market has a character that overrides the direction in which letters are shown."""
    members = (fx.title, fx.instrument, fx.source) if fx else ()
    shown = (*texts, *members, *(categories or ()))
    return any(mark in text for text in shown if text for mark in _OVERRIDES)


def slugs_of(categories: Iterable[str] | None) -> tuple[str, ...]:
    """The slugs of a market's categories, which the core variant does not have."""
    return tuple(map(slugs.of_category, categories)) if categories else ()


def fingerprint(version: str, body: bytes, rest: Sequence[Any]) -> Fingerprint:
    """The fingerprint of a market, of its item and the values of the fields REST."""
    return Fingerprint(version, digest(body + contract.encode(rest)))


#: The fields of a market that are those of its item.
_KEPT: Final = (
    *("id", "slug", "volume", "close_time", "created_at", "resolved_at", "last_activity_at", "trader_count"),
    *("fills24h", "accepting_bets"),
)
#: One text of each status and resolution, shared by all markets.
ONE: Final[dict[Any, Any]] = {
    value: value for value in (*contract.MARKET_STATUSES, *get_args(contract.Resolution), None)
}
#: The fields of an item.
_ITEM: Final = tuple(PublicMarketListItem.model_fields)
#: Its fields with texts that people write, other than those of its FX family and its categories.
TEXTS: Final = ("question", "description", "trading_pause_reason", "creation_source", "sponsor")
_texts_of: Final = attrgetter(*TEXTS)
#: LEFT-TO-RIGHT OVERRIDE and its opposite. Embeddings and isolates are in honest texts of some languages.
_OVERRIDES: Final = ("\u202d", "\u202e")
#: The fields that only the detail shows of a market.
REST: Final = tuple(name for name in contract.PublicMarketDetailMarket.model_fields if name not in _ITEM)
_item_values: Final = attrgetter(*_ITEM)
_rest_values: Final = attrgetter(*REST)
_kept_values: Final = attrgetter(*_KEPT)
#: What these fields are called on the wire.
_KEYS: Final = {name: field.alias or name for name, field in PublicMarketListItem.model_fields.items()}
_more_shown: Final = itemgetter(*(_KEYS[name] for name in _KEPT[2:]))
#: What only findings ask of its texts.
_NOT_ASKED: Final = (True, False, False, False)
_UNREAD: Final = Market._make([None] * len(Market._fields))._replace(
    fx=resources.of_valid(contract.FxFamilyMember, {}), categories=(), words=(), until=""
)
