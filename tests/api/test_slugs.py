"""The slug of a category depends on its name alone."""

import hashlib
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.api import contract, slugs

names = st.text(min_size=1, max_size=contract.CATEGORY_LENGTH)
wordlike = st.text(alphabet="aA0-. é", min_size=1, max_size=50)


#: Part of the interface: links contain these slugs.
MADE = {
    "u.s. 2024 elections": "u-s-2024-elections--ec1056dc77", "Crypto": "crypto--df12b8f89b",
    "crypto ": "crypto--ec508a5548", "us--politics": "us-politics--80644b480f", "-crypto": "crypto--ef90f463aa",
    "snake_case": "snake-case--ffdf29cd20", "Zürich": "z-rich--4251685e06", "🙂": "category--d06f1525f7",
    "السياسة": "category--bbf1879d57", "\u212aelvin": "elvin--4a274a9859",
}  # fmt: skip


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


@given(names | wordlike)
def test_a_name_and_its_slug_lead_to_the_same_category(name: str) -> None:
    slug = slugs.of_category(name)
    assert slugs.of_reference(slug) == slug
    assert slugs.of_reference(name) == slug or slugs.is_derived(name)


def test_what_has_the_form_of_a_made_slug_is_one() -> None:
    made = slugs.of_category("Formula 1")
    assert slugs.of_reference(made) == made
    for other in (made.upper(), made[:-1], made + "0", "--" + made[-10:], f"a-{made[-12:]}", made.replace("--", "-")):
        assert slugs.of_reference(other) == slugs.of_category(other)
        assert not slugs.is_derived(other)
