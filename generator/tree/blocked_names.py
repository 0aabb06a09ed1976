"""What the blocked list says of names: digests, by which each is known again, and no text of what is gone. Pure."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final

from generator.api.links import MarketReference
from generator.tree.manifest import Manifest

_DIGEST_LENGTH: Final = 32


def digests(reference: str, known: Iterable[Manifest]) -> Iterator[str]:
    """Those of the slugs and keys that name a market (id) or a question (reference)."""
    for built in known:
        yield from (digest(MarketReference("slug", slug)) for slug in built.slugs.get(reference, ()))
        if (key := built.site_keys.get(reference)) is not None:
            yield digest(MarketReference("key", key))


def digest(name: MarketReference) -> str:
    """That of a slug or key."""
    value = name.value.lower() if name.name == "slug" else name.value
    return sha256(f"{name.name} {value}".encode(errors="surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
