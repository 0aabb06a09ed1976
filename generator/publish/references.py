"""How an operator names a market: by its id or the beginning of it, its slug, its key, or an address. Pure."""

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import pairwise
from typing import Final
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from generator.api import forms, keys, links, slugs
from generator.api.links import MarketReference
from generator.config.market_url import MarketUrl
from generator.config.scalars import LOOPBACK
from generator.config.settings import Config
from generator.tree.blocklist import BlockedList
from generator.tree.manifest import Manifest

#: A shorter text of hexadecimal digits is no beginning of an id: too many others begin so.
SHORTEST_BEGINNING: Final = 8
_BEGINNING: Final = re.compile(rf"[0-9a-f]{{{SHORTEST_BEGINNING}}}[0-9a-f-]*", re.ASCII)
#: Where the groups of an id's digits begin and end.
_GROUPS: Final = (0, 8, 12, 16, 20, 32)
_DIGEST_LENGTH: Final = 32
#: The end of the path of a detail's object, which the inspection page links.
_DETAIL: Final = re.compile(rf"/{keys.DETAILS}/[0-9a-f]{{2}}/([^/]+)\.json", re.ASCII)


class Detailed(BaseModel):
    """The market that a published detail is about, as far as it says so."""

    id: str = ""
    slug: str | None = None
    question: str = ""
    status: str = ""


class _Detail(BaseModel):
    market: Detailed


def market_in(body: bytes | None) -> Detailed | None:
    """The market of a detail's body; None if there is none that can be read."""
    with suppress(ValidationError):
        return _Detail.model_validate_json(body or b"").market
    return None


def is_address(text: str) -> bool:
    """Whether the text is an address, of whatever site."""
    return "://" in text


def id_in(text: str, config: Config) -> str | None:
    """The id that the text says by itself: an id, or an address with an id in it. Nothing need be published."""
    with suppress(ValueError):
        return forms.uuid(text.strip())
    return next((found.value for found in _of_address(text, config) if found.name == "id"), None)


def ids_meant(text: str, config: Config, built: Manifest) -> frozenset[str]:
    """The markets of the published state that the text may mean; several if it is no good name of one."""
    found = _said(text, config, [built.settings.get("market_url")])
    return frozenset(beginning(text, built.markets)).union(*(_named(reference, built) for reference in found))


def ids_taken_down(text: str, config: Config, known: Collection[Manifest], taken_down: BlockedList) -> Iterator[str]:
    """The markets of the blocked list that the text may mean, by the names that each had when it was taken down.

    One that came back has the names that one of the `known` manifests says, if any of them names it.
    """
    public = frozenset[str]().union(*(built.markets for built in known))
    ids = taken_down.ids() | (taken_down.markets.keys() - public)
    names = frozenset(map(digest, _said(text, config, [built.settings.get("market_url") for built in known])))
    yield from beginning(text, ids)
    yield from (market_id for market_id in ids if not names.isdisjoint(taken_down.markets[market_id].names))


def digests(market_id: str, known: Iterable[Manifest]) -> Iterator[str]:
    """What the blocked list says of the slugs and keys that name a market."""
    for built in known:
        yield from (digest(MarketReference("slug", slug)) for slug in built.slugs.get(market_id, ()))
        if (key := built.site_keys.get(market_id)) is not None:
            yield digest(MarketReference("key", key))


def digest(reference: MarketReference) -> str:
    """What the blocked list says of a slug or key: enough to know it again, and no text of a market that is gone."""
    value = reference.value.lower() if reference.name == "slug" else reference.value
    return sha256(f"{reference.name} {value}".encode(errors="surrogatepass")).hexdigest()[:_DIGEST_LENGTH]


def slugs_in(text: str, config: Config) -> Iterator[str]:
    """The slugs that a name may be, or that an address has in it."""
    found = (reference.value for reference in _said(text, config) if reference.name == "slug")
    yield from filter(slugs.can_be_reference, found)


def _said(text: str, config: Config, market_urls: Iterable[str | None] = ()) -> frozenset[MarketReference]:
    """What a text may say of a market, beginnings of ids aside; `market_urls` are earlier ones of the setting."""
    if (market_id := id_in(text, config)) is not None:
        return frozenset({MarketReference("id", market_id)})
    trimmed = text.strip()
    if is_address(text):
        earlier = (links.reference(url, trimmed) for url in market_urls)
        return frozenset([*filter(None, earlier), *_of_address(text, config)])
    # A key may have blanks around it, and so may what was pasted: then both are meant.
    return frozenset({MarketReference("slug", trimmed), MarketReference("key", text), MarketReference("key", trimmed)})


def beginning(text: str, known: Iterable[str]) -> Iterator[str]:
    """The ids that begin with the text; hyphens do not count. None if the text is too short."""
    if start := id_begun(text):
        yield from (market_id for market_id in known if market_id.startswith(start))


def id_begun(text: str) -> str:
    """The beginning of an id that a text may be, with the hyphens of ids; empty for any other text."""
    given = text.strip().lower()
    if not _BEGINNING.fullmatch(given):
        return ""
    digits = given.replace("-", "")
    return "-".join(filter(None, (digits[start:end] for start, end in pairwise(_GROUPS)))) + digits[_GROUPS[-1] :]


def _of_address(text: str, config: Config) -> Iterator[MarketReference]:
    """What an address says by the settings: one of the operator's site, or of the API."""
    address = text.strip()
    if not is_address(address):
        return
    if reference := links.reference(config.market_url, address):
        yield reference
    base = urlsplit(config.base_url)
    try:
        url = urlsplit(address)
        origin, is_here = address[: address.index("/", address.index("://") + 3)], url.hostname in LOOPBACK
        is_of_api = is_here or (url.hostname, url.port) == (base.hostname, base.port)
    except ValueError:  # no address of a market
        return
    # `serve` answers on this machine, whatever the public address is.
    in_public = address.replace(origin, f"https://{base.netloc}", 1) if is_here else address
    if is_of_api and (found := _DETAIL.fullmatch(urlsplit(in_public).path.removeprefix(base.path))):
        with suppress(ValueError):
            yield MarketReference("id", forms.uuid(found[1]))
    value = MarketUrl(f"https://{base.netloc}{base.path}/{keys.MARKETS}/", "slug", "").value_in(in_public)
    if value is None:
        return
    try:
        yield MarketReference("id", forms.uuid(value))
    except ValueError:
        yield MarketReference("slug", value)


def _named(reference: MarketReference, built: Manifest) -> Iterator[str]:
    """The published markets with this id, slug or key.

    One at most, unless a publish was cut short while a slug or key passed from one market to another.
    """
    if reference.name == "id":
        yield reference.value
    elif reference.name == "key":
        yield from (market_id for market_id, key in built.site_keys.items() if key == reference.value)
    else:
        slug = reference.value.lower()
        yield from (market_id for market_id, slugs in built.slugs.items() if slug in map(str.lower, slugs))
