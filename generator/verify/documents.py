"""The documents outside lists: those of markets follow from the dump, and OpenAPI from this version."""

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeGuard

from pydantic_core import from_json

from generator import __version__
from generator.api import contract, keys
from generator.models import replaced
from generator.site import attach, dataset
from generator.site.families import FAMILIES, openapi
from generator.site.family import ROOT, Family, Ingredients, Rank
from generator.site.site_index import SiteIndex
from generator.tree.generation import Artifact
from generator.verify.expected import ExpectedSite
from generator.verify.inquiry import Inquiry, of_items
from generator.verify.mismatches import Mismatch, Verdict, flaws, not_ok, parsed
from generator.verify.reader import LONGEST, SiteAnswer

#: The documents of markets that have checks of their own.
_CHECKED: Final = frozenset({"snapshot", "feeds", "questions"})
#: What of OpenAPI depends on settings that nothing published tells: prose, examples, addresses.
_OF_SETTINGS: Final = frozenset({"description", "summary", "example", "examples", "servers"})
#: What holds names that somebody chose, which may be any of those.
_NAMES: Final = frozenset({"properties", "parameters", "schemas"})


def check_documents(asked: Inquiry) -> Iterator[Mismatch]:
    """The documents that no market is in, and the dump, if the site says that it has one."""
    for path, content_type in _fixed(asked.site.offers):
        answer = asked.reader.get(path)
        yield from (Mismatch(Verdict.BROKEN, answer.target, text) for text in flaws(answer, content_type))
        if answer.status != HTTPStatus.OK or not _is_readable(answer.body, content_type):
            yield Mismatch(Verdict.BROKEN, answer.target, f"is answered {answer.status}, or no {content_type}")
        elif path == keys.OPENAPI:
            yield from _unlike(asked.site, answer.target, from_json(answer.body))
        elif path == keys.DATASET:
            yield from _of_another_head(asked, answer)
        elif path == keys.ATTACH:
            yield from _over_other_files(asked, answer)
    if asked.site.offers.dumps and asked.site.dump is None:
        yield Mismatch(Verdict.BROKEN, f"/{keys.head(keys.DUMPS)}", "is missing, but the index of the site names it")


def _fixed(offers: SiteIndex) -> Iterator[tuple[str, str]]:
    """The path and the type of each document that no market is in: the index, and what it names."""
    for family in FAMILIES:
        is_fixed = bool(family.of_settings or family.of_dump) or family.rank is Rank.BUILD
        if is_fixed and (family.path == "" or getattr(offers, family.name, None)):
            yield from ((f"{ROOT}{path}", _type(family)) for path in family.documents)


def _type(family: Family) -> str:
    return family.media_type.partition(";")[0]


def check_made(asked: Inquiry) -> Iterator[Mismatch]:
    """The documents that are made of markets, where they are published, but those that have checks of their own."""
    for family in _of_markets(asked.site):
        paths = {key: f"{ROOT}{path}" for path, key in family.documents.items()}
        for artifact in _made(asked.site, family):
            answer = asked.reader.get(paths[artifact.key], longest=max(LONGEST, 2 * len(artifact.body)))
            if family.schema is None:
                yield from _unlike_bytes(asked, answer, family, artifact.body)
                continue
            page, broken = parsed(answer, family.schema)
            yield from broken
            if page is not None:
                yield from _unlike_made(asked, answer, from_json(answer.body), from_json(artifact.body))


def _unlike_bytes(asked: Inquiry, answer: SiteAnswer, family: Family, wanted: bytes) -> Iterator[Mismatch]:
    """Tell if a document that is not JSON is another."""
    yield from (Mismatch(Verdict.BROKEN, answer.target, text) for text in flaws(answer, _type(family)))
    if answer.status != HTTPStatus.OK:
        yield not_ok(answer)
    elif answer.body != wanted:
        yield Mismatch(Verdict.WRONG, answer.target, f"is not what {asked.site.basis} makes it{answer.age}")


def _of_markets(site: ExpectedSite) -> Iterator[Family]:
    for family in FAMILIES:
        if family.of_markets and family.name not in _CHECKED and getattr(site.offers, family.name):
            yield family


def _made(site: ExpectedSite, family: Family) -> Iterable[Artifact]:
    """What the maker makes of the dump: nothing where there would be too much of it."""
    ingredients = Ingredients(site.catalog, site.lists.__getitem__, site.settings, lambda _: None)
    return family.of_markets(ingredients) if family.of_markets else ()


def _left_out(site: ExpectedSite) -> set[str]:
    """The paths of documents that the index names all the same."""
    absent = [family for family in _of_markets(site) if family.may_be_absent and not [*_made(site, family)]]
    # Whatever is made of a dump is made of its rows, but these do not decide whether it is there.
    ingredients = Ingredients(
        site.catalog, site.lists.__getitem__, site.settings, lambda _: None, dump=site.dump, rows=lambda *_: ()
    )
    absent += [family for family in FAMILIES if family.of_dump and not [*family.of_dump(ingredients)]]
    return {f"{ROOT}{path}" for family in absent for path in family.documents}


def _unlike_made(
    asked: Inquiry, answer: SiteAnswer, shown: Mapping[str, Any], wanted: Mapping[str, Any]
) -> Iterator[Mismatch]:
    """Tell what differs: it may be as of an earlier build, which changed nothing in it."""
    for name in {**wanted, **shown}:
        found, value = shown.get(name), wanted.get(name)
        if name == "asOf" or found == value:
            continue
        if _are_markets(found) and _are_markets(value):
            ids = [item["id"] for item in found]
            yield of_items(asked, answer, found, value, can_be_stale=ids == sorted({*ids}))
        else:
            told = f"says {found!a:.80} for {name}; by {asked.site.basis} it is {value!a:.80}{answer.age}"
            yield Mismatch(Verdict.WRONG, answer.target, told)


def _are_markets(value: Any) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(value, list) and all(isinstance(item, dict) and "id" in item for item in value)


def check_index(asked: Inquiry) -> Iterator[Mismatch]:
    """Every address of the index is one of this site, and answers; the site is asked, whatever name the address has.

    What was answered already is not asked for again.
    """
    base, left_out = _base(asked.site.offers), _left_out(asked.site)
    for address in _addresses(asked.site.offers.model_dump(exclude={"market_url"})):
        if not address.startswith(f"{base}/{ROOT}"):
            yield Mismatch(Verdict.WRONG, f"/{ROOT}", f"names {address!a:.200}, which is not below {base}/{ROOT}")
            continue
        path = address.removeprefix(f"{base}/")
        if f"/{path}" in asked.reader.answered or path in left_out:
            continue
        answer = asked.reader.get(path)
        if answer.status != HTTPStatus.OK:
            yield not_ok(answer)


def _is_readable(body: bytes, content_type: str) -> bool:
    try:
        return isinstance(from_json(body), dict) if content_type == "application/json" else bool(body.decode())
    except ValueError:
        return False


def _of_another_head(asked: Inquiry, answer: SiteAnswer) -> Iterator[Mismatch]:
    """Tell if the description of the dump names other files than its head."""
    head, content = asked.site.dump, from_json(answer.body)
    if head is None:
        return
    try:
        shown = {(file["contentUrl"], file["sha256"]) for file in content["distribution"]}
        is_old = content["datePublished"] < max(head.as_of, head.history_as_of or "")
    except (KeyError, TypeError):
        yield Mismatch(Verdict.BROKEN, answer.target, "names no files")
        return
    for url, _ in sorted(shown ^ {(file.url, file.sha256) for file in head.files()}, key=str)[:1]:
        text = f"does not name the files of the dump's head; one of the two has {url!a:.200} alone{answer.age}"
        yield Mismatch(Verdict.STALE if is_old else Verdict.WRONG, answer.target, text)
        return
    wanted = dataset.content(head, replaced(asked.site.settings, base_url=_base(asked.site.offers)))
    # Whether tables of questions have addresses is told nowhere else.
    for name in sorted({*wanted, *content} - {"recordSet"}):
        if content.get(name) != wanted.get(name):
            yield Mismatch(Verdict.WRONG, answer.target, f"has another {name} than the site tells{answer.age}")


def _over_other_files(asked: Inquiry, answer: SiteAnswer) -> Iterator[Mismatch]:
    """Tell if the views are not over the files of the head: a cache may have the document of another build."""
    head = asked.site.dump
    if head is None:
        return
    wanted = attach.script(head, asked.site.settings).encode()
    if attach.named_by(answer.body) != attach.named_by(wanted):
        text = f"names files of another state than the head of the dump{answer.age}"
        yield Mismatch(Verdict.STALE, answer.target, text)


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
    wanted = openapi(site.settings)
    place = _difference(from_json(contract.encode(wanted)), shown)
    if place is not None:
        text = f"is not the document that this version makes of what the site publishes; they differ at {place:.200}"
        yield Mismatch(Verdict.WRONG, target, text)


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
