"""The database's address: named as SQLAlchemy would name it, without asking SQLAlchemy where that is not needed."""

import os
from pathlib import Path

import pytest
from sqlalchemy import make_url

from generator.config import loader
from generator.source import address

URLS = (
    "sqlite:///demo.db",
    "sqlite:////srv/a b/demo.db",
    "sqlite:////srv/a%20b/demo.db",
    "sqlite:///a@b:c/demo.db",
    "sqlite:///./demo.db?mode=ro",
    "sqlite:///",
    "postgresql://host/markets",
    "postgresql://user@host/markets",
    "postgresql+psycopg://user:secret@host.example:5432/markets?sslmode=require&password=secret",
    "postgresql://user:@host/markets",
    "postgresql://us%40er:se%2Fcret@host/markets",
    "postgresql://user:se/cret?x@host/markets",
    "postgresql://user:secret@host:05432/markets",
    "postgresql://user:secret@[::1]:5432/markets",
    "postgresql://user@/markets?host=/run/postgresql",
    "postgresql://user@host",
    "postgresql://:secret@host/markets",
    "postgresql://user:secret@host/mar%20kets",
    "postgresql://user:secret@host/märkte",
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
