"""Rules of a search: a table of searches, cursors, bounds, what is missing or damaged."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any, Final
from urllib.parse import quote

import pytest
import quickjs

from generator.api import contract, cursors, keys
from generator.search import generation as index
from generator.tree.layouts import LAYOUTS
from tests.support.edges import router_lint
from tests.support.readers import expected_searches, search
from tests.support.readers.search import Answer, InQuickjs, Market, ReadText
from tests.support.readers.search_cases import CASES, MARKETS, SCATTERED
from tests.support.readers.search_walks import Query


@cache
def objects_of(layout: str) -> Mapping[str, str]:
    return search.objects(MARKETS, layout, search.small(span=50))


@cache
def script(layout: str) -> str:
    return search.core(layout)


def faults(edge: InQuickjs, layout: str, cases: Sequence[Query]) -> Iterator[object]:
    """What is wrong with the answers: the case, or an error."""
    for case in cases:
        try:
            answers = edge.walk(objects_of(layout), case.target())
            if [answer["status"] for answer in answers] != [200] * len(answers):
                yield case, answers[-1]
            elif search.items_of(answers) != case.items(MARKETS) or any(
                len(answer["read"]) > index.MOST_OBJECTS or len(search.items_of([answer])) > case.limit
                for answer in answers
            ):
                yield case
        except (quickjs.JSException, ValueError) as error:
            yield case, error


@pytest.fixture(scope="module", params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def edge(layout: str) -> InQuickjs:
    return InQuickjs(script(layout))


def test_a_table_of_searches_finds_what_a_naive_search_finds(edge: InQuickjs, layout: str) -> None:
    assert [*faults(edge, layout, CASES)] == []
    assert sum(bool(case.items(MARKETS)) for case in CASES) > 40


def test_the_script_has_nothing_that_an_engine_lacks(layout: str) -> None:
    assert router_lint.findings(script(layout)) == []


# ── cursors ───────────────────────────────────────────────────────────────────────────────────────────────────────


def refused(edge: InQuickjs, layout: str, query: str) -> Any:
    sentences = {sentence: name for name, sentence in contract.SEARCH_ERRORS.items()}
    return [sentences[sentence] for sentence in refused_by(edge, objects_of(layout), query)]


def next_of(answer: Answer) -> str:
    return str(json.loads(answer["body"])["nextCursor"])


def test_a_cursor_is_bound_to_the_list_and_the_folded_words(edge: InQuickjs, layout: str) -> None:
    first, second, *_ = edge.walk(objects_of(layout), "q=the%20will&limit=3")
    cursor = next_of(first)
    for same in ("THE%20will", "the,%20Will!", "th%C3%A9%20will", "will%20the"):
        assert edge.walk(objects_of(layout), f"q={same}&limit=3&cursor={cursor}")[0]["body"] == second["body"]
    others = (
        "q=the", "q=the%20wil", "q=the%20will&status=closed", "q=the%20will&sort=new",
        "q=the%20will&category=crypto",
    )  # fmt: skip
    for other in (*others, "status=open"):
        assert refused(edge, layout, f"{other}&cursor={cursor}") == ["cursor.foreign"]
    of_list = cursors.mint("open/popular", f"c{'0' * 19}", 3)
    assert refused(edge, layout, f"q=the&cursor={of_list}") == ["cursor.foreign"]
    assert refused(edge, layout, "q=the&cursor=nonsense") == ["cursor"]
    # Nothing is read for what no edge can have given.
    assert refused(edge, layout, f"q=the&cursor={'z' * cursors.CHECK_LENGTH}s{'0' * 19}20") == ["cursor.foreign"]


def test_spellings_of_ascii_are_one_search_to_a_cache_and_other_words_another(edge: InQuickjs) -> None:
    known = dict[str, tuple[str, ...]]()
    plain = dict[tuple[str, ...], str]()
    for parts in product(("a", "A", "b", "2", " ", "-", "\0", "é"), repeat=3):
        if not search.is_searchable(q := "".join(parts)):
            continue
        words = tuple(sorted({run for run, _ in search.runs(q)}))
        step = json.dumps(edge.asked(f"q={quote(q)}"))
        assert known.setdefault(step, words) == words
        if q.isascii():
            assert plain.setdefault(words, step) == step, q


def test_a_walk_stays_in_its_generation(edge: InQuickjs, layout: str) -> None:
    query, walked = "q=the&status=all&limit=9", search.scan(MARKETS, "all", "popular", "the")
    first = edge.walk(objects_of(layout), query)[0]
    later = search.objects([*MARKETS[5:], Market(("the new one",), rank=60)], layout, search.small(span=50))
    answers = [first]
    while json.loads(answers[-1]["body"])["nextCursor"]:
        answers += edge.walk({**objects_of(layout), **later}, f"{query}&cursor={next_of(answers[-1])}")[:1]
    assert search.items_of(answers) == walked
    assert edge.walk({**objects_of(layout), **later}, query)[0]["body"] != first["body"]
    assert refused_by(edge, later, f"{query}&cursor={next_of(first)}") == [contract.SEARCH_ERRORS["cursor.gone"]]


def refused_by(edge: InQuickjs, objects: Mapping[str, str], query: str) -> list[str]:
    (answer,) = edge.walk(objects, query)
    assert answer["status"] == 400, answer
    return [detail["message"] for detail in json.loads(answer["body"])["details"]]


# ── what cannot be searched ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("q", ["", "%20", "-", "?!", "%F0%9F%99%82", "%CC%81", "x" * 101, "%C3%28", "a&q=a"])
def test_a_q_without_words_or_of_more_than_a_hundred_characters_is_refused(
    edge: InQuickjs, layout: str, q: str
) -> None:
    assert refused(edge, layout, f"q={q}") == ["q"]


def test_a_hundred_characters_of_any_plane_are_allowed(edge: InQuickjs, layout: str) -> None:
    for char in ("x", "é", "𠮷", "🙂x"):
        (answer,) = edge.walk(objects_of(layout), f"q={quote((char * 100)[:100])}")
        assert answer["status"] == 200


def test_a_category_without_lists_is_refused(edge: InQuickjs, layout: str) -> None:
    for q in ("will", "nothing"):
        assert refused(edge, layout, f"q={q}&category=other") == ["category"]
    assert edge.walk(objects_of(layout), "q=nothing&category=empty")[0]["status"] == 200


def test_a_place_behind_the_end_is_no_place(edge: InQuickjs, layout: str) -> None:
    generation = json.loads(objects_of(layout)[keys.head(keys.SEARCH)])["generation"]
    for position in (len(MARKETS), 999_999_999):
        digest = hashlib.sha256(f"open/popular?the/{generation}/{position}".encode()).hexdigest()
        cursor = digest[: cursors.CHECK_LENGTH] + generation + str(position)
        assert refused(edge, layout, f"q=the&cursor={cursor}") == ["cursor.gone"]


def test_other_faults_are_named_with_that_of_q(edge: InQuickjs, layout: str) -> None:
    assert refused(edge, layout, "q=-&limit=0&status=x") == ["status", "limit", "q"]


# ── bounds ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_page_is_short_where_its_items_are_in_too_many_objects(edge: InQuickjs, layout: str) -> None:
    answers = edge.walk(search.objects(SCATTERED, layout), "q=needle&limit=100&sort=new")
    pages = [len(search.items_of([answer])) for answer in answers]
    assert sum(pages) == 30
    assert all(0 < size < 24 for size in pages)
    assert max(len(answer["read"]) for answer in answers) == index.MOST_OBJECTS


def test_words_in_too_many_buckets_are_refused(edge: InQuickjs, layout: str) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    text = " ".join(first + second + "x" for first, second in product(letters, "ab"))
    markets = [Market((text,), categories=("crypto",))]
    objects = search.objects(markets, layout, search.small(span=50, target=1))
    for category, most in product(("", "&category=crypto"), (index.MOST_BUCKETS, 25)):
        (answer,) = edge.walk(objects, f"q={'+'.join(f'{letter}ax' for letter in letters[:most])}{category}")
        if most == index.MOST_BUCKETS:
            assert (answer["status"], len(search.items_of([answer]))) == (200, 1), "the category does not count"
            assert len(answer["read"]) < index.MOST_OBJECTS
        else:
            assert json.loads(answer["body"])["details"][0]["message"] == contract.SEARCH_ERRORS["q.words"]


def test_where_a_sort_has_many_vectors_fewer_words_are_looked_up(edge: InQuickjs, layout: str) -> None:
    vectors, words = 13, [letter * 3 for letter in "abcdefg"]
    markets = [Market((" ".join(words),), rank=number) for number in range(len(MARKETS))]
    objects = search.objects(markets, layout, search.small(span=len(MARKETS) // vectors, target=1))
    most = index.MOST_BUCKETS + 1 - vectors
    (answer, *_) = edge.walk(objects, f"q={'+'.join(words[:most])}&limit=100")
    assert (answer["status"], len(answer["read"]) <= index.MOST_OBJECTS) == (200, True)
    assert refused_by(edge, objects, f"q={'+'.join(words)}") == [contract.SEARCH_ERRORS["q.words"]]


#: With as many words as the index has for each: an apostrophe, a comma and a change of script separate words.
COUNTED: Final = {
    "war": 1, "will the war": 3, "Trump’s war": 3, "Trump's war room": 4, "100,000": 2, "ÉLECTION the war": 3,
    "選挙 war": 2, "2026年の選挙": 4, "the the THE": 1,
}  # fmt: skip


def test_a_search_reads_six_objects_of_the_index_for_three_words_and_one_for_each_other(edge: InQuickjs) -> None:
    markets = [*MARKETS[1:], Market(("room 100,000 s",))]
    each_in_a_bucket = search.objects(markets, "chunks", search.small(span=len(MARKETS), target=1))
    for q, words in COUNTED.items():
        assert len(expected_searches.words(q).split()) == words
        table = not q.isascii()
        (answer, *_) = edge.walk(each_in_a_bucket, Query(q).target())
        assert sum(keys.SEARCH in key for key in answer["read"]) == 2 + table + words <= 6 + max(0, words - 3), q


# ── what is missing or damaged ────────────────────────────────────────────────────────────────────────────────────


def test_without_an_index_there_is_no_search(edge: InQuickjs, layout: str) -> None:
    (answer,) = edge.walk({}, "q=will")
    assert json.loads(answer["body"])["details"][0]["message"] == contract.SEARCH_ERRORS["q.absent"]


def test_an_object_that_is_gone_ends_a_walk_but_not_the_search(edge: InQuickjs, layout: str) -> None:
    query = "q=the&status=all&limit=5"
    first = edge.walk(objects_of(layout), query)[0]
    for key in edge.walk(objects_of(layout), f"{query}&cursor={next_of(first)}")[0]["read"]:
        left = {name: text for name, text in objects_of(layout).items() if name != key}
        assert refused_by(edge, left, f"{query}&cursor={next_of(first)}") == [contract.SEARCH_ERRORS["cursor.gone"]]
    for key in first["read"][1:]:
        left = {name: text for name, text in objects_of(layout).items() if name != key}
        with pytest.raises(quickjs.JSException, match=f"{key} is missing"):
            edge.walk(left, query)


def ending(before: Mapping[str, str], last: str, after: Mapping[str, str]) -> ReadText:
    """A site that another replaces when an object is read."""
    sites = [after, before]

    def read(key: str) -> str | None:
        if key == last and len(sites) > 1:
            sites.pop()
        return sites[-1].get(key)

    return read


def ends(edge: InQuickjs, layout: str) -> Iterator[bool]:
    """For each object at which the first site ends: whether the page is the next site's, made with few enough reads."""
    query = "q=caf%C3%A9&limit=100&status=all"
    before, after = (search.objects(markets, layout) for markets in (MARKETS, MARKETS[50:]))
    wanted = edge.walk(after, query)[0]["body"]
    for key in edge.walk(before, query)[0]["read"][1:]:
        try:
            answer = edge.ask(ending(before, key, after), query)
        except quickjs.JSException:
            yield False
        else:
            most = 2 * index.MOST_OBJECTS - 1
            yield answer["body"] == wanted and len(answer["read"]) <= most


def test_an_index_that_ends_while_it_is_read_costs_one_more_try(edge: InQuickjs, layout: str) -> None:
    found = [*ends(edge, layout)]
    assert len(found) > 3
    assert all(found)


def test_no_damaged_object_becomes_a_page(edge: InQuickjs, layout: str) -> None:
    for key in edge.walk(objects_of(layout), "q=%C3%A9l%20the&status=all")[0]["read"]:
        whole = objects_of(layout)[key]
        for damaged in (whole[:-1], whole[: len(whole) // 2], "", "null", "<Error/>"):
            with pytest.raises(quickjs.JSException):
                edge.walk({**objects_of(layout), key: damaged}, "q=%C3%A9l%20the&status=all")
