"""Which sources are taken for the demo."""

from tests.config.folder import Folder

DEMO = "sqlite:///demo.db"


def test_the_source_is_the_default_as_long_as_nobody_names_another(folder: Folder) -> None:
    for text in ("", "source: {schema: public_api}", f"source: {{url: '{DEMO}'}}"):
        assert folder.load(text).source.is_default
    assert not folder.load("source: {url: 'sqlite:///mine.db'}").source.is_default
    assert not folder.load("", PUBLIC_MARKETS_SOURCE__URL=DEMO).source.is_default
    assert not folder.load("", f"source.url={DEMO}").source.is_default
