"""JSON Feed and Atom of new and of resolved markets: valid, stable, and made of each other."""

import json
from pathlib import Path
from typing import Any, Final

import feedparser
import pytest
from jsonschema import Draft202012Validator, FormatChecker
from lxml import etree

from generator.api.contract import encode
from generator.api.feeds import FEED_NAMES, Feed, FeedName
from generator.api.links import NO_LINKS, Links
from generator.config.settings import Config
from generator.feeds import atom, json_feed
from generator.site.questions import QuestionRows
from tests.support.sites.builds import make_config
from tests.support.sites.made_questions import member, question
from tests.support.sites.rows import catalog_of, market_id, public_market

HERE: Final = Path(__file__).parent
ATOM: Final = etree.RelaxNG(etree.parse(HERE / "atom.rng"))
JSON_FEED: Final = Draft202012Validator(
    json.loads((HERE / "jsonfeed.json").read_text()), format_checker=FormatChecker(["date-time"])
)
#: Texts that are hard to write as XML: characters it lacks, markup, line ends, marks of other scripts.
ODD: Final = (
    "\x00\x08\x0b\x1f \x7f\x85 \ufffe\uffff", "a\r\nb\tc\u2028d", "<b>bold</b> &amp; ]]> <!-- \"'", "\U0001f600\u202e",
    "İ\u0300 選挙 مرحبا", "", " \n ", "\ufeff",
)  # fmt: skip


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    return make_config(tmp_path_factory.mktemp("feeds"), base_url="https://api.example.org/x")


def item(number: int = 1, categories: list[str] | None = None, question: str | None = None, **columns: Any) -> bytes:
    """An item; with any question, as sites may have published it before control characters were refused."""
    found = json.loads(public_market(number, **columns).body)
    given = {"categories": categories, "question": question}
    return encode(found | {name: value for name, value in given.items() if value is not None})


def written(feed: Feed) -> tuple[Any, Any]:
    """The JSON feed and the Atom feed of the same, parsed; both are valid."""
    as_json, as_atom = json.loads(encode(feed)), atom.encode(feed)
    JSON_FEED.validate(as_json)
    ATOM.assertValid(etree.fromstring(as_atom))
    parsed = feedparser.parse(as_atom)
    assert not parsed.bozo, parsed.bozo_exception
    assert parsed.version == "atom10"
    return as_json, parsed


def resolved(number: int, **columns: Any) -> bytes:
    settled = {"status": "resolved", "resolution": "YES", "resolved_at": "2026-01-20 10:30:00.250000"}
    return item(number, **(settled | columns))


@pytest.mark.parametrize("name", FEED_NAMES)
def test_a_feed_says_what_it_is_and_where(config: Config, name: FeedName) -> None:
    as_json, parsed = written(json_feed.make(name, [item()], config))
    assert as_json["feed_url"] == f"https://api.example.org/x/v1/feeds/{name}.json"
    assert as_json["home_page_url"] == "https://api.example.org/x/v1/"
    assert {link.rel: link.href for link in parsed.feed.links} == {
        "self": f"https://api.example.org/x/v1/feeds/{name}.atom",
        "alternate": "https://api.example.org/x/v1/",
    }
    assert parsed.feed.id == f"https://api.example.org/x/v1/feeds/{name}.atom"
    assert parsed.feed.title == as_json["title"] == f"{name.capitalize()} markets on api.example.org"
    assert parsed.feed.author == as_json["authors"][0]["name"] == "api.example.org"


def test_an_entry_shows_what_seldom_changes_of_a_market(config: Config) -> None:
    markets = [resolved(2, categories=["politics", "a & b"]), item(1)]
    as_json, parsed = written(json_feed.make("new", markets, config))
    assert as_json["items"] == [
        {
            "id": f"urn:uuid:{market_id(2)}", "url": f"https://api.example.org/x/v1/public/markets/{market_id(2)}",
            "title": "Question 2?",
            "content_text": "Resolved YES on 2026-01-20 10:30 UTC. Closing time: 2046-06-30 23:59 UTC.",
            "date_published": "2026-01-01T00:00:00.000Z", "date_modified": "2026-01-20T10:30:00.250Z",
            "tags": ["politics", "a & b"],
        },
        {
            "id": f"urn:uuid:{market_id(1)}", "url": f"https://api.example.org/x/v1/public/markets/{market_id(1)}",
            "title": "Question 1?", "content_text": "Closing time: 2046-06-30 23:59 UTC.",
            "date_published": "2026-01-01T00:00:00.000Z", "date_modified": "2026-01-01T00:00:00.000Z",
        },
    ]  # fmt: skip
    for entry, same in zip(as_json["items"], parsed.entries, strict=True):
        assert (same.id, same.link, same.title) == (entry["id"], entry["url"], entry["title"])
        assert same.summary == entry["content_text"]
        assert [tag.term for tag in same.get("tags", [])] == entry.get("tags", [])
        assert same.published.replace("+00:00", "Z")[:19] == entry["date_published"][:19]
        assert same.updated.replace("+00:00", "Z")[:19] == entry["date_modified"][:19]
    assert parsed.feed.updated == "2026-01-20T10:30:00.250000+00:00"


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"resolution": "NO"}, "Resolved NO on 2026-01-20 10:30 UTC."),
        ({"resolution": None, "resolved_at": None}, "Resolved."),
        ({"status": "cancelled", "resolution": None}, "Cancelled on 2026-01-20 10:30 UTC."),
        ({"status": "cancelled", "resolution": "CANCEL", "resolved_at": None}, "Cancelled."),
    ],
)
def test_an_entry_tells_how_a_market_ended(config: Config, columns: dict[str, Any], text: str) -> None:
    (entry,) = json_feed.make("resolved", [resolved(1, **columns)], config).items
    assert entry.content_text == f"{text} Closing time: 2046-06-30 23:59 UTC."


def test_a_feed_has_the_first_fifty_of_its_list(config: Config) -> None:
    feed = json_feed.make("new", [item(number) for number in range(60)], config)
    assert [entry.market_id for entry in feed.items] == [market_id(number) for number in range(50)]
    written(feed)


def test_a_site_without_markets_has_feeds_that_never_change(config: Config) -> None:
    as_json, parsed = written(json_feed.make("resolved", [], config))
    assert as_json["items"] == parsed.entries == []
    assert parsed.feed.updated == "1970-01-01T00:00:00+00:00"


@pytest.mark.parametrize("question", ODD, ids=ascii)
def test_any_question_is_valid_in_both_forms(config: Config, question: str) -> None:
    as_json, parsed = written(json_feed.make("new", [item(question=question)], config))
    title = as_json["items"][0]["title"]
    assert title == question if question.strip() else title == market_id(1)
    root = etree.fromstring(atom.encode(json_feed.make("new", [item(question=question)], config)))
    shown = root.findtext("{*}entry/{*}title")
    assert len(shown) == len(title.replace("\r\n", "\n"))
    assert "\x00" not in shown
    assert "<" not in question or shown == question, "markup is shown, not followed"
    assert len(parsed.entries) == 1


def test_an_entry_leads_to_the_page_that_the_settings_name(config: Config) -> None:
    links = Links.to("https://example.org/{slug}?from=feed")
    with_slug, without = json_feed.make("new", [item(1, slug="snow"), item(2)], config, links).items
    assert with_slug.url == "https://example.org/snow?from=feed"
    assert without.url == f"https://api.example.org/x/v1/public/markets/{market_id(2)}", "it has no page"


def test_a_market_has_the_same_entry_as_a_row_of_questions(config: Config) -> None:
    markets = [
        public_market(1),
        public_market(2, status="resolved", resolution="YES", resolved_at="2026-01-20 10:30:00.25", question=" "),
    ]
    rows = QuestionRows(catalog_of(*markets), [], "core").listed()
    linked = Links.to("https://example.org/{id}")
    for links in (NO_LINKS, linked):
        by_itself = json_feed.make("new", [market.body for market in markets], config, links)
        assert json_feed.make("new", [row.body for row in rows], config, links, question_links=linked) == by_itself


def test_an_entry_of_a_question_leads_to_it_and_tells_no_outcome(config: Config) -> None:
    settled: dict[str, Any] = {"status": "resolved", "resolution": "YES", "resolved_at": "2026-01-20 10:30:00.25"}
    asked = question(1, member(1), title="Where?", slug="where")
    (row,) = QuestionRows(catalog_of(public_market(1, **settled)), [asked], "extended").listed()
    (entry,) = json_feed.make("new", [row.body], config, Links.to("https://example.org/m/{id}")).items
    assert entry.model_dump() == {
        "id": f"urn:uuid:{asked.id}",
        "url": f"https://api.example.org/x/v1/public/questions/{asked.id}",
        "title": "Where?",
        "content_text": "Resolved. Closing time: 2046-06-30 23:59 UTC.",
        "date_published": asked.created_at,
        "date_modified": asked.created_at,
    }
    linked = json_feed.make("new", [row.body], config, question_links=Links.to("https://example.org/q/{slug}"))
    assert [one.url for one in linked.items] == ["https://example.org/q/where"]


def test_only_title_and_closing_time_of_a_question_are_edited(config: Config) -> None:
    one, two = "2026-02-01T00:00:00.000Z", "2026-02-02T00:00:00.000Z"

    def dated(before: Feed | None, as_of: str, title: str, **columns: Any) -> Feed:
        asked = question(1, member(1), title=title)
        (row,) = QuestionRows(catalog_of(public_market(1, **columns)), [asked], "core").listed()
        return json_feed.dated(json_feed.make("new", [row.body], config), before, as_of, [asked.id])

    first = dated(None, one, "Where?")
    ended = dated(first, one, "Where?", status="resolved", resolution="YES", resolved_at="2026-01-20 10:30:00")
    assert ended.items[0].content_text.startswith("Resolved. ")
    assert ended.items[0].date_modified == first.items[0].date_modified
    edited = dated(ended, two, "Where not?")
    assert edited.items[0].date_modified == two
    assert dated(edited, two, "Where not?", close_time="2046-07-01 00:00:00").items[0].date_modified == two


def test_an_entry_that_is_edited_was_modified_by_the_build_that_shows_it(config: Config) -> None:
    one, two = "2026-02-01T00:00:00.000Z", "2026-02-02T00:00:00.000Z"

    def dates(items: list[bytes], before: Feed | None, as_of: str) -> tuple[Feed, list[str]]:
        feed = json_feed.dated(json_feed.make("new", items, config), before, as_of)
        return feed, [entry.date_modified for entry in feed.items]

    first, (created, _) = dates([item(1), item(2)], None, one)
    edited, found = dates([item(1, question="Another?"), item(2, prob=0.9)], first, one)
    assert found == [one, created]
    same, found = dates([item(1, question="Another?"), item(2)], edited, two)
    assert (same, found) == (edited, [one, created])
    _, found = dates([item(1, question="Another?"), resolved(2)], same, two)
    assert found == [one, "2026-01-20T10:30:00.250Z"]
    _, found = dates([item(1), item(3)], same, two)
    assert found == [two, created]
    assert dates([item(1)], None, two)[1] == [created], "nobody knows of edits before"
