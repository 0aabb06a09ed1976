"""Logs on stderr and results on stdout: text for people, or one JSON object per line."""

import json
import logging
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

import click

from generator import documentation
from generator.config import passwords
from generator.config.settings import Config
from generator.progress import Span

LogFormat = Literal["text", "json"]

LOG: Final = logging.getLogger("public_markets")
#: Level of messages that are always shown though nothing is wrong.
NOTICE: Final = 25
_LEVELS: Final = {NOTICE: "notice"}
_FORMAT: Final = "public_markets.log_format"
#: The address whose passwords are hidden.
_SOURCE: Final = "public_markets.source"


def hide_passwords(settings: Config) -> None:
    """Hide the passwords of these settings in tracebacks, and in the logs of libraries."""
    click.get_current_context().meta[_SOURCE] = settings.source.url.get_secret_value()


def without_passwords(text: str) -> str:
    """The text without the passwords of the settings."""
    return _hidden(text, click.get_current_context().meta)


def _hidden(text: str, meta: Mapping[str, Any]) -> str:
    return passwords.hidden(text, meta.get(_SOURCE, ""))


def configure(log_format: LogFormat, *, verbose: bool) -> None:
    """Send logs to stderr. JSON always has a line per stage; text has those only if `verbose`."""
    meta = click.get_current_context().meta
    meta[_FORMAT] = log_format
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json(meta) if log_format == "json" else _Text(meta))
    if log_format == "json":
        logging.captureWarnings(capture=True)
    # Libraries log warnings only, unless everything was asked for.
    logging.basicConfig(handlers=[handler], level=logging.INFO if verbose else logging.WARNING, force=True)
    LOG.setLevel(logging.INFO if verbose or log_format == "json" else NOTICE)


def are_json() -> bool:
    """Whether the current command logs JSON."""
    return click.get_current_context().meta.get(_FORMAT) == "json"


def notice(sentence: str) -> None:
    """Log something that is neither a result nor a problem."""
    LOG.log(NOTICE, "%s", sentence)


def result(sentence: str, level: str = "result", /, **fields: object) -> None:
    """Write a line of the command's result to stdout; `level` and `fields`, its figures, are for JSON only."""
    click.echo(_line(time.time(), level, sentence, fields) if are_json() else sentence)


def gap() -> None:
    """Write an empty line between results, in text only."""
    if not are_json():
        click.echo()


def stage(name: str, span: Span, **counts: float) -> None:
    """Log a stage with its duration and its counts, at the time when it ended."""
    if not LOG.isEnabledFor(logging.INFO):
        return
    fields = {"stage": name, "duration_ms": round(span.seconds * 1000), **counts}
    record = LOG.makeRecord(LOG.name, logging.INFO, "", 0, "stage over", (), None, extra={"fields": fields})
    record.created -= time.perf_counter() - span.end
    LOG.handle(record)


def failure(sentence: str, exit_code: int) -> None:
    """Write the sentence that a failed command ends with."""
    if are_json():
        LOG.error("%s", sentence, extra={"fields": {"exit_code": exit_code}})
    else:
        click.echo(f"error: {documentation.located(sentence)}", err=True)


class _Formatter(logging.Formatter):
    def __init__(self, meta: Mapping[str, Any]) -> None:
        super().__init__()
        self._meta = meta  # of the command's context, which other threads have not

    def message(self, record: logging.LogRecord) -> str:
        """The message; ours never hold a password, and hiding one there could hide a word that equals it."""
        text = documentation.located(record.getMessage())
        return text if record.name == LOG.name else _hidden(text, self._meta)

    def trace(self, record: logging.LogRecord) -> str:
        """The traceback; empty without one."""
        return _hidden(self.formatException(record.exc_info), self._meta) if record.exc_info else ""


class _Text(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Format the line."""
        fields = "".join(f" {name}={value}" for name, value in getattr(record, "fields", {}).items())
        label = "" if record.levelno == NOTICE else f"{record.levelname}: "
        trace = f"\n{self.trace(record)}" if record.exc_info else ""
        return f"{label}{self.message(record)}{fields}{trace}"


class _Json(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Format the line."""
        level = _LEVELS.get(record.levelno, record.levelname.lower())
        fields = {**getattr(record, "fields", {})}
        if trace := self.trace(record):
            fields["trace"] = trace
        return _line(record.created, level, self.message(record), fields)


def _line(created: float, level: str, message: str, fields: Mapping[str, object]) -> str:
    """One JSON object; `time` is RFC 3339, UTC."""
    moment = datetime.fromtimestamp(created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"time": moment, "level": level, "message": message, **fields})
