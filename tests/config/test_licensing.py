"""`license` and `publisher`: what is accepted, and the sentence for what is not."""

import pytest

from tests.config.folder import Folder

NO_LICENSE = (
    "write an identifier of https://spdx.org/licenses, such as CC-BY-4.0, or the http:// or https:// address of the "
    "licence"
)
NO_ADDRESS = "write an http:// or https:// address without user, query and fragment"


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("CC-BY-4.0", "CC-BY-4.0"),
        ("cc0-1.0", "CC0-1.0"),
        ("odbl-1.0", "ODbL-1.0"),
        ("GPL-2.0+", "GPL-2.0+"),
        *(2 * (f"https://example.org/{end}",) for end in ("", "terms", "licences/by/4.0/", "terms#data")),
        ("http://example.org/ü", "http://example.org/ü"),
    ],
)
def test_a_licence_is_an_identifier_or_an_address(text: str, spelled: str, folder: Folder) -> None:
    assert folder.load(f"license: '{text}'").license == spelled
    assert folder.load("", PUBLIC_MARKETS_LICENSE=text).license == spelled


@pytest.mark.parametrize(
    "text",
    [
        *(
            "CC-BY",
            "CC BY 4.0",
            "proprietary",
            "LicenseRef-ours",
            "licenseref-ours",
            "(MIT)",
            "MIT OR CC0-1.0",
            "cc/by",
        ),
        *("example.org/terms", "//example.org/terms", "MIT ", "-", "+"),
    ],
)
def test_any_other_licence_is_refused(text: str, folder: Folder) -> None:
    assert folder.mistakes(f"license: '{text}'") == [f"config.yaml:1:10 license: {NO_LICENSE}"]


@pytest.mark.parametrize(
    "text", ["ftp://example.org/", "https://", "https://me@example.org/", "https://example.org/?a", "javascript://x"]
)
def test_an_address_of_a_licence_is_one_of_the_web(text: str, folder: Folder) -> None:
    assert folder.mistakes(f"license: '{text}'") == [f"config.yaml:1:10 license: {NO_ADDRESS}"]


def test_a_publisher_has_a_name_or_an_address(folder: Folder) -> None:
    assert folder.load("publisher: {name: Zoë & Co.}").publisher.model_dump() == {"name": "Zoë & Co.", "url": None}
    both = folder.load("publisher: {name: Example, url: 'https://example.org/'}").publisher
    assert (both.name, both.url) == ("Example", "https://example.org")
    told = folder.load("publisher: {url: 'https://example.org'}", PUBLIC_MARKETS_PUBLISHER__NAME="Example").publisher
    assert told == both
    assert both.shown_name == "Example"
    assert folder.load("publisher: {url: 'https://example.org/a'}").publisher.shown_name == "example.org"
    assert folder.load("").publisher.shown_name is None
    assert len(folder.mistakes('publisher: {name: "a\\nb"}')) == 1
