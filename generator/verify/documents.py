"""The documents that no market is in: OpenAPI is what this version makes, and the index leads to what is there."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final

from pydantic_core import from_json

from generator import __version__
from generator.api import contract, keys
from generator.api.openapi import document as openapi
from generator.api.site_index import SiteIndex
from generator.config.settings import Config
from generator.verify.answers import flaws, not_ok
from generator.verify.expected import ExpectedSite
from generator.verify.inquiry import Inquiry
from generator.verify.mismatches import Mismatch, Verdict

_INDEX: Final = f"{contract.API_VERSION}/"
#: The documents, with their types.
_DOCUMENTS: Final = {
    _INDEX: "application/json", keys.BUILD: "application/json", keys.OPENAPI: "application/json",
    keys.CHANGELOG: "application/json", keys.LLMS: "text/plain",
}  # fmt: skip
#: What of OpenAPI depends on settings that nothing published tells: prose, examples, addresses, lengths of texts.
_OF_SETTINGS: Final = frozenset({"description", "summary", "example", "examples", "servers", "maxLength"})
#: What holds names that somebody chose, which may be any of those.
_NAMES: Final = frozenset({"properties", "parameters", "schemas"})


def check_documents(asked: Inquiry) -> Iterator[Mismatch]:
    """The documents that no market is in, and the dump, if the site says that it has one."""
    for path, content_type in _DOCUMENTS.items():
        answer = asked.reader.get(path)
        yield from (Mismatch(Verdict.BROKEN, answer.target, text) for text in flaws(answer, content_type))
        if answer.status != HTTPStatus.OK or not _is_readable(answer.body, content_type):
            yield Mismatch(Verdict.BROKEN, answer.target, f"is answered {answer.status}, or no {content_type}")
        elif path == keys.OPENAPI:
            yield from _unlike(asked.site, answer.target, from_json(answer.body))
    if asked.site.offers.dumps and asked.site.dump is None:
        yield Mismatch(Verdict.BROKEN, f"/{keys.head(keys.DUMPS)}", "is missing, but the index of the site names it")


def check_index(asked: Inquiry) -> Iterator[Mismatch]:
    """Every address of the index is one of this site, and answers; the site is asked, whatever name the address has.

    What was answered already is not asked for again.
    """
    base = _base(asked.site.offers)
    for address in _addresses(asked.site.offers.model_dump(exclude={"market_url"})):
        if not address.startswith(f"{base}/{_INDEX}"):
            yield Mismatch(Verdict.WRONG, f"/{_INDEX}", f"names {address!a:.200}, which is not below {base}/{_INDEX}")
            continue
        path = address.removeprefix(f"{base}/")
        if f"/{path}" in asked.reader.answered or (path == keys.PRICES and asked.site.prices is None):
            continue
        answer = asked.reader.get(path)
        if answer.status != HTTPStatus.OK:
            yield not_ok(answer)


def _is_readable(body: bytes, content_type: str) -> bool:
    try:
        return isinstance(from_json(body), dict) if content_type == "application/json" else bool(body.decode())
    except ValueError:
        return False


def _base(offers: SiteIndex) -> str:
    """The address of the site, as its index has it."""
    return offers.build.removesuffix(f"/{keys.BUILD}")


def _addresses(part: Any) -> Iterator[str]:
    if isinstance(part, str) and "://" in part:
        yield part
    elif isinstance(part, dict | list):
        for value in part.values() if isinstance(part, dict) else part:
            yield from _addresses(value)


def _unlike(site: ExpectedSite, target: str, shown: dict[str, Any]) -> Iterator[Mismatch]:
    """Tell if an OpenAPI document is not the one that this version makes of what the site publishes."""
    servers = shown.get("servers")
    first = servers[0] if isinstance(servers, list) and servers else None
    if not isinstance(first, dict) or first.get("url") != _base(site.offers):
        text = f"names the server {first!a:.200}; the index of the site is below {_base(site.offers)}"
        yield Mismatch(Verdict.WRONG, target, text)
    if site.build.generator != __version__:
        return  # another version makes another
    wanted = openapi.document(_config(site, has_archive=f"/{keys.head(keys.ARCHIVE)}" in str(shown.get("paths"))))
    place = _difference(from_json(contract.encode(wanted)), shown)
    if place is not None:
        text = f"is not the document that this version makes of what the site publishes; they differ at {place:.200}"
        yield Mismatch(Verdict.WRONG, target, text)


def _config(site: ExpectedSite, *, has_archive: bool) -> Config:
    """The settings of the site that the form of its answers depends on, all of which it tells."""
    return Config.model_validate({
        "variant": site.build.variant,
        "search": "title" if site.build.search else "off",
        "prices_file": site.offers.prices is not None,
        "dumps": {
            "ndjson": site.offers.dumps is not None,
            "parquet": bool(site.dump and site.dump.parquet),
            "fills": bool(site.dump and site.dump.has_fills),
        },
        "archive": {"days": int(has_archive)},
        "changes": {"enabled": site.offers.changes is not None},
        "feeds": {"enabled": site.offers.feeds is not None},
    })  # fmt: skip


def _difference(wanted: Any, shown: Any, place: str = "#", *, are_names: bool = False) -> str | None:
    """Where a document differs from another, as a JSON pointer; None if nowhere but in what depends on settings."""
    if isinstance(wanted, dict) and isinstance(shown, dict):
        left_out = frozenset[str]() if are_names else _OF_SETTINGS
        names = [name for name in {**wanted, **shown} if name not in left_out]
        unlike = next((name for name in names if (name in wanted) != (name in shown)), None)
        if unlike is not None:
            return f"{place}/{unlike}"
        parts = ((name, wanted[name], shown[name]) for name in names)
    elif isinstance(wanted, list) and isinstance(shown, list) and len(wanted) == len(shown):
        parts = ((str(number), one, other) for number, (one, other) in enumerate(zip(wanted, shown, strict=True)))
    else:
        return None if wanted == shown else place
    differences = (
        _difference(one, other, f"{place}/{name}", are_names=name in _NAMES and not are_names)
        for name, one, other in parts
    )
    return next((found for found in differences if found is not None), None)
