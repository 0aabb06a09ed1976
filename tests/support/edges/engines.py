"""Runs the router core on a list of requests in each available JavaScript engine; results come as JSON.

A result is an answer, or what the core said first (`key`), what an adapter makes of it (`settled`: an answer, or the
`key` of the object to answer with), and all that it reads for it (`asked`).
"""

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import quickjs

from generator.edge.local.js_router import provide_digest
from tests.support.programs import require
from tests.support.waiting import PATIENCE_S

Request: TypeAlias = tuple[str, str, str]
#: core, requests, a folder for its files, the build that objects are read from → a result a request.
Engine: TypeAlias = Callable[[str, Sequence[Request], Path, Path], list[Mapping[str, Any]]]

_RUN: Final = """
function run(requests) {
  return JSON.stringify(requests.map(function (request) {
    const found = route(request[0], request[1], request[2], digest), asked = [];
    return found.status === undefined ? { key: found.key, settled: settle(found, asked), asked: asked } : found;
  }));
}

// What every adapter does.
function settle(found, asked) {
  while (found.status === undefined) {
    const texts = (found.read || [found.key]).map(function (key) {
      asked.push(key);
      return readText(key);
    });
    if (found.read !== undefined) found = cut(found, texts, digest);
    else if (texts[0] === null) found = found.otherwise || missing(found.key);
    else return { key: found.key };
  }
  return found;
}
"""
#: What a program gives the router: digests, and the objects in a folder, whose path is to be put in as JSON.
FROM_FILES: Final = """
const crypto = require('crypto');
const fs = require('fs');
function digest(text) { return crypto.createHash('sha256').update(text).digest('hex'); }
const texts = {};
function readText(key) {
  if (!(key in texts)) {
    try { texts[key] = fs.readFileSync(%s + '/' + key, 'utf8'); } catch (e) { texts[key] = null; }
  }
  return texts[key];
}
"""
_PROGRAM: Final = (
    FROM_FILES
    + """
fs.writeFileSync(%s, run(JSON.parse(fs.readFileSync(%s, 'utf8'))));
"""
)


#: The result for a key without an object.
NOWHERE: Final = Path("/nowhere")


def in_quickjs(core: str, requests: Sequence[Request], folder: Path, output: Path = NOWHERE) -> list[Mapping[str, Any]]:
    @cache
    def read(key: str) -> str | None:
        path = output / key
        return path.read_text("utf-8") if path.is_file() else None

    context = quickjs.Context()
    provide_digest(context)
    context.add_callable("readText", read)
    context.eval(core + _RUN)
    try:
        results: list[Mapping[str, Any]] = json.loads(context.eval(f"run({json.dumps(requests)})"))
    except quickjs.JSException as error:
        raise RuntimeError(f"quickjs: {error}") from error
    return results


def _in_program(
    program: str, core: str, requests: Sequence[Request], folder: Path, output: Path = NOWHERE
) -> list[Mapping[str, Any]]:
    path = require(program, reason="the router core is not run in it")
    table, answers = folder / "requests.json", folder / f"{program}.json"  # console.log of njs cuts long lines
    table.write_text(json.dumps(requests), "utf-8")
    script = folder / f"{program}.js"
    places = (json.dumps(str(path)) for path in (output, answers, table))
    script.write_text(core + _RUN + _PROGRAM % tuple(places), "utf-8")
    done = subprocess.run([path, script], capture_output=True, text=True, check=False, timeout=2 * PATIENCE_S)
    if done.returncode:
        raise RuntimeError(f"{program}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    results: list[Mapping[str, Any]] = json.loads(answers.read_text("utf-8"))
    return results


ENGINES: Final[Mapping[str, Engine]] = {
    "quickjs": in_quickjs, "njs": partial(_in_program, "njs"), "node": partial(_in_program, "node"),
}  # fmt: skip
