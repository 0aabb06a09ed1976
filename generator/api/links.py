"""Links home: the addresses of pages on the operator's site, and which market or question such an address means. Pure.

The contract's objects have no place for them: they are in feeds, in Parquet and on the page for people.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from types import MappingProxyType
from typing import Final, NamedTuple

from generator.api import forms, slugs
from generator.config.market_url import MarketUrl, Placeholder

LONGEST_KEY: Final = 200
#: What is no key: a client would take these for a folder of the address.
_DOTS: Final = frozenset((".", ".."))
#: Nor is a text with a control character, or with a surrogate, which UTF-8 does not have.
_NO_TEXT: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NO_KEYS: Final[Mapping[str, str]] = MappingProxyType({})


class MarketReference(NamedTuple):
    """What an address says of a market or question: its id, its slug, or its key on the operator's site."""

    name: Placeholder
    value: str


@dataclass(frozen=True)
class Links:
    """The addresses of pages of markets, or of questions; `site_keys` are by id. Without a template, none has one.

    `questions` are the ids of those that markets are in, by the markets' ids.
    """

    url: MarketUrl | None = None
    site_keys: Mapping[str, str] = field(default_factory=dict)
    questions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def to(
        cls, template: str | None, site_keys: Mapping[str, str] = _NO_KEYS, questions: Mapping[str, str] = _NO_KEYS
    ) -> "Links":
        """The links by the setting `market_url`, or `question_url`."""
        return cls(None if template is None else MarketUrl.of(template), site_keys, questions)

    @property
    def needs_question(self) -> bool:
        """Whether a market that is in no question has no link."""
        return self.url is not None and self.url.needs_question

    def of(self, identity: str, slug: str | None) -> str | None:
        """The address of the page of a market or question (id); None if it lacks what the address is made of."""
        if self.url is None:
            return None
        value = {"id": identity, "slug": slug, "key": self.site_keys.get(identity)}[self.url.placeholder]
        question_id = self.questions.get(identity, "")
        if value is None or (self.url.needs_question and not question_id):
            return None
        return self.url.address(value, question_id)

    def digest(self, market_ids: Iterable[str]) -> str:
        """A digest of what these links are made of besides ids and slugs; empty if there are none."""
        if self.url is None:
            return ""
        found = sha256(f"{self.url.before}\n{self.url.placeholder}\n{self.url.after}\n".encode())
        # Piece by piece: there may be a million. No key has a line feed in it, and none is empty.
        of_each = [self.site_keys] * (self.url.placeholder == "key") + [self.questions] * self.url.needs_question
        for market_id in market_ids if of_each else ():
            values = "\n".join(found_for.get(market_id, "") for found_for in of_each)
            found.update(f"{market_id}\n{values}\n".encode())
        return found.hexdigest()


#: Those of a site that has no pages for markets.
NO_LINKS: Final = Links()


def uses_keys(template: str | None) -> bool:
    """Whether links are made of keys."""
    return template is not None and name_in(template) == "key"


def uri_template(template: str | None) -> str | None:
    """The template for readers, by RFC 6570; None if it needs a key, or what else they do not see in a market."""
    return None if template is None or uses_keys(template) or MarketUrl.of(template).needs_question else template


def name_in(template: str) -> Placeholder:
    """The name of what a template needs of a market."""
    return MarketUrl.of(template).placeholder


def reference(template: str | None, address: str) -> MarketReference | None:
    """Which market the address of a page means; None for any other address."""
    if template is None:
        return None
    parsed = MarketUrl.of(template)
    value = parsed.value_in(address.strip())
    if value is None:
        return None
    if parsed.placeholder == "id":
        return _of_id(value)
    is_possible = {"slug": slugs.can_be_reference, "key": is_site_key}[parsed.placeholder]
    return MarketReference(parsed.placeholder, value) if is_possible(value) else None


def _of_id(value: str) -> MarketReference | None:
    try:
        return MarketReference("id", forms.uuid(value))
    except ValueError:
        return None


def is_site_key(text: str) -> bool:
    """Whether the text can be a key: 1 to LONGEST_KEY characters, not blank, without control characters."""
    is_named = bool(text.strip()) and text not in _DOTS
    return is_named and len(text) <= LONGEST_KEY and not _NO_TEXT.search(text)
