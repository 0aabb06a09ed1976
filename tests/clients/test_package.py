"""The package of the client: small, on its own, and it works where only its files are installed."""

import ast
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

import pytest

import public_markets_client.command
from generator import __version__
from tests.clients.conftest import DemoSite, QuestionSite
from tests.support.project import ROOT
from tests.support.readers.pages import PAGES, scripts, section
from tests.test_wheel import ENVIRON, built, done

FOLDER: Final = ROOT / "clients/python"
MODULES: Final = [*sorted((FOLDER / "public_markets_client").glob("*.py")), FOLDER / "public_markets_pm.py"]
#: What may be imported besides Python and the package, by module.
LIBRARIES: Final = {"clients.py": {"httpx"}, "stores.py": {"duckdb"}}
METADATA: Final = "^(?:Project-URL: Source|Keywords: |Classifier: Typing :: Typed)"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_it_needs_nothing_but_python_and_httpx(path: Path) -> None:
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    assert imported - sys.stdlib_module_names - {"public_markets_client"} == LIBRARIES.get(path.name, set())


def test_it_has_the_version_of_the_program() -> None:
    assert public_markets_client.__version__ == __version__


EXAMPLES: Final = re.findall(r"^```python\n(.*?)^```$", PAGES["docs/client.md"], re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    "text", [*EXAMPLES, *re.findall(r"^```python\n(.*?)^```$", PAGES["README.md"], re.DOTALL | re.MULTILINE)]
)
def test_an_example_of_the_docs_has_at_most_ten_lines_and_runs(text: str, demo_site: DemoSite, tmp_path: Path) -> None:
    assert len(text.splitlines()) <= 10
    ran = subprocess.run(
        [sys.executable, "-c", text.replace("http://127.0.0.1:8000", demo_site.url)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(FOLDER)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout


def test_the_commands_of_the_docs_run(
    demo_site: DemoSite,
    question_site: QuestionSite,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = [
        line.split() for line in scripts(section("docs/client.md", "The command")) if line.strip().startswith("pm ")
    ]
    assert len(shown) == 8
    for _, _, *words in shown:
        url = question_site.url if words[0] == "questions" else demo_site.url
        assert public_markets_client.command.main([url, *words]) == 0
        assert capsys.readouterr().out


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, from the sdist, and beside it only httpx and what that needs."""
    folder = tmp_path_factory.mktemp("client")
    files = built(folder / "dist", FOLDER, "wheel", "sdist")
    assert sorted(files) == [
        f"public_markets_client-{__version__}-py3-none-any.whl", f"public_markets_client-{__version__}.tar.gz",
    ]  # fmt: skip
    done(sys.executable, "-m", "venv", "--without-pip", folder / "env", cwd=folder)
    pip = f"{sys.executable} -m pip --quiet --python {folder}/env/bin/python install --no-index --no-deps"
    done(*pip.split(), *(folder / "dist").glob("*.whl"), cwd=folder)
    (site,) = (folder / "env/lib").glob("python*/site-packages")
    libraries = Path(sysconfig.get_path("purelib"))
    for name in ("httpx", "httpcore", "h11", "anyio", "certifi", "idna", "typing_extensions.py"):
        (site / name).symlink_to(libraries / name)
    return folder / "env/bin"


@pytest.mark.campaign(short=0)
def test_it_works_where_only_its_files_are_installed(installed: Path, demo_site: DemoSite, tmp_path: Path) -> None:
    assert "mirror" in done(installed / "pm", "--help", cwd=tmp_path)
    assert done(installed / "pm", demo_site.url, "list", "--limit", "1", cwd=tmp_path).count("\n") == 3
    (package,) = installed.parent.glob("lib/python*/site-packages/public_markets_client")
    assert (package / "SKILL.md").read_bytes() == (FOLDER / "SKILL.md").read_bytes()
    about = package.with_name(f"public_markets_client-{__version__}.dist-info").joinpath("METADATA").read_text("utf-8")
    assert {"Project-URL: Source", "Keywords: ", "Classifier: Typing :: Typed"} <= {
        *re.findall(METADATA, about, re.MULTILINE)
    }
    for text in EXAMPLES:
        assert done(installed / "python", "-c", text.replace("http://127.0.0.1:8000", demo_site.url), cwd=tmp_path)
    told = subprocess.run(
        [installed / "pm", demo_site.url, "mirror", "copy", "--to", "duckdb"],
        cwd=tmp_path, env=ENVIRON, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (told.returncode, "pip install 'public-markets-client[duckdb]'" in told.stderr) == (1, True)


@pytest.mark.campaign(short=0)
def test_programs_that_use_it_are_checked_strictly_for_its_oldest_python(installed: Path, tmp_path: Path) -> None:
    for number, text in enumerate(EXAMPLES):
        (tmp_path / f"example{number}.py").write_text(text)
    options = f"--strict --python-version 3.10 --python-executable {installed}/python --cache-dir {tmp_path}"
    command = (sys.executable, "-m", "mypy", "--config-file", "/dev/null", *options.split())
    assert done(*command, *tmp_path.glob("*.py"), cwd=tmp_path).startswith("Success")
    said = done(*command, FOLDER / "public_markets_client", "--ignore-missing-imports", cwd=tmp_path)
    assert said.startswith("Success")
