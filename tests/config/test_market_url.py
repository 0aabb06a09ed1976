"""`market_url`: which templates are accepted, and the sentence for those that are not."""

import pytest

from generator.config.market_url import MarketUrl
from generator.config.shape import shaped
from tests.config.folder import Folder

NO_PLACEHOLDER = (
    "write an address with one of {id}, {slug} and {key} in it, once, such as https://example.org/markets/{id}"
)
NO_ADDRESS = (
    "write an https:// address without user, with the placeholder behind its host, such as "
    "https://example.org/markets/{id}"
)
NO_HTTPS = "begin it with https://; http:// is for addresses of this machine only"
NOT_ESCAPED = "percent-encode the characters that an address cannot have, such as %20 for a space"
NO_HOST = "correct its host or port: write it such as https://example.org/markets/{id}"


@pytest.mark.parametrize(
    "template",
    [
        "https://example.org/{id}",
        "https://example.org/{key}",
        "https://example.org:8443/a%20b/m-{id}.html?x=1&y[]=2#top".replace("[]", "%5B%5D"),
        "https://example.org?m={key}",
        "https://example.org/#/market/{key}",
        "http://localhost:3000/{id}",
        "http://127.0.0.1/{id}",
        "http://[::1]:3000/{id}",
        "https://xn--bcher-kva.example/{id}",
    ],
)
def test_a_template_is_an_address_with_a_placeholder(template: str, folder: Folder) -> None:
    assert folder.load(f"market_url: '{template}'").market_url == template
    assert folder.load("", f"market_url={template}").market_url == template
    assert folder.load("", PUBLIC_MARKETS_MARKET_URL=template).market_url == template


#: Templates by what is said of them, whatever else is wrong with them.
REFUSED = {
    NO_PLACEHOLDER: tuple(f"example.org/{end}" for end in ("", "{ID}", "{}", "{id}/{id}", "{id}/{key}")),
    NO_ADDRESS: (
        *("{slug}.example.org/", "example.org{id}", "example.org:{id}/", "me:secret@example.org/{id}", "/{id}"),
        *("bücher.example/{id}", "[zz::1]/{id}"),
    ),
    NOT_ESCAPED: tuple(
        f"example.org/{end}"
        for end in ("a b/{id}", "{id}\n", "ü/{id}", "{{id}}", "%2/{id}", "{id}\x00", "[1]/{id}", '"/{id}')
    ),
    NO_HOST: ("example.org:0/{id}", "example.org:99999/{id}", "[1:2]/{id}"),
    "write an address of at most 500 characters": (f"example.org/{'a' * 500}/{{id}}",),
}
#: The same of addresses that do not begin with https://.
OF_ANOTHER_SCHEME = {
    NO_ADDRESS: ("//example.org/{id}", "example.org/{id}", "javascript:alert({id})", "HTTPS://example.org/{id}"),
    NO_HTTPS: ("http://example.org/{id}", "http://127.0.0.1.example.org/{id}"),
}


@pytest.mark.parametrize(
    ("template", "line"),
    [
        *((f"https://{end}", line) for line, ends in REFUSED.items() for end in ends),
        *((template, line) for line, templates in OF_ANOTHER_SCHEME.items() for template in templates),
    ],
)
def test_any_other_template_is_refused_without_quoting_it(template: str, line: str, folder: Folder) -> None:
    assert folder.mistakes("", f"market_url={template}") == [f"--set market_url: {line}"]


def test_a_slug_needs_the_extended_variant(folder: Folder) -> None:
    template = "market_url: 'https://example.org/{slug}'"
    assert folder.load(f"{template}\nvariant: extended").market_url == "https://example.org/{slug}"
    line = "market_url: {slug} needs variant: extended, as markets have no slugs in core; write {id} or {key}"
    assert folder.mistakes(template) == [line]


@pytest.mark.parametrize("key", ["market_url", "question_url"])
def test_both_settings_are_checked_alike(key: str, folder: Folder) -> None:
    assert folder.load(f"{key}: 'https://example.org/{{key}}'").question_url in (None, "https://example.org/{key}")
    assert folder.mistakes("", f"{key}=https://example.org/") == [f"--set {key}: {NO_PLACEHOLDER}"]
    (line,) = folder.mistakes(f"{key}: 'https://example.org/{{slug}}'")
    assert line.startswith(f"{key}: {{slug}} needs variant: extended, as {key.removesuffix('_url')}s have no slugs in")


@pytest.mark.parametrize("end", ["q/{question}/{id}", "{key}?of={question}", "q/{question}#{id}"])
def test_the_address_of_a_market_may_name_its_question_too(end: str, folder: Folder) -> None:
    template = f"https://example.org/{end}"
    assert folder.load(f"market_url: '{template}'").market_url == template
    url = MarketUrl.of(template)
    made = url.address("a/b", "0" * 36)
    assert made == template.replace("{question}", "0" * 36).replace("{id}", "a%2Fb").replace("{key}", "a%2Fb")
    assert url.value_in(made) == "a/b"
    assert url.needs_question
    assert folder.mistakes("", f"question_url={template}") == [
        "--set question_url: write {id} for the id of the question, and leave out {question}"
    ]


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("https://example.org/{question}", NO_PLACEHOLDER),
        ("https://{question}.example.org/{id}", NO_ADDRESS),
        (
            "https://example.org/{question}/{question}/{id}",
            "write {question} once, such as https://example.org/questions/{question}#{id}",
        ),
    ],
)
def test_but_not_in_its_place_or_that_of_the_host_and_not_twice(template: str, line: str, folder: Folder) -> None:
    assert folder.mistakes("", f"market_url={template}") == [f"--set market_url: {line}"]


def test_a_recorded_setting_that_is_invalid_under_the_name_it_has_is_refused() -> None:
    with pytest.raises(ValueError, match="https://"):
        shaped({"market_url": "http://example.org/{id}"})
