"""The files that a build renders for the edges, and nginx in front of a bucket."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from generator.api import contract, keys
from tests.support.edges.servers import connected, folder_for_anybody, free_port, nginx
from tests.support.project import ROOT
from tests.support.sites.builds import build_now, make_config
from tests.support.sites.rows import create_database, insert_market, market_id
from tests.support.stores.bucket import behind_nginx, bucket

BUCKET = "edge/nginx/bucket.conf"


def test_a_build_writes_what_changed_and_deletes_what_is_no_longer_rendered(tmp_path: Path, database: object) -> None:
    output = tmp_path / "output"
    bucket = {
        "publish__target": "s3://bucket/p",
        "publish__endpoint_url": "http://127.0.0.1:9",
        "publish__purge_command": "true",
    }
    build_now(make_config(tmp_path))
    configuration = output / "edge" / "nginx" / "nginx.conf"
    first = configuration.stat().st_ino
    build_now(make_config(tmp_path, **bucket))
    assert (output / BUCKET).is_file()
    assert configuration.stat().st_ino == first, "unchanged files are left alone"
    (output / "edge" / "nginx" / "nginx.pid").touch()
    build_now(make_config(tmp_path))
    assert not (output / BUCKET).exists()
    assert (output / "edge" / "nginx" / "nginx.pid").exists(), "nginx's own files are left alone"


@pytest.fixture
def objects() -> Iterator[Path]:
    with folder_for_anybody() as folder:
        yield folder


def test_nginx_before_a_bucket_decides_how_long_copies_are_kept_whatever_the_objects_say(objects: Path) -> None:
    with closing(create_database(objects / "markets.db")) as connection:
        for number in range(1, 4):
            insert_market(connection, number)
    port, store = free_port(), free_port()
    config = make_config(objects, **behind_nginx(port, store))
    build_now(config)
    output = objects / "output"
    with bucket(output, store), nginx(output, port, "bucket.conf"), connected(port) as client:
        first = client.send("GET", f"/{keys.MARKETS}?limit=1")
        later = client.send("GET", f"/{keys.MARKETS}?limit=1&cursor={json.loads(first.body)['nextCursor']}")
        missing = client.send("GET", f"/{keys.MARKETS}/{market_id(9)}")
    assert [answer.status for answer in (first, later, missing)] == [200, 200, 404]
    assert [answer.headers["cache-control"] for answer in (first, later)] == [keys.MUTABLE, keys.UNPURGED_IMMUTABLE]
    assert missing.headers["cache-control"] == "public, max-age=10"


def test_the_commands_of_the_docs_have_nginx_serve_a_directory_that_was_published_to(objects: Path) -> None:
    with closing(create_database(objects / "markets.db")) as connection:
        insert_market(connection, 1)
    port, site = free_port(), objects / "site"
    config = make_config(objects, base_url=f"http://127.0.0.1:{port}", publish__target=site)
    build_now(config)
    site.mkdir()
    (objects / "output" / contract.API_VERSION).rename(site / contract.API_VERSION)
    text = (ROOT / "docs" / "edge-nginx.md").read_text("utf-8")
    found = re.search(r"(    mkdir -p /srv/markets/edge/nginx\n(?:    .*\n)*)    nginx -c /srv/markets/edge", text)
    assert found
    subprocess.run(["sh", "-euc", found[1].replace("/srv/markets", str(site))], cwd=objects, check=True)
    with nginx(site, port), connected(port) as client:
        answers = [
            client.send("GET", f"/{keys.MARKETS}{rest}") for rest in ("", f"/{market_id(1)}", f"/{market_id(9)}")
        ]
    assert [answer.status for answer in answers] == [200, 200, 404]
    assert answers[0].headers["x-as-of"]
