"""A rendered Worker in workerd, through Miniflare, with its own bucket, cache and rate limit."""

import atexit
import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import quote

from generator.api import contract, keys
from generator.config.settings import Config
from generator.edge import cloudflare, deployment
from tests.support.edges.cases import Case, faults
from tests.support.edges.engines import in_quickjs
from tests.support.edges.servers import Answer, Client
from tests.support.programs import require, unavailable
from tests.support.project import ROOT
from tests.support.waiting import PATIENCE_S

NODE_FOLDER: Final = ROOT / "tests" / "node"
#: Of the table's methods, those that workerd refuses without asking a Worker.
UNKNOWN_METHODS: Final = frozenset(["CONNECT", "FOO", "get", "Get", "GETT", "BREW", "__proto__", "constructor"])
_PROGRAM: Final = NODE_FOLDER / "cloudflare.mjs"


class RunningWorker:
    """A running Worker."""

    def __init__(self, program: "_Program", address: str, output: Path) -> None:
        self._program = program
        self._address = address
        self._output = output
        self.client = Client(int(address.rstrip("/").rpartition(":")[2]))

    def ask(self, target: str, method: str = "GET", **headers: str) -> Answer:
        return self.client.send(method, target, **headers)

    def put(self, wanted: Iterable[str], *, prefix: str = "", has_headers: bool = True) -> None:
        """Upload objects of the build, with the headers that `publish` stores with them."""
        uploads = [self._upload(key, prefix, has_headers=has_headers) for key in wanted]
        self._program.do(at=self._address, put=uploads)

    def delete(self, *gone: str) -> None:
        self._program.do(at=self._address, delete=gone)

    def _upload(self, key: str, prefix: str, *, has_headers: bool) -> Mapping[str, str]:
        headers = keys.headers(key) if has_headers else {}
        named = {"contentType": headers.get("Content-Type"), "cacheControl": headers.get("Cache-Control")}
        place = {"key": prefix + key, "file": str(self._output / key)}
        return place | {name: value for name, value in named.items() if value}


class _Program:
    """The program that runs the Workers of this process: loading it takes longer than starting one of them."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="public-markets-worker-")
        command, own = [node("miniflare"), _PROGRAM], environment(Path(self._folder.name))
        self._process = subprocess.Popen(command, env=own, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        atexit.register(self._end)

    def do(self, **task: Any) -> Any:
        """Have a task carried out; returns what the program answers."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{json.dumps(task)}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the Workers' program has ended with {self._process.wait(PATIENCE_S)}; its errors are above"
        done = json.loads(line)
        assert "error" not in done, done
        return done

    def _end(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        finally:
            self._process.stdout.close()
            self._folder.cleanup()


@cache
def _program() -> _Program:
    return _Program()


def write(config: Config, folder: Path) -> Path:
    """Write Cloudflare's files into `folder`; returns wrangler's configuration."""
    texts = {
        Path(file.name).name: file.text for file in deployment.render(config) if f"/{cloudflare.FOLDER}/" in file.name
    }
    assert tuple(texts) == cloudflare.NAMES
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    return folder / cloudflare.WRANGLER


def node(package: str) -> Path:
    """Node with the package; without it, the test is skipped or fails."""
    found = require("node", reason="it runs workerd, for the Cloudflare Worker")
    if not (NODE_FOLDER / "node_modules" / package).is_dir():
        unavailable(f"{package} is not installed: run `npm ci` in tests/node")
    return found


def environment(folder: Path) -> dict[str, str]:
    """An environment in which wrangler writes only to `folder` and sends no telemetry."""
    own = {"XDG_CONFIG_HOME": str(folder), "WRANGLER_LOG_PATH": str(folder), "WRANGLER_SEND_METRICS": "false"}
    return {**os.environ, **own, "CI": "1", "NO_COLOR": "1"}


@contextmanager
def serving(wrangler: Path, output: Path) -> Iterator[RunningWorker]:
    """Run the Worker of wrangler's configuration, with an empty bucket, during the block."""
    program = _program()
    address = program.do(start=str(wrangler))["address"]
    try:
        site = RunningWorker(program, address, output)
        with closing(site.client):
            yield site
    finally:
        program.do(at=address, stop=True)


# ── the table of requests ─────────────────────────────────────────────────────────────────────────────────────────


def as_url(path: str) -> str:
    """The path as the platform passes it on: of a WHATWG URL, without dot segments and backslashes."""
    kept: list[str] = []
    parts = path.replace("\\", "/").split("/")[1:]
    for part in parts:
        dots = part.lower().replace("%2e", ".")
        if dots == "..":
            del kept[-1:]
        elif dots != ".":
            kept.append(part)
    if parts[-1].lower().replace("%2e", ".") in (".", ".."):
        kept.append("")
    return quote("/" + "/".join(kept), safe="/%:@!$&'()*+,;=-._~|[]^")


def as_handed_over(cases: Sequence[Case], core: str, folder: Path, output: Path) -> list[Case]:
    """The cases, with the router's expected answers to the paths it receives."""
    changed = [case for case in cases if as_url(case.path) != case.path]
    results = in_quickjs(core, [(case.method, as_url(case.path), case.query) for case in changed], folder, output)
    renamed = {case: _as_found(case, result) for case, result in zip(changed, results, strict=True)}
    return [renamed.get(case, case) for case in cases]


def _as_found(case: Case, result: Any) -> Case:
    result = result.get("settled", result)
    if "key" in result:
        return replace(case, status=200, statuses=frozenset([200]), key=result["key"])
    if result["status"] == HTTPStatus.OK:
        is_first = result["headers"]["cache-control"] == keys.MUTABLE
        return replace(case, status=200, statuses=frozenset([200]), page=result["body"].encode(), is_first=is_first)
    error = contract.ErrorResponse.model_validate_json(result["body"] or '{"error":""}')
    named = faults(error, case.variant, can_search=case.can_search)
    return replace(case, status=result["status"], statuses=frozenset([result["status"]]), key=None, invalid=named)
