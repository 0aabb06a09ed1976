"""docs/secrets.md: the URL, the file and the programs that it shows work as written."""

import os
import re
import subprocess
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

from generator.config import loader
from generator.source import address
from tests.support.postgres import PASSWORD
from tests.support.readers.pages import PAGES, section, typed
from tests.support.sites.publishing import PublishedSite
from tests.support.sites.rows import market_id

PAGE: Final = "docs/secrets.md"
(URL,) = re.findall(r"^PUBLIC_MARKETS_SOURCE__URL='(.*)'$", PAGES[PAGE], re.MULTILINE)
(PURGE,) = re.findall(r"^```sh\n(#!/bin/sh\n# purge-cloudflare.*?)^```$", PAGES[PAGE], re.DOTALL | re.MULTILINE)


def test_a_password_is_encoded_as_the_url_needs_it(tmp_path: Path) -> None:
    (line,) = typed(section(PAGE, "The database"))
    done = subprocess.run(["sh", "-ec", line], input=f"{PASSWORD}\n", capture_output=True, text=True, check=True)
    assert done.stdout == f"{quote(PASSWORD, safe='')}\n"
    assert loader.load(Path(os.devnull), environ={"PUBLIC_MARKETS_SOURCE__URL": URL}).source.url


def test_who_publishes_needs_the_url_of_the_build_with_any_password() -> None:
    built, publishing = (
        address.shape(loader.load(Path(os.devnull), environ={"PUBLIC_MARKETS_SOURCE__URL": url}))
        for url in (URL, URL.replace("S3cr%40t", "unknown").partition("?")[0])
    )
    assert built == publishing
    assert "S3cr" not in str(built)


def test_the_file_of_secrets_is_private(tmp_path: Path) -> None:
    (line,) = [line for line in PAGES[PAGE].splitlines() if line.startswith("    install ")]
    subprocess.run(["sh", "-ec", line], cwd=tmp_path, check=True)
    assert (tmp_path / "environment").stat().st_mode & 0o777 == 0o600


def test_the_program_that_purges_cloudflare_keeps_its_token_out_of_the_arguments(
    published_site: PublishedSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, script in {
        "purge-cloudflare": PURGE,
        "curl": '#!/bin/sh\n(cat; printf "%s\\n" "$@") >> "$HOME/sent"\n',
    }.items():
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name, value in {"HOME": str(tmp_path), "PURGE_TOKEN": "t0k3n", "PURGE_ZONE": "z0n3"}.items():
        monkeypatch.setenv(name, value)
    published_site.done("takedown", market_id(1), publish__purge_command=str(tmp_path / "purge-cloudflare"))
    sent = (tmp_path / "sent").read_text("utf-8").splitlines()
    once = [
        'header = "Authorization: Bearer t0k3n"', "-fsS", "--config", "-", "-X", "POST", "-H",
        "Content-Type: application/json", "--data", '{"prefixes": ["127.0.0.1:8000/v1/"]}',
        "https://api.cloudflare.com/client/v4/zones/z0n3/purge_cache",
    ]  # fmt: skip
    assert sent == once * 2
