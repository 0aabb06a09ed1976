"""A market's categories, by one spelling each: names that differ only in case are the same category. Pure."""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final, NamedTuple

from pydantic import AfterValidator, BeforeValidator, ValidationError
from pydantic_core import PydanticCustomError

from generator.api import contract, slugs
from generator.findings import Finding
from generator.markets import faults, row_validation
from generator.markets.quarantine import Quarantine, printable


class Spellings(NamedTuple):
    """What is shown in place of names: another spelling of the same name, or nothing.

    `refused` names have the slug of another one, to which they are mapped: their lists would merge.
    """

    shown: Mapping[str, str]
    refused: Mapping[str, str]


AS_GIVEN: Final = Spellings({}, {})
_SAME_SLUG: Final = Finding(column="category", text="another category has the same slug", remedy="rename it")
_REPEATED: Final = Finding(
    column="category", text="the market has it already", remedy="keep each category once per market"
)
_TOO_MANY: Final = Finding(
    column="category",
    text=f"the market has as many as {contract.CATEGORIES_MAX} before it",
    remedy="leave out the least important ones in a view",
)


def _is_no_slug(name: str) -> str:
    if slugs.is_derived(name):
        raise PydanticCustomError("derived_slug", "has the form of another category's slug")
    return name


class CategoryRow(contract.Closed):
    """Validates a row of `market_categories`."""

    category: Annotated[contract.CategoryName, BeforeValidator(row_validation.text), AfterValidator(_is_no_slug)]
    position: Annotated[int, BeforeValidator(row_validation.integer)]


def folded(name: str) -> str:
    """What all spellings of a name have in common: they differ in case, spaces or Unicode form only."""
    return " ".join(unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold()).split())


def spellings(found: Iterable[Sequence[Any]]) -> Spellings:
    """Choose the spelling of every category from all rows (market id, category): the most frequent, then the first.

    Of names with one slug, the more frequent is shown, so that a new one cannot displace it.
    """
    counts = Counter(category for _, category in found)
    groups: dict[str, list[str]] = {}
    for name in filter(_is_valid, counts):
        groups.setdefault(folded(name), []).append(name)
    shown, refused, owners = dict[str, str](), dict[str, str](), dict[str, str]()
    for names in sorted(groups.values(), key=lambda names: (-sum(counts[name] for name in names), min(names))):
        best = min(names, key=lambda name: (-counts[name], name))
        owner = owners.setdefault(slugs.of_category(best), best)
        if owner == best:
            shown |= {name: best for name in names if name != best}
        else:
            refused |= dict.fromkeys(names, owner)
    return Spellings(shown, refused)


def slug_of(reference: str, known: Mapping[str, str]) -> str | None:
    """The slug of one of the `known` categories (names by slug), given by its slug or by its name in any spelling."""
    if reference in known:
        return reference
    same = folded(reference)
    return next((slug for slug, name in known.items() if folded(name) == same), None)


def _is_known(name: Any) -> bool:
    """Whether this is a valid name. Most are those of many markets."""
    return type(name) is str and len(name) <= contract.CATEGORY_LENGTH and _is_valid_name(name)


@lru_cache(maxsize=1 << 12)
def _is_valid_name(name: str) -> bool:
    return _is_valid(name)


def _is_valid(name: Any) -> bool:
    try:
        CategoryRow.model_validate({"category": name, "position": 0})
    except ValidationError:
        return False
    return True


def of_market(found: Iterable[Sequence[Any]], spellings: Spellings, quarantine: Quarantine) -> list[str]:
    """A market's categories by position, then name, from its rows: market id, category, position."""
    kept: dict[str, tuple[int, str]] = {}
    for market_id, category, position in found:
        if type(position) is not int or not _is_known(category):
            try:
                valid = CategoryRow.model_validate({"category": category, "position": position})
            except ValidationError as error:
                quarantine.reject("market_categories", market_id, *faults.of(error))
                continue
            position = valid.position  # noqa: PLW2901 - the same number, as an int
        if category in spellings.refused:
            quarantine.reject("market_categories", market_id, _SAME_SLUG._replace(value=printable(category)))
            continue
        name = spellings.shown.get(category, category)
        row = position, category
        if name in kept:
            # Independent of which came first: databases return the rows of a market in any order.
            row, (_, other) = sorted((kept[name], row))
            quarantine.reject("market_categories", market_id, _REPEATED._replace(value=printable(other)))
        kept[name] = row
    ranked = sorted(kept, key=lambda name: (kept[name][0], name))
    for name in ranked[contract.CATEGORIES_MAX :]:
        quarantine.reject("market_categories", market_id, _TOO_MANY._replace(value=printable(name)))
    return ranked[: contract.CATEGORIES_MAX]
