"""The database's address: named as SQLAlchemy would name it, without asking SQLAlchemy where that is not needed."""

import os
from pathlib import Path

import pytest
from sqlalchemy import make_url

from generator.config import loader
from generator.source import address

SQLITE = ("demo.db", "/srv/a b/demo.db", "/srv/a%20b/demo.db", "a@b:c/demo.db", "./demo.db?mode=ro", "")
POSTGRESQL = (
    *("host/markets", "user@host/markets", "user:@host/markets", "us%40er:se%2Fcret@host/markets", "user@host"),
    *("user:se/cret?x@host/markets", "user:secret@host:05432/markets", "user:secret@[::1]:5432/markets"),
    *("user@/markets?host=/run/postgresql", ":secret@host/markets", "user:secret@host/mar%20kets"),
    "user:secret@host/märkte",
)
URLS = (
    *(f"sqlite:///{rest}" for rest in SQLITE),
    *(f"postgresql://{rest}" for rest in POSTGRESQL),
    "postgresql+psycopg://user:secret@host.example:5432/markets?sslmode=require&password=secret",
)


@pytest.mark.parametrize("url", URLS)
def test_a_database_is_named_as_by_sqlalchemy(url: str) -> None:
    config = loader.load(Path(os.devnull), environ={"PUBLIC_MARKETS_SOURCE__URL": url})
    expected = make_url(url)
    if expected.get_backend_name() == "sqlite":
        assert address.sqlite_path(config) == Path(expected.database or "")
        assert address.display_url(config) == f"sqlite:///{Path(expected.database or '')}"
    else:
        assert address.sqlite_path(config) is None
        plain = expected.set(drivername="postgresql", password=None, query={}).render_as_string()
        assert address.display_url(config) == plain
        assert "secret" not in plain


def test_manifests_tell_databases_apart_without_naming_them() -> None:
    urls = ("postgresql://reader:secret@db.internal/markets", "postgresql://reader:secret@db.internal/copy")
    one, other = (
        address.shape(loader.load(Path(os.devnull), environ={"PUBLIC_MARKETS_SOURCE__URL": url})) for url in urls
    )
    assert [key for key in one if one[key] != other[key]] == ["source"]
    assert not [word for word in ("reader", "secret", "internal", "copy") if word in str([one, other])]
    same = urls[0].replace("secret", "another")
    assert address.shape(loader.load(Path(os.devnull), environ={"PUBLIC_MARKETS_SOURCE__URL": same})) == one
