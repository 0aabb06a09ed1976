"""A site that was built once, and the errors of later commands."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.support.commands import run
from tests.support.sites.builds import files

NOW: Final = "2026-01-31T12:00:00Z"
SOURCE: Final = "PUBLIC_MARKETS_SOURCE__URL"


@dataclass(frozen=True)
class BuiltSite:
    """A folder with a configuration, a database and what was built from it."""

    folder: Path
    before: dict[str, bytes] = field(default_factory=dict)

    @property
    def output(self) -> Path:
        return self.folder / "output"

    def everything(self) -> dict[str, bytes]:
        """Every file of the output; the lock names the process that last held it."""
        return {key: content for key, content in files(self.output, "").items() if key != ".lock"}

    def build(self, *arguments: str, **environ: str) -> Any:
        return run("build", "--as-of", NOW, *arguments, cwd=self.folder, **environ)

    def refuses(self, *arguments: str, code: int = 1, stdout: str = "", source: str = "") -> str:
        """Run; expect failure with one sentence, no traceback and unchanged output. Return stderr."""
        done = run(*arguments, cwd=self.folder, **({SOURCE: source} if source else {}))
        assert (done.returncode, done.stdout) == (code, stdout), done.stderr
        assert "Traceback" not in done.stderr
        assert "bug" not in done.stderr
        assert self.everything() == self.before
        return done.stderr

    def errors(self, url: str, *arguments: str) -> list[str]:
        """The errors that `check` finds in a database."""
        done = run("check", *arguments, cwd=self.folder, **{SOURCE: url})
        found = [line.removeprefix("error: ") for line in done.stdout.splitlines() if line.startswith("error: ")]
        assert done.returncode == 1
        which = "this error" if len(found) == 1 else f"these {len(found)} errors"
        assert done.stderr == f"error: fix {which}, then run `check` again\n"
        assert self.everything() == self.before
        return found

    def says(self, url: str, command: str = "build") -> str:
        """The error of a command for a database."""
        return self.refuses(command, source=url)
