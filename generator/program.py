"""Identifies the program of this process: what two programs make may differ, byte by byte."""

import hashlib
import platform
import zlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, NamedTuple

import pydantic_core

from generator import __version__

_ROOT: Final = Path(__file__).parent
#: The packages that read rows, make of them what is published, and keep that for the next build.
_MAKERS: Final = ("api", "builder", "downloads", "markets", "search", "site", "source", "tree")
#: The packages of others that write files of downloads.
_WRITERS: Final = ("arro3-core", "arro3-io", "numpy")
#: What a program is made of: code, and data that it reads.
_SOURCES: Final = frozenset({".py", ".json", ".yaml", ".yml", ".j2", ".css", ".js", ".txt"})
_DIGITS: Final = 12


class Program(NamedTuple):
    """A program, by its version and the `digest` of all its packages."""

    version: str
    digest: str

    def __str__(self) -> str:
        return f"public-markets {self.version} (program {self.digest})"


@cache
def this_program() -> Program:
    """The program of this process."""
    return Program(__version__, digest(".")[:_DIGITS])


@cache
def maker() -> str:
    """A digest of what makes files of rows in this process: another maker may make other files of the same rows."""
    versions = [_version(name) for name in _WRITERS]
    return hashlib.sha256(repr((digest(*_MAKERS), zlib.ZLIB_RUNTIME_VERSION, versions)).encode()).hexdigest()[:_DIGITS]


def digest(*packages: str, root: Path = _ROOT) -> str:
    """A digest of these packages with all below them, and of the versions of program, Python and JSON encoder.

    The program's version alone would not do: a checkout keeps that for long.
    """
    versions = __version__, pydantic_core.__version__, platform.python_version_tuple()[:2]
    found = hashlib.sha256(repr(versions).encode())
    paths = (path for package in packages for path in (root / package).rglob("*"))
    for path in sorted(path for path in paths if path.suffix in _SOURCES):
        found.update(f"\0{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return found.hexdigest()


def _version(package: str) -> str:
    """The version of a package; '' if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
