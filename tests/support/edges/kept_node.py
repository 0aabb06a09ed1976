"""One Node for all scripts of a test process: its start, and loading the SDK, take longer than most of them."""

import atexit
import json
import os
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Final

from tests.support.edges.cloudflare import NODE_FOLDER
from tests.support.waiting import PATIENCE_S

#: Runs each script anew, and waits for what it exports.
_LOOP: Final = """
const read = require('readline').createInterface({ input: process.stdin });
process.on('unhandledRejection', (error) => console.log(JSON.stringify(String(error.stack))));
read.on('line', async (line) => {
  const { script, environ } = JSON.parse(line);
  Object.assign(process.env, environ);
  delete require.cache[script];
  try {
    await require(script);
    console.log('null');
  } catch (error) {
    console.log(JSON.stringify(String(error.stack)));
  }
});
"""


def run(program: Path, script: Path, environ: Mapping[str, str]) -> str | None:
    """Run a CommonJS module whose `module.exports` may be a promise; returns the error that ended it."""
    process = _process(program)
    assert process.stdin
    assert process.stdout
    too_late = Timer(2 * PATIENCE_S, process.kill)
    too_late.start()
    try:
        process.stdin.write(f"{json.dumps({'script': str(script.resolve()), 'environ': environ})}\n")
        process.stdin.flush()
        line = process.stdout.readline()
    finally:
        too_late.cancel()
    if not line:
        _process.cache_clear()
        return "Node has ended"
    error: str | None = json.loads(line)
    return error


@cache
def _process(program: Path) -> subprocess.Popen[str]:
    environ = {**os.environ, "NODE_PATH": str(NODE_FOLDER / "node_modules")}
    command = [str(program), "--eval", _LOOP]
    process = subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    return process
