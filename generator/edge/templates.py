"""The Jinja2 environment: a template's name and values → text. It knows nothing of what is rendered.

Pages (`*.html.j2`) escape every value for HTML. All other templates insert text from settings through a filter:
`tojson` in scripts, `yaml`, `quoted` or `interpolated` in nginx's configuration, `commented` in comments. A missing
value is an error.
"""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import jinja2

from generator.edge.compaction import compact, packed
from generator.wording import counted

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
    """A string of an nginx configuration, on one line, for a directive that takes no variables."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _interpolated(text: str) -> str:
    """The same for a directive that takes variables; nginx cannot escape `$`, so the file must define $dollar."""
    return _quoted(text).replace("$", "${dollar}")


def _commented(text: str) -> str:
    """Text on one line, which cannot end a comment that ends with the line."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def _yaml(text: str) -> str:
    """A string of a YAML document, printable text. JSON's escapes of characters beyond 16 bits are not YAML's."""
    return json.dumps(text, ensure_ascii=False)


def _environment(loader: jinja2.BaseLoader) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        autoescape=is_page,  # noqa: S701 - it is on for pages
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "quoted": _quoted,
        "interpolated": _interpolated,
        "commented": _commented,
        "yaml": _yaml,
        "shell": shlex.quote,
        "compact": compact,
        "counted": counted,
        "packed": packed,
    }
    # Compact, as CloudFront counts bytes, and in the contract's order.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment


_LOADER: Final = jinja2.FileSystemLoader(_FOLDERS)
_ENVIRONMENT: Final = _environment(_LOADER)
