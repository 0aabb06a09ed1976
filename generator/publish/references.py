"""How an operator names a market or question: by id or the beginning of it, by slug, key, or an address. Pure."""

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from pydantic import AliasChoices, BaseModel, Field, ValidationError

from generator.api import forms, keys, links, slugs
from generator.api.links import MarketReference
from generator.config.market_url import MarketUrl
from generator.config.scalars import LOOPBACK
from generator.config.settings import Config
from generator.tree import blocked_names
from generator.tree.blocklist import BlockedList
from generator.tree.manifest import Manifest

#: A shorter text of hexadecimal digits is no beginning of an id: too many others begin so.
SHORTEST_BEGINNING: Final = 8
_BEGINNING: Final = re.compile(rf"[0-9a-f]{{{SHORTEST_BEGINNING}}}[0-9a-f-]*", re.ASCII)
#: Where the groups of an id's digits begin and end.
_GROUPS: Final = (0, 8, 12, 16, 20, 32)


@dataclass(frozen=True)
class NameKind:
    """What a name may be of: its `noun`, the folder of its addresses in the API, and that of details by id.

    `prefix` is what its references begin with, and ids alone do not.
    """

    noun: str
    folder: str
    details: str
    prefix: str = ""

    def reference(self, identity: str) -> str:
        """What stands for the one with this id."""
        return self.prefix + identity

    def is_of(self, reference: str) -> bool:
        """Whether a reference is of this kind."""
        return keys.is_question_reference(reference) is bool(self.prefix)

    @property
    def setting(self) -> str:
        """The key of the setting that has the addresses of pages on the operator's site."""
        return f"{self.noun}_url"

    def url(self, config: Config) -> str | None:
        """The value of that setting."""
        return config.question_url if self.prefix else config.market_url


MARKET: Final = NameKind("market", keys.MARKETS, keys.DETAILS)
QUESTION: Final = NameKind("question", keys.QUESTIONS, keys.QUESTION_DETAILS, keys.OF_QUESTIONS)


class Detailed(BaseModel):
    """The market or question that a published detail is about, as far as it says so; `question` is its text."""

    id: str = ""
    slug: str | None = None
    question: str = Field("", validation_alias=AliasChoices("question", "title"))
    status: str = ""


class _Member(BaseModel):
    market: Detailed


class _Detail(BaseModel):
    market: Detailed | None = None
    question: Detailed | None = None
    markets: tuple[_Member, ...] = ()


class DetailSubject(NamedTuple):
    """What a published detail is about: a market, or a question and its `members`, the ids of its markets."""

    said: Detailed
    members: frozenset[str] = frozenset()

    @property
    def reference(self) -> str:
        """What stands for the market or question."""
        return QUESTION.reference(self.said.id) if self.members else self.said.id


def subject_of(body: bytes | None) -> DetailSubject | None:
    """What a detail's body is about; None if that cannot be read."""
    with suppress(ValidationError):
        detail = _Detail.model_validate_json(body or b"")
        if said := detail.question or detail.market:
            return DetailSubject(said, frozenset(one.market.id for one in detail.markets))
    return None


def showing(bodies: Iterable[bytes | None], ids: Collection[str]) -> Iterator[tuple[str, str | None]]:
    """The questions, reference and slug, whose details are among these bodies and show one of these markets."""
    for subject in filter(None, map(subject_of, bodies)):
        if not subject.members.isdisjoint(ids):
            yield subject.reference, subject.said.slug


def is_address(text: str) -> bool:
    """Whether the text is an address, of whatever site."""
    return "://" in text


def reference_in(text: str, config: Config, kind: NameKind = MARKET) -> str | None:
    """What the text names by itself: by an id, or an address with an id in it. Nothing need be published."""
    with suppress(ValueError):
        return kind.reference(forms.uuid(text.strip()))
    found = next((found.value for found in _of_address(text, config, kind) if found.name == "id"), None)
    return None if found is None else kind.reference(found)


def meant(text: str, config: Config, built: Manifest, kind: NameKind = MARKET) -> frozenset[str]:
    """What the text may mean in the published state; several if it is no good name of one."""
    found = _said(text, config, kind, [built.settings.get(kind.setting)])
    named = (reference for said in found for reference in _named(said, built, kind))
    return frozenset(filter(kind.is_of, named)).union(beginning(text, built.markets, kind))


def taken_down(
    text: str, config: Config, known: Collection[Manifest], blocked: BlockedList, kind: NameKind = MARKET
) -> Iterator[str]:
    """What the text may mean on the blocked list, by the names that each had when it was taken down.

    One that came back has the names that one of the `known` manifests says, if any of them names it.
    """
    public = frozenset[str]().union(*(built.markets for built in known))
    references = frozenset(filter(kind.is_of, blocked.ids() | (blocked.markets.keys() - public)))
    said = _said(text, config, kind, [built.settings.get(kind.setting) for built in known])
    names = frozenset(map(blocked_names.digest, said))
    yield from beginning(text, references, kind)
    yield from (one for one in references if not names.isdisjoint(blocked.markets[one].names))


def slugs_in(text: str, config: Config, kind: NameKind = MARKET) -> Iterator[str]:
    """The slugs that a name may be, or that an address has in it."""
    found = (reference.value for reference in _said(text, config, kind) if reference.name == "slug")
    yield from filter(slugs.can_be_reference, found)


def _said(text: str, config: Config, kind: NameKind, urls: Iterable[str | None] = ()) -> frozenset[MarketReference]:
    """What a text may say of one, beginnings of ids aside; `urls` are earlier ones of the setting."""
    if (reference := reference_in(text, config, kind)) is not None:
        return frozenset({MarketReference("id", reference.removeprefix(kind.prefix))})
    trimmed = text.strip()
    if is_address(text):
        earlier = (links.reference(url, trimmed) for url in urls)
        return frozenset([*filter(None, earlier), *_of_address(text, config, kind)])
    # A key may have blanks around it, and so may what was pasted: then both are meant.
    return frozenset({MarketReference("slug", trimmed), MarketReference("key", text), MarketReference("key", trimmed)})


def beginning(text: str, known: Iterable[str], kind: NameKind = MARKET) -> Iterator[str]:
    """What has an id that begins with the text; hyphens do not count. None if the text is too short."""
    if start := id_begun(text):
        yield from (one for one in known if kind.is_of(one) and one.startswith(kind.reference(start)))


def id_begun(text: str) -> str:
    """The beginning of an id that a text may be, with the hyphens of ids; empty for any other text."""
    given = text.strip().lower()
    if not _BEGINNING.fullmatch(given):
        return ""
    digits = given.replace("-", "")
    return "-".join(filter(None, (digits[start:end] for start, end in pairwise(_GROUPS)))) + digits[_GROUPS[-1] :]


def _of_address(text: str, config: Config, kind: NameKind) -> Iterator[MarketReference]:
    """What an address says by the settings: one of the operator's site, or of the API."""
    address = text.strip()
    if not is_address(address):
        return
    if reference := links.reference(kind.url(config), address):
        yield reference
    base = urlsplit(config.base_url)
    try:
        url = urlsplit(address)
        origin, is_here = address[: address.index("/", address.index("://") + 3)], url.hostname in LOOPBACK
        is_of_api = is_here or (url.hostname, url.port) == (base.hostname, base.port)
    except ValueError:  # no address of the API
        return
    # `serve` answers on this machine, whatever the public address is.
    in_public = address.replace(origin, f"https://{base.netloc}", 1) if is_here else address
    # The inspection page links the objects of details.
    detail = re.compile(rf"/{kind.details}/[0-9a-f]{{2}}/([^/]+)\.json", re.ASCII)
    if is_of_api and (found := detail.fullmatch(urlsplit(in_public).path.removeprefix(base.path))):
        with suppress(ValueError):
            yield MarketReference("id", forms.uuid(found[1]))
    value = MarketUrl(f"https://{base.netloc}{base.path}/{kind.folder}/", "slug", "").value_in(in_public)
    if value is None:
        return
    try:
        yield MarketReference("id", forms.uuid(value))
    except ValueError:
        yield MarketReference("slug", value)


def _named(said: MarketReference, built: Manifest, kind: NameKind) -> Iterator[str]:
    """What is published with this id, slug or key, of either kind.

    One at most of a kind, unless a publish was cut short while a slug or key passed from one to another.
    """
    if said.name == "id":
        yield kind.reference(said.value)
    elif said.name == "key":
        yield from (reference for reference, key in built.site_keys.items() if key == said.value)
    else:
        slug = said.value.lower()
        yield from (reference for reference, slugs in built.slugs.items() if slug in map(str.lower, slugs))
