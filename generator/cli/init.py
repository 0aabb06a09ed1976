"""The `init` command: a folder to run the job from, with settings, SQL, a schedule, and a file for secrets."""

import getpass
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

import click

from generator import filesystem
from generator.cli import logs
from generator.cli.command import CommandWithoutSettings
from generator.config import licensing, scalars
from generator.edge import templates
from generator.errors import ConfigError
from generator.wording import counted, escaped

Database = Literal["postgresql", "sqlite", "socialpredict"]
Edge = Literal["nginx", "cloudflare", "cloudfront"]
Scheduler = Literal["systemd", "cron"]

#: What may be chosen for each option, and what the choice is.
_CHOICES: Final[Mapping[str, tuple[Sequence[str], str]]] = {
    "database": (get_args(Database), "Where the markets are"),
    "edge": (get_args(Edge), "What will serve readers"),
    "scheduler": (get_args(Scheduler), "What will run the job every hour"),
}
_TRADES: Final = "Publish every trade for download, from which it can be told who traded"
_LICENSE: Final = "Licence of the data, such as CC-BY-4.0, or its address"
_PUBLISHER: Final = "Who publishes the data, as in citations"
_PUBLISHER_URL: Final = "Address of who publishes the data"
#: The files of templates/sql for each kind of database, the one to adapt first.
_SQL: Final[Mapping[Database, tuple[str, ...]]] = {
    "postgresql": ("postgresql-views.sql", "detail-versions.sql", "postgresql-hardening.sql"),
    "sqlite": ("sqlite-views.sql", "sqlite-detail-versions.sql"),
    "socialpredict": ("socialpredict-views.sql", "postgresql-hardening.sql"),
}
#: What systemd reads.
_UNITS: Final = ("public-markets.service", "public-markets.timer", "public-markets-failed.service")
#: What a path must be made of to need no quotes in a unit, a crontab and a shell.
_PLAIN: Final = re.compile(r"[\w./+@-]+", re.ASCII)
#: The same of a user's name, which is no path, and no option of the programs that get it.
_USER: Final = re.compile(r"\w[\w.+@-]*", re.ASCII)


class Starter(NamedTuple):
    """What a folder is for; `folder` and `program` are absolute."""

    folder: str
    program: str
    user: str
    database: Database
    edge: Edge
    scheduler: Scheduler
    #: Whether to publish every trade.
    fills: bool = False
    license: str | None = None
    publisher: str | None = None
    publisher_url: str | None = None

    @property
    def bucket(self) -> bool:
        """Whether the edge reads a bucket; nginx serves the output folder itself."""
        return self.edge != "nginx"

    @property
    def command(self) -> str:
        """What is run on schedule."""
        return "rebuild" if self.bucket else "build"

    def files(self) -> Iterator[tuple[str, str]]:
        """The name and the text of each file."""
        sql = _SQL[self.database]
        values = {**self._asdict(), "bucket": self.bucket, "command": self.command, "sql": sql}
        scheduled = _UNITS if self.scheduler == "systemd" else ("crontab",)
        for name in ("config.yaml", "environment", *scheduled, "README.md"):
            yield name, templates.rendered(f"init/{name}.j2", values)
        for name in sql:
            yield f"sql/{name}", templates.plain(f"sql/{name}")


def _option(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    choices, question = _CHOICES[name]
    return click.option(f"--{name}", type=click.Choice(choices), help=f"{question} (asked for in a terminal).")


@click.command(cls=CommandWithoutSettings, name="init")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@_option("database")
@_option("edge")
@_option("scheduler")
def init_command(folder: Path, database: Database | None, edge: Edge | None, scheduler: Scheduler | None) -> None:
    """Make a folder to run the job from: settings, SQL, a schedule, and a file for secrets."""
    place, beside = folder.resolve(), Path(sys.executable).parent / "public-markets"
    program = str(beside) if beside.exists() else f"{sys.executable} -m generator"
    for path in (str(place), *program.split(" ")):
        if not _PLAIN.fullmatch(path):
            raise ConfigError(
                f"{path}: has letters that units and crontabs do not take as they are; choose a path of letters, "
                "digits and . _ - + @"
            )
    user, is_asked = _user(), None in (database, edge, scheduler)
    starter = Starter(
        folder=str(place),
        program=program,
        user="public-markets" if user == "root" else user,
        database=database or _asked("database"),
        edge=edge or _asked("edge"),
        scheduler=scheduler or _asked("scheduler"),
        # Who gave all answers that have no default is not kept from running on.
        fills=is_asked and click.confirm(_TRADES, default=False, err=True),
        license=_told(_LICENSE, licensing.checked) if is_asked else None,
        publisher=_told(_PUBLISHER, scalars.one_line) if is_asked else None,
        publisher_url=_told(_PUBLISHER_URL, scalars.web_url) if is_asked else None,
    )
    names = _written(folder, dict(starter.files()))
    logs.result(f"wrote {counted(len(names), 'file')} into {folder}/: begin with {folder / 'README.md'}")


def _user() -> str:
    """Who runs this: by name, or by number without one."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # the latter from Python 3.13 on
        return str(os.geteuid())
    if not _USER.fullmatch(user):
        raise ConfigError(
            f"{escaped(user)}: has letters that units and shells do not take in the name of a user as they are; set "
            "LOGNAME to one of letters, digits and . _ - + @"
        )
    return user


def _asked(name: str) -> Any:
    """What the user chooses for an option that was not given."""
    choices, question = _CHOICES[name]
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"--{name} is missing, and there is no terminal to ask on; give one of {', '.join(choices)}"
        )
    return click.prompt(question, type=click.Choice(choices), err=True)


def _told(question: str, check: Callable[[str], str]) -> str | None:
    """What the user answers, None for an empty line; what the setting would not take is asked for again."""

    def checked(text: str) -> str:
        try:
            return check(text) if text else text
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    found = click.prompt(f"{question} (empty: none)", "", show_default=False, value_proc=checked, err=True)
    return str(found) or None


def _written(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Write the files, none of which may be there; returns their names."""
    present = next((folder / name for name in files if os.path.lexists(folder / name)), None)
    if present:
        raise _in_the_way(present)
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            # It has its mode from the beginning: nobody can open it before it is private.
            mode = filesystem.PRIVATE if name == "environment" else filesystem.PUBLIC
            filesystem.create(path, text.encode(), mode=mode)
    except FileExistsError as error:
        raise _in_the_way(Path(error.filename)) from error
    except OSError as error:
        raise ConfigError(f"{error.filename or folder}: {filesystem.sentence(error, 'name another folder')}") from error
    return [*files]


def _in_the_way(path: Path) -> ConfigError:
    return ConfigError(f"{path} is there already, and init overwrites nothing; name another folder, or move it away")
