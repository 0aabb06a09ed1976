"""How an operator may name a market: by id, the beginning of one, slug, key, and the addresses of it."""

from pathlib import Path
from typing import Any, Final

import pytest

from generator.api import keys
from generator.config.settings import Config
from generator.publish import references
from generator.tree.manifest import Manifest
from tests.support.sites.builds import make_config, manifest_of
from tests.support.sites.rows import market_id

ONE, TWO = market_id(1), market_id(2)
NAMES: Final[dict[str, Any]] = {
    "site_keys": {ONE: "a/b ü", TWO: "two"},
    "slugs": {ONE: ("Will-It-Rain",), TWO: ("two-too", "formerly-two")},
}


def built(market_url: str | None = None, **names: Any) -> Manifest:
    settings = {} if market_url is None else {"market_url": market_url}
    return manifest_of(settings=settings, markets={ONE: ("open",), TWO: ("open",)}, **names)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return make_config(
        tmp_path, base_url="https://api.example.org/m", market_url="https://example.org/{slug}", variant="extended"
    )


@pytest.mark.parametrize(
    "text",
    [
        ONE,
        f"  {ONE.upper()}\n",
        ONE[:8],
        ONE[:13],
        ONE.replace("-", ""),
        "will-it-RAIN",
        "a/b ü",
        "a/b ü ",
        f"https://api.example.org/m/v1/public/markets/{ONE}",
        f"http://API.example.org/m/v1/public/markets/{ONE}?utm_source=mail#top",
        "https://api.example.org/m/v1/public/markets/will-it-rain",
        f"http://127.0.0.1:8000/m/v1/public/markets/{ONE}",
        f"http://localhost:8000/m/v1/public/markets/detail/00/{ONE}.json",
        "https://example.org/will-it-rain/",
    ],
)
def test_a_market_is_known_by_whatever_names_it(config: Config, text: str) -> None:
    assert references.meant(text, config, built(**NAMES)) == {ONE}


@pytest.mark.parametrize(
    "text",
    [
        ONE[:7],
        "00000009", "A/B ü", "rain", "https://example.org/m/will-it-rain", "https://other.example.org/will-it-rain",
        f"https://api.example.org/v1/public/markets/{ONE}", "https://api.example.org/m/v1/public/markets",
        "https://api.example.org", f"https://evil.example/m/v1/public/markets/detail/00/{ONE}.json", "a/b\u200b ü",
        "https://[", "://",
    ],
)  # fmt: skip
def test_what_names_no_market_means_none(config: Config, text: str) -> None:
    assert references.meant(text, config, built(**NAMES)) == frozenset()


def test_a_question_is_known_by_whatever_names_it_and_by_no_name_of_a_market(tmp_path: Path) -> None:
    question, key = keys.question_reference(TWO), "q/1"
    state = manifest_of(
        settings={"question_url": "https://old.example.org/q/{key}"},
        markets={ONE: ("open",), question: ("questions/open",)},
        slugs={ONE: ("both",), question: ("Both",)}, site_keys={question: key},
    )  # fmt: skip
    config = make_config(
        tmp_path, base_url="https://api.example.org/m", question_url="https://example.org/q/{id}", variant="extended"
    )
    api = "https://api.example.org/m/v1/public/questions"
    named = [TWO.upper(), TWO[:8], "both", key, f"{api}/{TWO}", f"{api}/both", f"https://example.org/q/{TWO}#x"]
    for text in (*named, "https://old.example.org/q/q%2F1", f"http://localhost:8000/m/{keys.question(TWO)}"):
        assert references.meant(text, config, state, references.QUESTION) == {question}, text
    for text in (TWO[:8], key, f"{api}/{TWO}", f"{api}/both", f"https://example.org/q/{TWO}"):
        assert references.meant(text, config, state) == frozenset(), text
    for text in (ONE[:8], f"https://api.example.org/m/v1/public/markets/{TWO}"):
        assert references.meant(text, config, state, references.QUESTION) == frozenset(), text
    assert references.meant("both", config, state) == {ONE}
    assert references.reference_in(f"{api}/{TWO}", config, references.QUESTION) == question


def test_an_address_with_an_id_means_that_market_published_or_not(config: Config) -> None:
    unknown = market_id(9)
    assert references.reference_in(f"https://api.example.org/m/v1/public/markets/{unknown.upper()}", config) == unknown
    assert references.reference_in("https://example.org/will-it-rain", config) is None


def test_addresses_of_what_is_published_are_understood_beside_those_of_the_settings_now(config: Config) -> None:
    state = built("https://old.example.org/{key}", **NAMES)
    assert references.meant("https://old.example.org/two", config, state) == {TWO}
    assert references.meant("http://OLD.example.org/a%2Fb%20%C3%BC/?from=feed#top", config, state) == {ONE}
    assert references.meant("https://old.example.org/two", config, built(**NAMES)) == frozenset()
