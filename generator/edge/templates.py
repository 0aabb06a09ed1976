"""The Jinja2 environment: a template's name and values → text. It knows nothing of what is rendered.

Pages (`*.html.j2`) escape every value for HTML. All other templates insert data with `tojson` or `quoted`. A missing
value is an error.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import jinja2

#: Next to the package in a source tree, inside it when installed.
_PACKAGE: Final = Path(__file__).parent.parent
_FOLDERS: Final = (_PACKAGE.parent / "templates", _PACKAGE / "templates")


def rendered(template: str, values: Mapping[str, Any]) -> str:
    """The text of a template."""
    return _ENVIRONMENT.get_template(template).render(values)


def plain(name: str) -> str:
    """The text of a file in the templates folder that is not a template, such as a page's script or style."""
    return _LOADER.get_source(_ENVIRONMENT, name)[0]


def is_page(template: str | None) -> bool:
    """Whether values must be escaped for HTML. Jinja2's own rule looks at the last suffix only, which is `.j2`."""
    return template is not None and template.endswith(".html.j2")


def _quoted(text: str) -> str:
    """A string of an nginx configuration. A `$` in it starts a variable; nginx has no escape for that."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _uncommented(script: str) -> str:
    """The script without comment lines, except the first, which names its template."""
    first, *lines = script.splitlines(keepends=True)
    return "".join([first, *(line for line in lines if not line.lstrip().startswith("//"))])


def _environment(loader: jinja2.BaseLoader) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        autoescape=is_page,  # noqa: S701 - it is on for pages
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["quoted"] = _quoted
    environment.filters["uncommented"] = _uncommented
    # Compact, as CloudFront counts bytes, and in the contract's order.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment


_LOADER: Final = jinja2.FileSystemLoader(_FOLDERS)
_ENVIRONMENT: Final = _environment(_LOADER)
