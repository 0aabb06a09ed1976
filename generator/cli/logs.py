"""Logs on stderr: text for people, or one JSON object per line. Results are not logs; they go to stdout."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final, Literal

import click

LogFormat = Literal["text", "json"]

LOG: Final = logging.getLogger("public_markets")
#: Level of messages that are always shown though nothing is wrong.
NOTICE: Final = 25
_LEVELS: Final = {NOTICE: "notice"}
_FORMAT: Final = "public_markets.log_format"


def configure(log_format: LogFormat, *, verbose: bool) -> None:
    """Send logs to stderr. JSON always has a line per stage; text has those only if `verbose`."""
    click.get_current_context().meta[_FORMAT] = log_format
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if log_format == "json" else _Text())
    # Libraries log warnings only, unless everything was asked for.
    logging.basicConfig(handlers=[handler], level=logging.INFO if verbose else logging.WARNING, force=True)
    LOG.setLevel(logging.INFO if verbose or log_format == "json" else NOTICE)


def are_json() -> bool:
    """Whether the current command logs JSON."""
    return click.get_current_context().meta.get(_FORMAT) == "json"


def notice(sentence: str) -> None:
    """Log something that is neither a result nor a problem."""
    LOG.log(NOTICE, "%s", sentence)


def stage(name: str, seconds: float, **counts: float) -> None:
    """Log the end of a stage, its duration and its counts."""
    LOG.info("stage over", extra={"fields": {"stage": name, "duration_ms": round(seconds * 1000), **counts}})


def failure(sentence: str, exit_code: int) -> None:
    """Write the sentence that a failed command ends with."""
    if are_json():
        LOG.error("%s", sentence, extra={"fields": {"exit_code": exit_code}})
    else:
        click.echo(f"error: {sentence}", err=True)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Format the line."""
        fields = "".join(f" {name}={value}" for name, value in getattr(record, "fields", {}).items())
        label = "" if record.levelno == NOTICE else f"{record.levelname}: "
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{label}{record.getMessage()}{fields}{trace}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Format the line; `time` is RFC 3339, UTC."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        level = _LEVELS.get(record.levelno, record.levelname.lower())
        line = {"time": moment.replace("+00:00", "Z"), "level": level, "message": record.getMessage()}
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)
