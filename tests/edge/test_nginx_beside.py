"""The parts of nginx's configuration, included as the docs say by an nginx with other sites and TLS."""

import http.client
import json
import os
import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from generator.api import contract, keys
from generator.edge import deployment
from tests.support.edges.servers import Answer, folder_for_anybody, free_port, nginx, nobody_owning, temporary_folders
from tests.support.programs import require
from tests.support.project import ROOT
from tests.support.readers.lists import write
from tests.support.sites.builds import AS_OF, build_now, make_config
from tests.support.sites.rows import create_database, insert_market, market_id
from tests.support.waiting import PATIENCE_S

HOST: Final = "api.example.com"
SECOND: Final = "staging.example.com"
MARKETS: Final = f"/{keys.MARKETS}"
#: Another site on both ports, the default one, with names like ours, and settings that an operator may have for all.
BESIDE: Final = """
load_module modules/ngx_http_js_module.so;
pid "{folder}/nginx.pid";
error_log "{folder}/error.log";
events {{ }}
http {{
{temporary}
    access_log "{folder}/access.log";
    default_type text/plain;
    add_header X-Operator 1 always;
    error_page 404 /operator.html;
    limit_req_zone $binary_remote_addr zone=readers:1m rate=1r/m;
    limit_req zone=readers;
    map $uri $object_key {{ default other; }}
    upstream bucket {{ server 127.0.0.1:9; }}
    js_set $as_of operator.f;
    js_import operator from "{folder}/operator.js";
    server {{
        listen 127.0.0.1:{http} default_server;
        listen 127.0.0.1:{https} ssl default_server;
        server_name other.example.com;
        ssl_certificate "{folder}/certificate.pem";
        ssl_certificate_key "{folder}/key.pem";
        return 200 "other site";
    }}
{sites}
}}
"""


def snippet(output: Path, host: str, http: int, https: int) -> str:
    """What the docs say to write, with the paths and ports of this test."""
    text = (ROOT / "docs" / "edge-nginx.md").read_text("utf-8")
    found = re.search(r"```nginx\n(.*?)```", text, re.DOTALL)
    assert found
    written, folder = re.sub(r"\n *listen \[::\][^\n]*", "", found[1]), output.parent
    for before, after in (
        ("/srv/public-markets/output", str(output)),
        (f"/etc/letsencrypt/live/{HOST}/fullchain.pem", str(folder / "certificate.pem")),
        (f"/etc/letsencrypt/live/{HOST}/privkey.pem", str(folder / "key.pem")),
        ("listen 443 ssl", f"listen 127.0.0.1:{https} ssl"),
        ("listen 80", f"listen 127.0.0.1:{http}"),
        (HOST, host),
    ):
        assert before in written
        written = written.replace(before, after)
    return written


def certify(folder: Path) -> None:
    program = require("openssl", reason="no certificate can be made")
    names = f"subjectAltName=DNS:{HOST},DNS:{SECOND},DNS:other.example.com"
    subprocess.run(
        [
            program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-days", "2", "-subj", "/CN=test", "-addext", names,
            "-keyout", folder / "key.pem", "-out", folder / "certificate.pem",
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip


class Sites:
    """A running nginx with three sites."""

    def __init__(self, folder: Path, http: int, https: int) -> None:
        self.folder, self.http, self.https = folder, http, https
        self._context = ssl.create_default_context(cafile=folder / "certificate.pem")

    def get(self, target: str, host: str = HOST) -> Answer:
        """An answer over TLS, whose certificate is checked."""
        plain = socket.create_connection(("127.0.0.1", self.https), timeout=PATIENCE_S)
        connection = http.client.HTTPConnection(host)
        connection.sock = self._context.wrap_socket(plain, server_hostname=host)
        with closing(connection):
            connection.request("GET", target)
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, headers, response.read())

    def redirect(self, host: str) -> tuple[int, str | None]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.http, timeout=PATIENCE_S)) as connection:
            connection.request("GET", "/x?y=1", headers={"Host": host})
            response = connection.getresponse()
            return response.status, response.headers["location"]


@pytest.fixture(scope="module")
def sites() -> Iterator[Sites]:
    with folder_for_anybody() as folder:
        with closing(create_database(folder / "markets.db")) as connection:
            for number in range(1, 4):
                insert_market(connection, number)
        build_now(make_config(folder, base_url=f"https://{HOST}"))
        output, second = folder / "output", folder / "second"
        for file in deployment.render(make_config(folder, base_url=f"https://{SECOND}", output=second)):
            write(second / file.name, file.text.encode())
        for path in (output / "v1").rglob("*.json"):
            os.utime(path, (AS_OF.timestamp(), AS_OF.timestamp()))  # or nginx might say nothing of them yet
        certify(folder)
        (folder / "operator.js").write_text("function f(r) { return ''; } export default { f };")
        http, https = free_port(), free_port()
        parts = "".join(snippet(place, host, http, https) for place, host in ((output, HOST), (second, SECOND)))
        whole = BESIDE.format(folder=folder, temporary=temporary_folders(folder), http=http, https=https, sites=parts)
        write(output / "edge" / "nginx" / "beside.conf", whole.encode())
        folder.chmod(0o777)
        # As root, nginx would give its folders to its workers.
        nobody_owning(second / "edge" / "nginx")
        (folder / "key.pem").chmod(0o644)
        with nginx(output, https, "beside.conf"):
            yield Sites(folder, http, https)


def test_the_api_answers_under_its_own_name_over_tls(sites: Sites) -> None:
    first = sites.get(f"{MARKETS}?limit=1")
    page = json.loads(first.body)
    assert (first.status, first.headers["content-type"]) == (200, keys.CONTENT_TYPE)
    assert first.headers["link"]
    later = sites.get(f"{MARKETS}?limit=1&cursor={page['nextCursor']}")
    assert (later.status, len(json.loads(later.body)["items"])) == (200, 1)
    for target, status in ((f"{MARKETS}/{market_id(9)}", 404), ("/x", 404), (f"{MARKETS}?limit=0", 400)):
        answer = sites.get(target)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (status, "*")
        assert contract.ErrorResponse.model_validate_json(answer.body).error


def test_every_answer_over_tls_keeps_browsers_from_coming_back_without(sites: Sites) -> None:
    (steps,) = (sites.folder / "output" / "v1" / "dumps" / "markets").iterdir()
    found = [
        sites.get(target)
        for target in (
            *(MARKETS, f"{MARKETS}/{market_id(1)}", f"/{keys.LLMS}", f"/{keys.feed('new', 'atom')}", "/v1/"),
            *(f"/v1/dumps/markets/{steps.name}", f"/v1/changes/{'0' * 32}.ndjson.gz"),
            *(f"{MARKETS}?limit=0", "/x", f"/{'x' * 5_000}", f"/{'x' * 9_000}"),
        )
    ]
    assert [answer.status for answer in found] == [200] * 6 + [404, 400, 404, 400, 400]
    assert {answer.headers.get("strict-transport-security") for answer in found} == {"max-age=31536000"}
    assert {answer.headers.get("x-content-type-options") for answer in found} == {"nosniff"}
    assert sites.get("/x", SECOND).headers["strict-transport-security"]
    assert "strict-transport-security" not in sites.get("/x", "other.example.com").headers


def test_the_other_sites_are_left_alone(sites: Sites) -> None:
    other = sites.get(MARKETS, "other.example.com")
    assert (other.body, other.headers["x-operator"]) == (b"other site", "1")
    assert sites.get(MARKETS, SECOND).status == 503, "nothing is built there"
    assert sites.get("/x", SECOND).status == 404


def test_plain_http_leads_to_the_api_only_under_its_name(sites: Sites) -> None:
    assert sites.redirect(HOST) == (301, f"https://{HOST}/x?y=1")
    assert sites.redirect("unknown.example.com") == (200, None)
