r"""Reads a file of environment variables as systemd's `EnvironmentFile=` does. No shell: `$`, `&` and `;` are text.

    # a comment, also with `;`
    NAME=value up to the end of the line, # included; blanks around it are not part of it
    NAME='as it stands, over several lines if need be'
    NAME="the same, but a backslash escapes \" \\ ` and $, and joins \
    two lines"
    NAME=without quotes, a backslash escapes any character, and joins \
    two lines

A comment ends with its line, as since systemd 254, even after a backslash. Where systemd ignores a mistake, this raises
an error that names the line. No message quotes a value.
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from generator.errors import ConfigError

#: Between assignments: blank space, and comments, which no backslash continues.
_BETWEEN: Final = re.compile(r"(?:[ \t\n]+|[#;][^\n]*)*")
_NAME: Final = re.compile(r"[^=\n]*")
_VALID_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_BLANK: Final = re.compile(r"[ \t]*")
#: The rest of a line, without the blanks at its end unless they are escaped. Quotes are text in it.
_PLAIN: Final = re.compile(r"(?:[ \t]*(?:[^\\ \t\n]|\\[\s\S]?))*")
_QUOTED: Final = re.compile(r"'(?P<single>[^']*)'|\"(?P<double>(?:[^\"\\]|\\[\s\S])*)\"")
_ESCAPE: Final = re.compile(r"\\([\s\S]?)")
_QUOTED_ESCAPE: Final = re.compile(r"\\([\"\\`$\n])")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def load(path: Path) -> dict[str, str]:
    """The variables of the file; the last of a name counts. Raise one ConfigError with a line per mistake."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise ConfigError(f"{path}: {reason}; name a file of variables with --env-file") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: is not UTF-8; save the file as UTF-8") from None
    return _Scanner(path, text.replace("\r\n", "\n").replace("\r", "\n")).variables()


def exposure(path: Path) -> str | None:
    """Who else than its owner can read or change the file, as a sentence; None if nobody, and for what is no file.

    The rights of its group count only if the file is ours: Kubernetes mounts Secrets of root for the group of the job.
    """
    found = path.stat()
    shared = stat.S_IRWXO | (stat.S_IRWXG if found.st_uid == os.geteuid() else 0)
    if not found.st_mode & shared or not stat.S_ISREG(found.st_mode):
        return None
    return (
        f"{path}: others than its owner can read or change it (mode {stat.S_IMODE(found.st_mode):04o}); run "
        f"`chmod 600 {path}`"
    )


class _Scanner:
    """Reads a text from its beginning to its end."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text
        self._position = 0
        self._mistakes: list[str] = []

    def variables(self) -> dict[str, str]:
        """Every variable; raise ConfigError with a line per mistake."""
        found = dict(self._assignments())
        if self._mistakes:
            raise ConfigError("\n".join(self._mistakes))
        return found

    def _assignments(self) -> Iterator[tuple[str, str]]:
        while self._take(_BETWEEN) is not None and self._position < len(self._text):
            start = self._position
            name = self._take(_NAME).rstrip(" \t")
            if not self._skip("="):
                self._complain(start, "write NAME=value, or begin a comment with #")
                continue
            value = self._value()
            if not _VALID_NAME.fullmatch(name):
                self._complain(start, "write the name of a variable before the =, without `export` and blanks")
            elif _CONTROL.search(value):
                self._complain(start, "the value holds a control character; remove it")
            else:
                yield name, value

    def _value(self) -> str:
        """Quoted parts, one after the other, and then the rest of the line."""
        parts = list[str]()
        while self._take(_BLANK) is not None and self._text[self._position : self._position + 1] in ("'", '"'):
            start = self._position
            quoted = _QUOTED.match(self._text, start)
            if quoted is None:
                self._complain(start, "the quotation mark is not closed")
                self._position = len(self._text)
                return ""
            self._position = quoted.end()
            parts.append(quoted["single"] if quoted["double"] is None else _unquoted(quoted["double"]))
        parts.append(_ESCAPE.sub(_escaped, self._take(_PLAIN)))
        self._take(_BLANK)
        return "".join(parts)

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._position)
        taken = found[0] if found else ""
        self._position += len(taken)
        return taken

    def _skip(self, character: str) -> bool:
        is_there = self._text.startswith(character, self._position)
        self._position += is_there
        return is_there

    def _complain(self, position: int, sentence: str) -> None:
        line = self._text.count("\n", 0, position) + 1
        self._mistakes.append(f"{self._path}:{line}: {sentence}")


def _escaped(found: re.Match[str]) -> str:
    return "" if found[1] == "\n" else found[1]


def _unquoted(text: str) -> str:
    """Within double quotes, a backslash counts only before these; before any other character it is text."""
    return _QUOTED_ESCAPE.sub(_escaped, text)
