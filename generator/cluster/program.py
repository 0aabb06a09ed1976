"""Identifies the program of this process: processes that build together must run the same one, or bytes may differ."""

import hashlib
import platform
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pydantic_core

from generator import __version__

_PACKAGE: Final = Path(__file__).parent.parent
_DIGITS: Final = 12


class Program(NamedTuple):
    """A program; `digest` covers its source files, and the versions of Python and of the JSON encoder."""

    version: str
    digest: str

    def __str__(self) -> str:
        return f"public-markets {self.version} (program {self.digest})"


@cache
def this_program() -> Program:
    """The program of this process."""
    found = hashlib.sha256(f"{__version__} {pydantic_core.__version__} {platform.python_version_tuple()[:2]}".encode())
    for path in sorted(_PACKAGE.rglob("*.py")):
        found.update(f"\0{path.relative_to(_PACKAGE).as_posix()}\0".encode() + path.read_bytes())
    return Program(__version__, found.hexdigest()[:_DIGITS])
