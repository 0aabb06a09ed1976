"""Hostile text in every setting: what is accepted reaches each rendered file as text and changes nothing else."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import pytest
import quickjs
import yaml
from pydantic import ValidationError

from generator.api import keys
from generator.builder.inspection import pages
from generator.builder.inspection.excerpts import Excerpts
from generator.builder.inspection.pages import PublishedDownloads
from generator.builder.report import Report
from generator.config.settings import KEYS, Config
from generator.edge import deployment
from generator.edge import nginx as nginx_values
from generator.site.catalog import Catalog
from generator.tree.layouts import LAYOUTS
from tests.support.edges.servers import connected, folder_for_anybody, free_port, nginx
from tests.support.programs import require
from tests.support.sites.builds import NOW, VARIANTS

#: Each has a meaning in some file: ends a directive, a string, a comment or an element, or begins a variable.
CHARACTERS: Final = (
    *";'\"\\#{}$`|&()*%<>/ \n\r\t\0", "${HOME}", "$uri", "{{ 7 }}", "</script>", "*/", "é", "😀", "\u2028", "\x85"
)  # fmt: skip
#: What surrounds the text in settings that are no plain text.
SHAPES: Final = {
    "license": ("https://api.example/{}",),
    "base_url": ("https://api.example/{}", "https://{}.example"),
    "publish.endpoint_url": ("http://127.0.0.1:9/{}", "http://{}.example"),
    "publish.target": ("s3://bucket/{}", "s3://{}"),
    "source.url": ("sqlite:///{}",),
    "output": ("out/{}",),
}


def nested(values: Mapping[str, object]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        (content.setdefault(section, {}) if section else content)[name] = value
    return content


def accepted(key: str, value: object) -> bool:
    try:
        Config.model_validate(nested({key: value}))
    except ValidationError:
        return False
    return True


def hostile() -> Iterator[tuple[str, str]]:
    """Every setting that takes text, with all the characters it accepts at once, in the first shape that takes any."""
    for key in KEYS:
        for shape in SHAPES.get(key, ("{}",)):
            fitting = [char for char in CHARACTERS if accepted(key, shape.format(f"a{char}b"))]
            if fitting:
                yield key, shape.format(f"a{'b'.join(fitting)}b")
                break


SETTINGS: Final = dict(hostile())
#: The same settings with a letter instead of each text.
HARMLESS: Final = {key: SHAPES.get(key, ("{}",))[0].format("a") for key in SETTINGS} | {"output": "/srv/$a"}


def config(values: Mapping[str, str], variant: str, layout: str) -> Config:
    return Config.model_validate(nested({**values, "variant": variant, "layout": layout}))


def renamed(text: str, names: Mapping[str, str]) -> str:
    for name, other in names.items():
        text = text.replace(name, other)
    return text


def rendered(settings: Config) -> dict[str, str]:
    # Names and an address in nginx's configuration follow from the address.
    names = {nginx_values.site(settings.base_url): "site", nginx_values.inside(settings.base_url): "127.9.9.9:20127"}
    files = {file.name: renamed(file.text, names) for file in deployment.render(settings)}
    report = Report(as_of=NOW, source=settings.source.url.get_secret_value()).content()
    nothing = Excerpts(Catalog([], as_of=NOW, hidden=0)), PublishedDownloads(None, None)
    return files | {name: body.decode() for name, body in pages.render(settings, report, *nothing)}


# ── readers of each format, which return all but the text of strings ─────────────────────────────────────────────


def directives(text: str) -> list[str]:
    """The tokens of an nginx configuration, as nginx splits it; strings as their kind only."""
    comment, quoted = r"\s+|#[^\n]*(?P<comment>)", r'"(?:\\.|[^"\\])*"(?P<text>)'
    token = re.compile(rf'{comment}|{quoted}|(?P<mark>[;{{}}])|(?P<word>[^\s;{{}}"]+)', re.DOTALL)
    found, at = [], 0
    while at < len(text):
        match = token.match(text, at)
        assert match, text[at : at + 80]
        at = match.end()
        if kind := match.lastgroup:
            found.append(match[kind] or kind)
    return found


def shape(value: Any) -> Any:
    """A parsed value without its texts."""
    if isinstance(value, Mapping):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return "" if isinstance(value, str) else value


def events(text: str) -> list[str]:
    """The structure of a YAML document: its nodes, with the names of short functions."""
    return [f"{type(event).__name__} {getattr(event, 'tag', '')}" for event in yaml.parse(text)]


class Elements(HTMLParser):
    """Every tag and attribute name of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [tag, *(name for name, _ in attrs)]


def skeleton(name: str, text: str) -> Any:
    """The structure of a file, read as its programs do."""
    if name.endswith(".conf"):
        return directives(text)
    if name.endswith(".yaml"):
        return events(text)
    if name.endswith(".jsonc"):
        return shape(json.loads(re.sub(r"^ *//.*$", "", text, flags=re.MULTILINE)))
    if name.endswith(".html"):
        elements = Elements()
        elements.feed(text)
        return elements.found
    if name.endswith(".js") and name.startswith(deployment.FOLDER):
        script = re.sub(r"^(import .*|export default )", "", text, flags=re.MULTILINE)
        if "cloudflare" not in name:
            quickjs.Context().eval(f"function all() {{ {script} }}")
        return re.sub(r'"(?:\\.|[^"\\\n])*"|[0-9]+', "", text)
    return None


@pytest.fixture
def cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with a hostile name, below which a relative `output` lies."""
    folder = tmp_path / "a;b\n}\"c'd $uri ${HOME} #é\\ %2F"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_every_setting_that_takes_text_was_given_hostile_text() -> None:
    assert {"base_url", "publish.endpoint_url", "publish.target", "output", "categories", "source.url"} <= {*SETTINGS}
    for key in ("publish.target", "output", "source.schema", "publish.cloudfront_distribution"):
        assert all(char in SETTINGS[key] for char in (";", "'", '"', "\\", "#", "${HOME}", "é", "</script>")), key


@pytest.mark.campaign(short=1)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_hostile_text_changes_no_rendered_file_but_for_the_text(variant: str, layout: str, cwd: Path) -> None:
    found, harmless = rendered(config(SETTINGS, variant, layout)), rendered(config(HARMLESS, variant, layout))
    assert found.keys() == harmless.keys()
    assert {"edge/nginx/bucket.conf", "edge/cloudfront/template.yaml", "index.html"} <= found.keys()
    differing = [name for name in found if skeleton(name, found[name]) != skeleton(name, harmless[name])]
    assert differing == []


def test_nginx_reads_a_hostile_configuration_and_serves_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    program = require("nginx", Path("/usr/sbin"), reason="its configuration is not read")
    with folder_for_anybody() as anybody:
        monkeypatch.chdir(anybody)
        folder = anybody / "a;b\n}\"c'd $uri ${HOME} #é\\ %2F"
        folder.mkdir()
        monkeypatch.chdir(folder)
        port = free_port()
        hostile = SETTINGS | {"base_url": f"http://127.0.0.1:{port}/a;b'$c", "output": "o;$p"}
        settings = config(hostile, "core", "pages")
        for name, text in rendered(settings).items():
            path = settings.output / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        snapshot = settings.output / keys.SNAPSHOT
        snapshot.parent.mkdir(parents=True)
        snapshot.write_text("{}")
        with nginx(settings.output.absolute(), port), connected(port) as client:
            assert client.send("GET", f"/a;b'$c/{keys.SNAPSHOT.removesuffix('.json')}").body == b"{}"
        bucket = settings.output.absolute() / "edge" / "nginx" / "bucket.conf"
        done = subprocess.run([program, "-t", "-c", bucket], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
