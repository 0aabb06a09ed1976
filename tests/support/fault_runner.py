"""Runs commands for the fault tests, each in a process that may kill itself or its parent at a given system call.

`prepare()` of the modules that are named on the command line is called first: what it loads no process has to.

Reads a job per line, `{"arguments": […], "modules": […], "environ": {…}, "log": path, "fault": {…} | null}`, whose
modules prepare only its own process, and answers
`{"pid": …}` when the command begins and `{"code": …, "calls": {…}}` when it has ended. A fault is `{"who": "main" |
"worker", "call": label, "number": from 1, "after": whether the call is made first, "victim": "self" | "main",
"signal": number, "every": strike again at each so many further calls, or 0}`. `calls` counts by label what the main
process did; it stays empty when the process was killed. A build's process id stays its own until the next job, so that
a kill that comes late hits nobody else.
"""

import ctypes
import importlib
import json
import os
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from generator.cli.main import main
from tests.support import limits, loaded

WATCHED = ("replace", "rename", "open", "mkdir", "fsync", "sync", "unlink", "rmdir")
#: A kill cannot lose data that the kernel already has, so there is no need to wait for the disk.
SKIPPED = ("fsync", "sync")


def label(name: str, arguments: tuple[Any, ...]) -> str:
    """The kind of a call."""
    if name in ("replace", "rename"):
        target = str(arguments[1])
        parts = ("/.staging-", "manifest.json", "report.json", "/state/", "/first/", "/detail/", "/lists/")
        labels = ("discard", "manifest", "report", "state", "first", "detail", "generation")
        return next((text for part, text in zip(parts, labels, strict=True) if part in target), "document")
    if name == "open":
        # The folder that holds what is put aside is opened in order to sync it, by a call that cannot be watched.
        is_sync = arguments[1] & os.O_DIRECTORY and Path(arguments[0]).name.startswith(".staging-")
        return "sync" if is_sync else "create" if arguments[1] & os.O_CREAT else "look"
    return "clear" if name in ("unlink", "rmdir") else name


class Saboteur:
    """Counts this process's calls, and kills at the given one."""

    def __init__(self, fault: dict[str, Any] | None) -> None:
        self.calls: Counter[str] = Counter()
        self._fault = fault
        self._main = os.getpid()
        self._counter = self._main

    def watch(self) -> None:
        for name in WATCHED:
            setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:
            is_hit = self._is_hit(label(name, arguments))
            is_late = self._fault is not None and self._fault["after"]
            if is_hit and not is_late:
                self._kill()
            result = None if name in SKIPPED else call(*arguments, **options)
            if is_hit and is_late:
                self._kill()
            return result

        return watched

    def _is_hit(self, text: str) -> bool:
        if self._counter != os.getpid():  # a worker: forked, with its parent's counts
            self._counter = os.getpid()
            self.calls.clear()
        self.calls[text] += 1
        who = "main" if self._counter == self._main else "worker"
        fault = self._fault
        if not fault or (who, text) != (fault["who"], fault["call"]):
            return False
        beyond, every = self.calls[text] - int(fault["number"]), int(fault["every"])
        return beyond == 0 or (every > 0 and beyond > 0 and beyond % every == 0)

    def _kill(self) -> None:
        victim = self._main if self._fault and self._fault["victim"] == "main" else os.getpid()
        os.kill(victim, self._fault["signal"] if self._fault else signal.SIGKILL)


def build(job: dict[str, Any], counts: Path) -> int:
    """Run one build in this process."""
    os.setpgid(0, 0)
    os.environ.clear()
    os.environ.update(job["environ"])
    tempfile.tempdir = None  # it may have been looked up before the fork
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for name in job["modules"]:
        importlib.import_module(name).prepare()
    saboteur = Saboteur(job["fault"])
    saboteur.watch()
    try:
        with limits.only(job["limits"]):
            main(args=job["arguments"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - the parent asks for the code, the log has the rest
        traceback.print_exc()
        code = 70
    sys.stdout.flush()
    sys.stderr.flush()
    counts.write_text(json.dumps(saboteur.calls))
    return code


def report(**answer: Any) -> None:
    sys.stdout.write(f"{json.dumps(answer)}\n")
    sys.stdout.flush()


def ended(pid: int) -> int:
    """Wait for the process without reaping it."""
    result = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert result
    return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status


def serve() -> None:
    # It adopts workers whose parent was killed: the kernel sends SIGHUP to stopped orphans.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    for name in sys.argv[1:]:
        importlib.import_module(name).prepare()
    loaded.prepare()
    pid = None
    for line in sys.stdin:
        if pid:
            os.waitpid(pid, 0)
        job = json.loads(line)
        counts = Path(job["log"]).with_suffix(".calls")
        counts.unlink(missing_ok=True)
        pid = os.fork()
        if pid == 0:
            os._exit(build(job, counts))
        report(pid=pid)
        code = ended(pid)
        # A process may be killed after it created the file and before it wrote it.
        report(code=code, calls=json.loads(counts.read_bytes() or "{}") if counts.exists() else {})


if __name__ == "__main__":
    serve()
