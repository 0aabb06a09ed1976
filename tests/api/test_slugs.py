"""Slugs: made of a category's name alone, and judged where the database gives them to markets."""

import hashlib
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.api import contract, slugs
from generator.markets import slugs as market_slugs
from tests.support.rows import market_id

names = st.text(min_size=1, max_size=contract.CATEGORY_LENGTH)
wordlike = st.text(alphabet="aA0-. é", min_size=1, max_size=50)


# ── categories ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["crypto", "a", "7", "us-politics", "2024", "a-b-c", "x" * contract.CATEGORY_LENGTH])
def test_a_name_that_can_stand_in_a_url_is_its_own_slug(name: str) -> None:
    assert slugs.of_category(name) == name


#: Part of the interface: links are made of these.
MADE = {
    "u.s. 2024 elections": "u-s-2024-elections--ec1056dc77",
    "Crypto": "crypto--df12b8f89b",
    "crypto ": "crypto--ec508a5548",
    "us--politics": "us-politics--80644b480f",
    "-crypto": "crypto--ef90f463aa",
    "snake_case": "snake-case--ffdf29cd20",
    "Zürich": "z-rich--4251685e06",
    "🙂": "category--d06f1525f7",
    "السياسة": "category--bbf1879d57",
    "\u212aelvin": "elvin--4a274a9859",
}


@pytest.mark.parametrize("name", MADE)
def test_any_other_name_gets_its_words_and_a_digest(name: str) -> None:
    assert slugs.of_category(name) == MADE[name]


def test_the_slug_is_what_the_interface_description_tells_readers_to_compute() -> None:
    for name in MADE:
        readable = "-".join(re.findall("[A-Za-z0-9]+", name)).lower()[:40].rstrip("-") or "category"
        assert slugs.of_category(name) == f"{readable}--{hashlib.sha256(name.encode()).hexdigest()[:10]}"


@given(names | wordlike)
def test_every_slug_is_one_that_the_router_takes(name: str) -> None:
    slug = slugs.of_category(name)
    assert 0 < len(slug) <= contract.CATEGORY_LENGTH
    assert {*slug} <= {*string.ascii_lowercase, *string.digits, "-"}


@given(st.lists(names | wordlike, unique=True, min_size=2, max_size=12))
def test_no_two_names_share_a_slug(some: list[str]) -> None:
    assert len({slugs.of_category(name) for name in some}) == len(some)


def test_a_made_slug_is_never_the_slug_of_the_name_it_looks_like() -> None:
    made = slugs.of_category("Formula 1")
    assert slugs.of_category(made) != made


def test_a_long_name_gets_a_slug_of_moderate_length() -> None:
    made = slugs.of_category(f"{'x' * 39} {'y' * 60}")
    assert made.startswith(f"{'x' * 39}--")
    assert slugs.of_category("Ab " * 33).startswith("ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-a--")


# ── markets ───────────────────────────────────────────────────────────────────────────────────────────────────────


def judged(*given_: object) -> market_slugs.References:
    return market_slugs.references([(market_id(number), slug) for number, slug in enumerate(given_)])


@pytest.mark.parametrize(
    "slug",
    [
        *("will-it-rain", "Will-It-Rain", "-leading", "--", "_", "a", "0", "A_b-9", "s" * 223, "s" * 255),
        *("snapshots", "snap-shot", "00000000-0000-4000-8000-00000000000", "00000000-0000-4000-8000-00000000000g"),
        *("00000000_0000_4000_8000_000000000000", "0" * 32, "lists", "detail", "slug"),
    ],
)
def test_a_slug_that_can_stand_in_a_path_leads_to_its_market(slug: str) -> None:
    assert judged(slug).usable == {market_id(0): slug}
    assert judged(slug).refused == {}


@pytest.mark.parametrize(
    ("slug", "reason"),
    [
        *[
            (slug, "letters, digits, hyphens")
            for slug in ("a b", "a.b", "ü", "a/b", "a\n", "\u212a", "\udcff", "s" * 256)
        ],
        *[(slug, "letters, digits, hyphens") for slug in (7, 1.5, b"slug", True, " ")],
        *[(slug, "something else") for slug in ("snapshot", "Snapshot", "SNAPSHOT")],
        *[(slug, "form of a UUID") for slug in (market_id(5), market_id(0xABCDEF).upper())],
    ],
)
def test_any_other_slug_is_refused_with_its_reason(slug: object, reason: str) -> None:
    found = judged(slug, "fine")
    assert found.usable == {market_id(1): "fine"}
    assert found.refused.keys() == {market_id(0)}
    assert reason in found.refused[market_id(0)]


def test_no_slug_is_no_reason_to_say_anything() -> None:
    assert judged(None, "") == market_slugs.References({}, {})


def test_a_slug_of_two_markets_leads_to_neither_whatever_its_case() -> None:
    found = judged("same", "other", "same", "SAME", "Other2", "other3")
    assert found.usable.keys() == {market_id(number) for number in (1, 4, 5)}
    assert found.refused.keys() == {market_id(number) for number in (0, 2, 3)}
    assert all("another market has the same" in reason for reason in found.refused.values())


def test_a_slug_that_is_refused_anyway_takes_none_from_others() -> None:
    assert judged("\u212aelvin", "kelvin").usable == {market_id(1): "kelvin"}


def test_a_refusal_is_told_by_the_id_in_lower_case() -> None:
    upper = market_id(0xABC).upper()
    assert market_slugs.references([(upper, "a b")]).refused.keys() == {upper.lower()}
