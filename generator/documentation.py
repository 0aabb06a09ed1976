"""Where the docs of this installation lie. Messages name a page as `docs/….md`; what prints them has the path put in."""

import re
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parent
#: A page as messages name it.
_PAGE: Final = re.compile(r"\bdocs/[\w/-]+\.md\b")


def folder() -> Path:
    """The folder of the docs: inside the package when installed, beside it in a source tree."""
    installed = _PACKAGE / "docs"
    return installed if installed.is_dir() else _PACKAGE.parent / "docs"


def is_here() -> bool:
    """Whether the docs are in the current folder, which then is the source tree that this program runs from."""
    return folder().parent == Path.cwd()


def located(text: str) -> str:
    """The text with the whole path of each page that it names as `docs/….md`, unless that leads there from here."""
    return text if is_here() else _PAGE.sub(_whole_path, text)


def _whole_path(name: "re.Match[str]") -> str:
    path = folder().parent / name[0]
    return str(path) if path.exists() else name[0]
