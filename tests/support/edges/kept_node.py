"""One Node for all scripts of a test process: its start, and loading the SDK, take longer than most of them."""

import atexit
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Final, TextIO

from tests.support.edges.cloudflare import NODE_FOLDER
from tests.support.waiting import PATIENCE_S

#: Runs each script anew, and waits for what it exports.
_LOOP: Final = """
const { writeSync } = require('fs');
const read = require('readline').createInterface({ input: process.stdin });
// On a channel of its own, as scripts may print.
const answer = (error) => writeSync(%d, JSON.stringify(error) + '\\n');
process.on('unhandledRejection', (error) => {
  answer(String(error.stack));
  process.exit(1); // or the error would be told of the next script
});
read.on('line', async (line) => {
  const { script, environ } = JSON.parse(line);
  Object.assign(process.env, environ);
  delete require.cache[script];
  try {
    await require(script);
    answer(null);
  } catch (error) {
    answer(String(error.stack));
  }
});
"""


@dataclass(frozen=True)
class _Node:
    process: subprocess.Popen[str]
    answers: TextIO

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.answers.close()


def run(program: Path, script: Path, environ: Mapping[str, str]) -> str | None:
    """Run a CommonJS module whose `module.exports` may be a promise; returns the error that ended it."""
    node = _node(program)
    assert node.process.stdin
    too_late = Timer(2 * PATIENCE_S, node.process.kill)
    too_late.start()
    try:
        node.process.stdin.write(f"{json.dumps({'script': str(script.resolve()), 'environ': environ})}\n")
        node.process.stdin.flush()
        line = node.answers.readline()
    except OSError:
        line = ""
    finally:
        too_late.cancel()
    error: str | None = json.loads(line) if line else "Node has ended"
    if error:
        _node.cache_clear()  # it may be about to end, or have more to say
        node.end()
    return error


@cache
def _node(program: Path) -> _Node:
    reading, writing = os.pipe()
    environ = {**os.environ, "NODE_PATH": str(NODE_FOLDER / "node_modules")}
    process = subprocess.Popen(
        [str(program), "--eval", _LOOP % writing], env=environ, pass_fds=[writing], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    os.close(writing)
    node = _Node(process, os.fdopen(reading))
    atexit.register(node.end)
    return node
