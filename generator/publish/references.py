"""How an operator names a market: by its id or the beginning of it, its slug, its key, or an address. Pure."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from generator.api import ids, keys, links
from generator.api.links import MarketReference
from generator.config.market_url import MarketUrl
from generator.config.scalars import LOOPBACK
from generator.config.settings import Config
from generator.tree.manifest import Manifest

#: A shorter text of hexadecimal digits is no beginning of an id: too many others begin so.
SHORTEST_BEGINNING: Final = 8
_BEGINNING: Final = re.compile(rf"[0-9a-f]{{{SHORTEST_BEGINNING}}}[0-9a-f-]*", re.ASCII)
#: The end of the path of a detail's object, which the inspection page links.
_DETAIL: Final = re.compile(rf"/{keys.DETAILS}/[0-9a-f]{{2}}/([^/]+)\.json", re.ASCII)


def is_address(text: str) -> bool:
    """Whether the text is an address, of whatever site."""
    return "://" in text


def id_in(text: str, config: Config) -> str | None:
    """The id that the text says by itself: an id, or an address with an id in it. Nothing need be published."""
    with suppress(ValueError):
        return ids.uuid(text.strip())
    return next((found.value for found in _of_address(text, config) if found.name == "id"), None)


def ids_meant(text: str, config: Config, built: Manifest) -> frozenset[str]:
    """The markets of the published state that the text may mean; several if it is no good name of one."""
    if (market_id := id_in(text, config)) is not None:
        return frozenset({market_id})
    if is_address(text):
        recorded = built.settings.get("market_url")
        of_home = links.reference(recorded, text.strip()) if recorded else None
        found = [*([of_home] if of_home else []), *_of_address(text, config)]
        return frozenset().union(*(_named(reference, built) for reference in found))
    names = (MarketReference("slug", text.strip()), MarketReference("key", text))
    return frozenset(beginning(text, built.markets)).union(*(_named(name, built) for name in names))


def slugs_in(address: str, config: Config) -> Iterator[str]:
    """The slugs that an address has in it."""
    yield from (found.value for found in _of_address(address, config) if found.name == "slug")


def beginning(text: str, known: Iterable[str]) -> Iterator[str]:
    """The ids that begin with the text; hyphens do not count. None if the text is too short."""
    digits = text.strip().lower()
    if _BEGINNING.fullmatch(digits):
        start = digits.replace("-", "")
        yield from (market_id for market_id in known if market_id.replace("-", "").startswith(start))


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
            yield MarketReference("id", ids.uuid(found[1]))
    value = MarketUrl(f"https://{base.netloc}{base.path}/{keys.MARKETS}/", "slug", "").value_in(in_public)
    if value is None:
        return
    try:
        yield MarketReference("id", ids.uuid(value))
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
