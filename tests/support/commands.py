"""Commands in processes of their own, forked from one that has the program loaded: an import takes longer than most.

`run` is the command line as a user has it: arguments, working directory, environment, exit code, both outputs. Run as a
program, this module is the process that forks.
"""

import atexit
import json
import os
import pty
import select
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TextIO

from generator.cli.main import main
from generator.tree import pages
from tests.support import limits, loaded
from tests.support.project import ROOT
from tests.support.waiting import PATIENCE_S

#: What takes longer hangs.
_TIMEOUT_S: Final = 120


def overrides(settings: Mapping[str, object]) -> list[str]:
    """Settings, named as `make_config` takes them, as options of a command."""
    return [word for name, value in settings.items() for word in ("--set", f"{name.replace('__', '.')}={value}")]


def run(*arguments: str | Path, cwd: Path = ROOT, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the real command line; `environ` is added to this process's environment."""
    job = {
        "arguments": [*map(str, arguments)],
        "cwd": str(cwd),
        "environ": {**os.environ, **environ},
        "limits": [*pages.LIMITS],
    }
    answer = _asked(job)
    return subprocess.CompletedProcess(arguments, answer["code"], answer["stdout"], answer["stderr"])


@dataclass
class Beside:
    """A command that runs beside the test until it is ended; `stdout` is what it prints."""

    pid: int
    stdout: TextIO
    code: int | None = None

    def end(self, number: signal.Signals) -> int:
        """Send it a signal, unless it was ended before, and wait for its exit code."""
        if self.code is None:
            file = os.pidfd_open(self.pid)
            os.kill(self.pid, number)
            has_ended = select.select([file], [], [], PATIENCE_S)[0]
            os.close(file)
            assert has_ended, f"{number.name} did not end it"
            self.code = _asked({"pid": self.pid})["code"]
        return self.code


def beside(*arguments: str | Path, stderr: Path) -> Beside:
    """Begin a command with nothing that the test has patched; the file gets its errors. It ends with this process."""
    reading, writing = os.pipe()
    files = [f"/proc/{os.getpid()}/fd/{writing}", str(stderr)]
    words = [*map(str, arguments)]
    pid = _asked({"arguments": words, "cwd": str(ROOT), "environ": {**os.environ}, "files": files})["pid"]
    os.close(writing)
    return Beside(pid, os.fdopen(reading, encoding="utf-8"))


@dataclass(frozen=True)
class Running:
    """A command in a process forked from this one; its outputs go to two files in memory."""

    pid: int
    outputs: tuple[int, int]

    def wait(self) -> "subprocess.CompletedProcess[str]":
        """What `run` returns, when the command has ended."""
        code = _code(self.pid)
        stdout, stderr = (_content(output) for output in self.outputs)
        return subprocess.CompletedProcess((), code, stdout, stderr)


def begin(*arguments: str | Path, cwd: Path = ROOT, is_fresh: bool = False, **environ: str) -> Running:
    """Begin a command with whatever the test has patched in this process, unless it `is_fresh`.

    `environ` is added to this process's environment.
    """
    words, environment = [*map(str, arguments)], {**os.environ, **environ}
    job = {"arguments": words, "cwd": str(cwd), "environ": environment, "limits": pages.LIMITS}
    outputs = os.memfd_create("stdout"), os.memfd_create("stderr")
    pid = os.fork()
    if pid == 0:
        try:
            if is_fresh:
                _enter(job, *outputs)
                os.execve(sys.executable, [*fresh(), *words], {**environment, "PYTHONPATH": str(ROOT)})  # noqa: S606
            # Pytest has its own.
            sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
            warnings.resetwarnings()
            os._exit(_carried_out(job, *outputs))
        finally:
            os._exit(1)
    return Running(pid, outputs)


def on_terminal(*words: str, cwd: Path, answer: str = "", **environ: str) -> tuple[int, str, bytes]:
    """The exit code of a command, what it printed, and what a terminal showed of its errors; it reads the answer."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*fresh(), *words],
        cwd=cwd, stdin=slave, stdout=subprocess.PIPE, stderr=slave, text=True,
        env={**os.environ, **environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"},
    ) as process:  # fmt: skip
        os.close(slave)
        os.write(master, answer.encode())
        shown = b""
        while chunk := _read(master):
            shown += chunk
        assert process.stdout
        printed = process.stdout.read()
    os.close(master)
    return process.returncode, printed, shown


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65_536)
    except OSError:  # the other end is closed
        return b""


def fresh() -> list[str]:
    """The words that begin a command in a process that shares nothing with this one."""
    return [sys.executable, "-m", "generator"]


@cache
def _server() -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, "-m", __name__], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.communicate)
    return server


def _asked(job: dict[str, Any]) -> dict[str, Any]:
    server = _server()
    assert server.stdin
    assert server.stdout
    server.stdin.write(f"{json.dumps(job)}\n")
    server.stdin.flush()
    answer: dict[str, Any] = json.loads(server.stdout.readline())
    return answer


def _serve() -> None:
    loaded.prepare()
    beside = set[int]()
    try:
        for line in sys.stdin:
            sys.stdout.write(f"{json.dumps(_answer(json.loads(line), beside))}\n")
            sys.stdout.flush()
    finally:
        for pid in beside:
            os.kill(pid, signal.SIGKILL)


def _answer(job: dict[str, Any], beside: set[int]) -> dict[str, Any]:
    """Do a job: end a command that runs `beside`, begin one, or run one to its end."""
    if "pid" in job:
        beside.remove(job["pid"])
        return {"code": _code(job["pid"])}
    if "files" in job:
        outputs = [os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for file in job["files"]]
        pid = _forked(job, *outputs)
        beside.add(pid)
        for output in outputs:
            os.close(output)
        return {"pid": pid}
    outputs = [os.memfd_create(name) for name in ("stdout", "stderr")]
    code = _code(_forked(job, *outputs))
    stdout, stderr = (_content(output) for output in outputs)
    return {"code": code, "stdout": stdout, "stderr": stderr}


def _forked(job: dict[str, Any], *outputs: int) -> int:
    pid = os.fork()
    if pid == 0:
        os._exit(_carried_out(job, *outputs))
    return pid


def _code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _carried_out(job: dict[str, Any], *outputs: int) -> int:
    """Run the command in this process, and return its exit code."""
    _enter(job, *outputs)
    os.environ.clear()
    os.environ.update(job["environ"])
    try:
        with limits.only(job.get("limits", pages.LIMITS)):
            main(args=job["arguments"], prog_name="python -m generator")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - what Python itself does
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _enter(job: dict[str, Any], *outputs: int) -> None:
    """Have the files that a command begins with, its working directory, and its time; an interrupt ends it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background ignores them
    signal.alarm(0 if "files" in job else _TIMEOUT_S)
    for stream, file in enumerate((os.open(os.devnull, os.O_RDONLY), *outputs)):
        os.dup2(file, stream)
    os.chdir(job["cwd"])


def _content(output: int) -> str:
    with os.fdopen(output, "rb") as file:
        file.seek(0)
        return file.read().decode("utf-8", "surrogateescape")


if __name__ == "__main__":
    _serve()
