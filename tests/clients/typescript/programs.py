"""The TypeScript client, built as it is published, and programs in Node that use it."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.support.programs import require, unavailable
from tests.support.project import ROOT

FOLDER: Final = "clients/typescript"
SOURCE: Final = ROOT / FOLDER
PACKAGE: Final[dict[str, Any]] = json.loads((SOURCE / "package.json").read_text("utf-8"))
#: What programs import.
NAME: Final = f'"{PACKAGE["name"]}"'
_DENO: Final = ROOT / "tests/node/node_modules/@deno"
_EVALUATE: Final = Path(__file__).with_name("evaluate.mjs")


def node() -> Path:
    return require("node", reason="the TypeScript client is not run")


def copy_source(root: Path) -> Path:
    """Copy what the build needs, to the same place below another root; returns the folder of the client."""
    if not (SOURCE / "node_modules/typescript").is_dir():
        unavailable("TypeScript is not installed: run `npm ci` in clients/typescript")
    folder = root / FOLDER
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "api.ts"))
    (folder / "node_modules").symlink_to(SOURCE / "node_modules")
    return folder


def build(folder: Path) -> str:
    """Run the package's script `build`; returns what it complains of."""
    path = f"{folder / 'node_modules/.bin'}{os.pathsep}{node().parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-ec", PACKAGE["scripts"]["build"]], cwd=folder, env={**os.environ, "PATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode == 0) is (ran.stdout == ""), ran
    return ran.stdout + ran.stderr


def deno(text: str, client: Path, folder: Path, *arguments: str, right: str = "--allow-net=127.0.0.1") -> str:
    """Run a program in Deno, in a folder, and with one right; returns what it prints."""
    (binary,) = _DENO.glob("linux-*/deno") if _DENO.is_dir() else [unavailable("Deno is not installed: run `npm ci`")]
    program = folder / "program.mjs"
    program.write_text(text.replace(NAME, json.dumps((client / "dist/index.js").as_uri())), "utf-8")
    environ = {**os.environ, "DENO_DIR": str(folder / "deno"), "DENO_NO_UPDATE_CHECK": "1"}
    command = [str(binary), "run", "--no-config", "--no-remote", right, str(program), *arguments]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Program:
    """A Node in which scripts run, with what the client exports in their scope."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def __call__(self, script: str, **given: Any) -> Any:
        """Run the body of an async function; returns its value. `given` is in its scope."""
        self.begin(script, **given)
        return self.end()

    def begin(self, script: str, **given: Any) -> None:
        """Run it without waiting for its end."""
        assert self._process.stdin
        self._process.stdin.write(f"{json.dumps({'script': script, 'given': given})}\n")
        self._process.stdin.flush()

    def end(self) -> Any:
        """Wait for the end of what was begun; returns its value."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, "Node has ended; its errors are above"
        done = json.loads(line)
        assert "error" not in done, done["error"]
        return done.get("value")


@contextmanager
def running(client: Path) -> Iterator[Program]:
    """A Node with the client."""
    command = [str(node()), str(_EVALUATE), str(client / "dist")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Program(process)
        finally:
            process.kill()
