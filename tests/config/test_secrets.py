"""A password in the file is refused, and no message shows one."""

import pytest

from generator.errors import ConfigError
from tests.config.folder import Folder

SECRET = "hunter2"  # noqa: S105 - the password that must never show
WITH_PASSWORD = f"postgresql://reader:{SECRET}@db.example/markets"


@pytest.mark.parametrize(
    "url",
    [
        WITH_PASSWORD,
        f"postgresql://:{SECRET}@h/db",
        f"postgres://u:p/?#{SECRET}@h/db",
        f"postgresql+psycopg://u@h/db?sslmode=require&password={SECRET}",
        f"postgresql://u@h/db?sslpassword={SECRET}",
        f"mysql://u:{SECRET}@h/db",
    ],
)
def test_a_password_in_the_file_is_refused_even_where_the_environment_overrides_it(url: str, folder: Folder) -> None:
    (line,) = folder.mistakes(f"source: {{url: '{url}'}}", PUBLIC_MARKETS_SOURCE__URL="sqlite:///x")
    assert "must not be in the file" in line
    assert "PUBLIC_MARKETS_SOURCE__URL" in line
    assert SECRET not in line


@pytest.mark.parametrize(
    "url", ["postgresql://reader@h:5432/db", "postgresql://h/db?passfile=/x", "sqlite:///a:b@c.db"]
)
def test_an_url_without_a_password_may_stand_in_the_file(url: str, folder: Folder) -> None:
    assert folder.load(f"source: {{url: '{url}'}}").source.url.get_secret_value() == url


def test_a_password_from_outside_the_file_is_accepted_but_never_shown(folder: Folder) -> None:
    for loaded in (
        folder.load("", PUBLIC_MARKETS_SOURCE__URL=WITH_PASSWORD),
        folder.load("", f"source.url={WITH_PASSWORD}"),
    ):
        assert loaded.source.url.get_secret_value() == WITH_PASSWORD
        shown = [repr(loaded), str(loaded), f"{loaded.source.url}", loaded.model_dump_json(), repr(loaded.model_dump())]
        assert SECRET not in "".join(shown)


TEXTS = (
    *("source:\n  url: …", "source:\n  url:…", "source: …", "source: {…}", "source: […]", "…: x", "…"),
    *("source:\n  ulr: …", "base_url: …", "layout: …", "schedule: …", "publish: {target: '…'}", "source:\n  url: '…"),
    *("source:\n  url: …: x", "source:\n  url: …\n\tx", "source: {url: !!int '…'}", 'source: {url: "…\\UFFFFFFFF"}'),
    "source: {url: …}\n\x07",
)
OVERRIDES = ("source.url=my…", "source.ulr=…", "source.url:…", "…?a=b", "schedule=…")


@pytest.mark.parametrize(
    ("text", "override"), [*((text, "") for text in TEXTS), *(("", override) for override in OVERRIDES)]
)
def test_no_error_shows_a_password_not_even_its_traceback(text: str, override: str, folder: Folder) -> None:
    with pytest.raises(ConfigError) as caught:
        folder.load(text.replace("…", WITH_PASSWORD), *([override.replace("…", WITH_PASSWORD)] if override else []))
    chain: BaseException | None = caught.value
    while chain:
        assert SECRET not in str(chain)
        chain = chain.__cause__ or chain.__context__
