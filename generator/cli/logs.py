"""How a log line is written: for people, or as one JSON object a line. Results are no log lines; they go to stdout."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final, Literal

Form = Literal["text", "json"]

LOG: Final = logging.getLogger("public_markets")
#: What people are told without asking, though nothing is wrong.
NOTICE: Final = 25
_LEVELS: Final = {NOTICE: "notice"}


def configure(form: Form, *, verbose: bool) -> None:
    """Send logs to stderr. In JSON there is always a line per stage; people get those with `-v`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    # Of the libraries' own words only warnings are worth a line, unless everything is asked for.
    logging.basicConfig(handlers=[handler], level=logging.INFO if verbose else logging.WARNING, force=True)
    LOG.setLevel(logging.INFO if verbose or form == "json" else NOTICE)


def notice(sentence: str) -> None:
    """Tell people something that is no result."""
    LOG.log(NOTICE, "%s", sentence)


def stage(name: str, seconds: float, **counts: float) -> None:
    """Tell that a stage is over, how long it took, and what it counted."""
    LOG.info("stage over", extra={"fields": {"stage": name, "duration_ms": round(seconds * 1000), **counts}})


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Write the line."""
        fields = "".join(f" {name}={value}" for name, value in getattr(record, "fields", {}).items())
        label = "" if record.levelno == NOTICE else f"{record.levelname}: "
        trace = f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""
        return f"{label}{record.getMessage()}{fields}{trace}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Write the line; `time` is RFC 3339, UTC."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        level = _LEVELS.get(record.levelno, record.levelname.lower())
        line = {"time": moment.replace("+00:00", "Z"), "level": level, "message": record.getMessage()}
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)
