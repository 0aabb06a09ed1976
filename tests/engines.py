"""Runs the router core on a list of requests in each JavaScript engine at hand; results come as JSON."""

import hashlib
import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import quickjs

from tests.programs import require

Request: TypeAlias = tuple[str, str, str]
#: core, requests, a folder for its files → a result a request.
Engine: TypeAlias = Callable[[str, Sequence[Request], Path], list[Mapping[str, Any]]]

_RUN: Final = """
function run(requests) {
  return JSON.stringify(requests.map(function (request) {
    const found = route(request[0], request[1], request[2], digest);
    return found.key === undefined ? found : { key: found.key, missing: missing(found.key) };
  }));
}
"""
_PROGRAM: Final = """
const crypto = require('crypto');
function digest(text) { return crypto.createHash('sha256').update(text).digest('hex'); }
const fs = require('fs');
fs.writeFileSync(%s, run(JSON.parse(fs.readFileSync(%s, 'utf8'))));
"""


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def in_quickjs(core: str, requests: Sequence[Request], folder: Path) -> list[Mapping[str, Any]]:
    context = quickjs.Context()
    context.add_callable("digest", sha256)
    context.eval(core + _RUN)
    try:
        results: list[Mapping[str, Any]] = json.loads(context.eval(f"run({json.dumps(requests)})"))
    except quickjs.JSException as error:
        raise RuntimeError(f"quickjs: {error}") from error
    return results


def in_njs(core: str, requests: Sequence[Request], folder: Path) -> list[Mapping[str, Any]]:
    return _in_program("njs", core, requests, folder)


def in_node(core: str, requests: Sequence[Request], folder: Path) -> list[Mapping[str, Any]]:
    return _in_program("node", core, requests, folder)


def _in_program(program: str, core: str, requests: Sequence[Request], folder: Path) -> list[Mapping[str, Any]]:
    path = require(program, reason="the router core is not run in it")
    table, answers = folder / "requests.json", folder / f"{program}.json"  # console.log of njs cuts long lines
    table.write_text(json.dumps(requests), "utf-8")
    script = folder / f"{program}.js"
    script.write_text(core + _RUN + _PROGRAM % (json.dumps(str(answers)), json.dumps(str(table))), "utf-8")
    done = subprocess.run([path, script], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        raise RuntimeError(f"{program}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    results: list[Mapping[str, Any]] = json.loads(answers.read_text("utf-8"))
    return results


ENGINES: Final[Mapping[str, Engine]] = {"quickjs": in_quickjs, "njs": in_njs, "node": in_node}
