"""Where the docs of this installation lie.

Messages name a page as `docs/….md` and a template as `templates/…`; what prints them puts the path in.
"""

import os
import re
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parent
#: A file as messages name it.
_NAME: Final = re.compile(r"(?<![\w/.-])(?:docs|templates)/[\w/-]+(?:\.\w+)+")


def folder() -> Path:
    """The folder of the docs, beside the templates: in the package when installed, beside it in a source tree."""
    installed = _PACKAGE / "docs"
    return installed if installed.is_dir() else _PACKAGE.parent / "docs"


def is_here() -> bool:
    """Whether the docs are in the current folder, which then is the source tree that this program runs from."""
    return folder().parent == Path.cwd()


def located(text: str) -> str:
    """The text with the whole path of each page and template that it names, unless the name leads there from here."""
    return _NAME.sub(_whole_path, text)


def _whole_path(name: "re.Match[str]") -> str:
    path = folder().parent / name[0]
    return str(path) if os.path.exists(path) and not is_here() else name[0]  # noqa: PTH110 - which never raises
