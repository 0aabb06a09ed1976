"""`find`: which published market is meant, as readers see it, whatever the database says now."""

import json

from tests.support.sites.publishing import FX, PublishedSite, hour
from tests.support.sites.rows import market_id


def lines(site: PublishedSite, *words: str) -> list[str]:
    return site.done("find", *words).stdout.splitlines()


def test_a_market_is_found_by_words_of_its_question_in_any_case_or_order(published_site: PublishedSite) -> None:
    assert lines(published_site, "11?", "quest") == [
        f"{market_id(11)}  open       Question 11?",
        "1 market in s3://markets/api, as of 2024-01-31T12:00:00.000Z",
    ]


def test_without_a_target_the_output_folder_is_searched(published_site: PublishedSite) -> None:
    published_site.target, published_site.settings["publish.endpoint_url"] = "", ""
    assert lines(published_site, "question", "1")[-1].startswith("3 markets in output, as of ")


def test_what_is_not_published_is_not_found_and_the_error_says_where(published_site: PublishedSite) -> None:
    published_site.done("takedown", market_id(1))
    assert published_site.refused(1, "find", market_id(1)).startswith(
        f"{market_id(1)}: no market or question in s3://markets/api has this id, slug, key or address"
    )


def test_a_word_is_found_whatever_in_it_shows_nothing_and_a_build_remarks_on_it(published_site: PublishedSite) -> None:
    """A market that hides so must not pass for one that is gone."""
    for number, question in {1: "S\u200bo\u00adng con\u2060test?", 2: "ខ្ញុំ\u200bទៅ", 3: "S\u043eng?"}.items():
        published_site.edit(number, question=question)
    told = published_site.done("rebuild", "--as-of", hour(1)).stderr
    assert f"1 remark: question has a character that shows nothing, such as a zero-width space ({market_id(1)})" in told
    assert f"1 remark: a word of the question has letters of two scripts, which may look alike ({market_id(3)})" in told
    for words in (["song", "contest"], ["SO\u200dNG\u200b"], ["s\u200bo\u00adng", "con\u2060test?"]):
        assert [line.split()[0] for line in lines(published_site, *words)] == [market_id(1), "1"]
    for word in ("ទៅ", "ខ្ញុំទៅ", "ខ្ញុំ\u200bទៅ"):
        assert lines(published_site, word)[0].startswith(market_id(2))


def test_each_market_is_an_object_where_logs_are_json(published_site: PublishedSite) -> None:
    found = json.loads(lines(published_site, "--log-format", "json", market_id(FX))[0])
    assert (found["id"], found["status"], found["question"]) == (market_id(FX), "open", "Question 11?")
