"""`market_url`: which templates are accepted, and the sentence for those that are not."""

import pytest

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


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("https://example.org/", NO_PLACEHOLDER),
        ("https://example.org/{ID}", NO_PLACEHOLDER),
        ("https://example.org/{}", NO_PLACEHOLDER),
        ("https://example.org/{id}/{id}", NO_PLACEHOLDER),
        ("https://example.org/{id}/{key}", NO_PLACEHOLDER),
        ("https://{slug}.example.org/", NO_ADDRESS),
        ("https://example.org{id}", NO_ADDRESS),
        ("https://example.org:{id}/", NO_ADDRESS),
        ("https://me:secret@example.org/{id}", NO_ADDRESS),
        ("https:///{id}", NO_ADDRESS),
        ("//example.org/{id}", NO_ADDRESS),
        ("example.org/{id}", NO_ADDRESS),
        ("javascript:alert({id})", NO_ADDRESS),
        ("HTTPS://example.org/{id}", NO_ADDRESS),
        ("https://bücher.example/{id}", NO_ADDRESS),
        ("http://example.org/{id}", NO_HTTPS),
        ("http://127.0.0.1.example.org/{id}", NO_HTTPS),
        ("https://example.org/a b/{id}", NOT_ESCAPED),
        ("https://example.org/{id}\n", NOT_ESCAPED),
        ("https://example.org/ü/{id}", NOT_ESCAPED),
        ("https://example.org/{{id}}", NOT_ESCAPED),
        ("https://example.org/%2/{id}", NOT_ESCAPED),
        ("https://example.org/{id}\x00", NOT_ESCAPED),
        ("https://example.org/[1]/{id}", NOT_ESCAPED),
        ('https://example.org/"/{id}', NOT_ESCAPED),
        ("https://example.org:0/{id}", NO_HOST),
        ("https://example.org:99999/{id}", NO_HOST),
        ("https://[zz::1]/{id}", NO_ADDRESS),
        ("https://[1:2]/{id}", NO_HOST),
        (f"https://example.org/{'a' * 500}/{{id}}", "write an address of at most 500 characters"),
    ],
)
def test_any_other_template_is_refused_without_quoting_it(template: str, line: str, folder: Folder) -> None:
    assert folder.mistakes("", f"market_url={template}") == [f"--set market_url: {line}"]


def test_a_slug_needs_the_extended_variant(folder: Folder) -> None:
    template = "market_url: 'https://example.org/{slug}'"
    assert folder.load(f"{template}\nvariant: extended").market_url == "https://example.org/{slug}"
    line = "market_url: {slug} needs variant: extended, as markets have no slugs in core; write {id} or {key}"
    assert folder.mistakes(template) == [line]


def test_a_recorded_setting_that_is_invalid_under_the_name_it_has_is_refused() -> None:
    with pytest.raises(ValueError, match="https://"):
        shaped({"market_url": "http://example.org/{id}"})
