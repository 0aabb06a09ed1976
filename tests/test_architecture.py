"""The picture in RATIONALE.md holds: imports between packages, owners of libraries, sizes."""

import ast
import re
import statistics
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.support import structure
from tests.support.project import ROOT

GENERATOR: Final = ROOT / "generator"


def dotted(path: Path) -> str:
    """`tree.pages` for generator/tree/pages.py; a package's own docstring is `tree.__init__`."""
    return ".".join(path.relative_to(GENERATOR).with_suffix("").parts)


MODULES: Final = {dotted(ROOT / module.path): module for module in structure.modules("generator")}

#: Modules at the root, which every package may import. They import nothing but each other.
ROOT_LEAVES: Final = {
    "commit", "documentation", "errors", "file_times", "filesystem", "findings", "garbage", "metrics", "metrics_file",
    "models", "process_identity", "program", "progress", "time_limit", "wording",
}  # fmt: skip
#: What each package may import. `builder` and `publish` never meet: they share `output/` alone.
MAY_IMPORT: Final[Mapping[str, set[str]]] = {
    "config": set(),
    "api": {"config"},
    "markets": {"search", "api", "config"},
    "tree": {"api"},
    "source": {"markets", "config"},
    "demo": {"api"},
    "cost": {"tree", "api", "config"},
    "search": {"tree", "api"},
    "downloads": {"tree", "api"},
    "edge": {"site", "search", "tree", "api", "config"},
    "feeds": {"api", "config"},
    "cluster": set(),
    "site": {"downloads", "feeds", "search", "markets", "tree", "api", "config"},
    "builder": {"site", "downloads", "cluster", "search", "source", "markets", "edge", "cost", "tree", "api", "config"},
    "publish": {"site", "stores", "cost", "tree", "api", "config"},
    "stores": {"api", "config"},
    "verify": {"site", "downloads", "feeds", "search", "tree", "api", "config"},
    "cli": {
        *("verify", "builder", "publish", "site", "stores", "source"),
        *("demo", "markets", "edge", "cost", "tree", "api", "config"),
    },
}
#: The only modules that may import each library.
OWNERS: Final[Mapping[str, set[str]]] = {
    "sqlalchemy": {"source.address", "source.connection", "source.decoding", "source.queries", "demo.database"},
    "sqlite3": {"source.connection"},
    "psycopg": {"source.decoding"},
    "yaml": {"api.openapi", "config.loader", "edge.compaction"},
    "click": {f"cli.{name}" for name in (
        "main", "command", "logs", "parameters", "progress_bar", "build", "check", "demo", "docs", "find", "hold",
        "init", "plan", "publish", "rebuild", "serve", "status", "takedown", "verify",
    )},
    "packaging": {"config.licensing"},
    "multiprocessing": {"site.worker_pool"},
    "fcntl": {"tree.run_lock", "stores.lock_file"},
    "prometheus_client": {"metrics_file"},
    "werkzeug": {"edge.local.app", "edge.local.server"},
    "quickjs": {"edge.local.js_router"},
    "jinja2": {"edge.templates"},
    "boto3": {"publish.copies", "stores.s3_connection"},
    "botocore": {
        "publish.copies", "stores.s3", "stores.s3_connection", "stores.s3_deletions",
        "stores.s3_errors",
    },
    "feedgenerator": {"feeds.atom"},
    "obstore": {"stores.s3_uploads"},
    "distributed": {"cluster.engine"},
    "dask": {"cluster.engine"},
    "arro3": {"downloads.parquet", "downloads.records"},
    "numpy": {"builder.collector", "downloads.derivation", "downloads.records"},
}  # fmt: skip
#: Packages and modules that do no I/O and use neither clock nor randomness: results depend on arguments alone.
PURE: Final = {
    "api", "downloads", "feeds", "markets", "search", "errors", "findings", "models", "wording",
    "builder.comparison", "builder.content_guards", "builder.guards",
    "builder.inspection.excerpts", "builder.inspection.history",
    "builder.notices", "cost.estimate", "demo.texts", "edge.cloudflare",
    "edge.cloudfront",
    "edge.nginx", "edge.compaction", "edge.router", "edge.responses", "publish.plan", "publish.record", "site.catalog",
    "site.documents", "site.families", "site.family", "site.questions", "site.site_index",
    "source.grouping", "source.relations", "source.schema_check",
    "builder.reported",
    "tree.blocklist", "tree.chunks", "tree.layouts", "tree.manifest", "tree.pages", "tree.status", "tree.stored",
    "tree.told",
    "verify.contract.answers", "verify.contract.rows", "verify.mismatches", "verify.earlier_states",
    "verify.question_values",
}  # fmt: skip
#: How many names of public types have a meaning in several modules: lower it when there are fewer, never raise it.
AMBIGUOUS: Final = 7


IMPURE_LIBRARIES: Final = {
    "os", "pathlib", "random", "secrets", "shutil", "socket", "subprocess", "sys", "tempfile", "time",
}  # fmt: skip


def package(name: str) -> str:
    """The package of a module; the module itself at the root."""
    return name.partition(".")[0]


@cache
def internal(name: str) -> set[str]:
    """The modules of this project that a module imports."""
    found = set()
    for target in MODULES[name].imported:
        parts = target.split(".")
        if parts[0] == "generator":
            known = (".".join(parts[1:end]) for end in range(len(parts), 1, -1))
            found |= {next((candidate for candidate in known if candidate in MODULES), "__init__")}
    return found


@cache
def libraries(name: str) -> set[str]:
    return {target.split(".")[0] for target in MODULES[name].imported}


def test_every_package_and_root_module_is_in_the_picture() -> None:
    assert {package(name) for name in MODULES} == {"__init__", "__main__"} | ROOT_LEAVES | MAY_IMPORT.keys()


def test_imports_are_absolute() -> None:
    assert [target for name in MODULES for target in MODULES[name].imported if target.startswith(".")] == []


def test_copies_of_models_are_checked() -> None:
    callers = {name for name, module in MODULES.items() for node in module.nodes if _is_copy(node)}
    assert callers == {"models"}, "call generator.models.replaced"


def _is_copy(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "model_copy"


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_package_imports_exactly_what_the_picture_shows(room: str) -> None:
    found = {package(target) for name in MODULES if package(name) == room for target in internal(name)}
    assert found - {room, "__init__"} - ROOT_LEAVES == MAY_IMPORT[room]


def test_the_picture_shows_these_arrows() -> None:
    picture = (ROOT / "RATIONALE.md").read_text("utf-8").split("```")[3]
    shown = dict[str, set[str]]()
    for names, arrow, rest in (line.partition("─►") for line in picture.splitlines()):
        packages = re.split(r" {4,}(?=\S)", rest)[:-1]  # the last is what it says of them
        shown |= {name.strip(): {*" ".join(packages).split()} for name in names.split(",") if arrow}
    # The others are described in words.
    drawn = MAY_IMPORT.keys() - {"cli", "cluster", "config"}
    assert {name: shown[name] for name in drawn} == {name: MAY_IMPORT[name] for name in drawn}


def test_modules_at_the_root_import_no_package() -> None:
    assert {target for name in ROOT_LEAVES for target in internal(name)} <= {"__init__", *ROOT_LEAVES}


def test_nobody_imports_the_commands() -> None:
    importers = {name for name in MODULES for target in internal(name) if package(target) == "cli"}
    assert {name for name in importers if package(name) != "cli"} == {"__main__"}


@pytest.mark.parametrize("unit", ["package", "module"])
def test_imports_form_no_cycle(unit: str) -> None:
    arrows: dict[str, set[str]] = {}
    for name in MODULES:
        origin = package(name) if unit == "package" else name
        targets = {package(target) if unit == "package" else target for target in internal(name)}
        arrows.setdefault(origin, set()).update(targets - {origin})
    while leaves := [name for name, targets in arrows.items() if not targets & arrows.keys()]:
        for name in leaves:
            del arrows[name]
    assert not arrows, "these import each other in a cycle"


@pytest.mark.parametrize("library", OWNERS)
def test_a_library_is_imported_only_by_its_owners(library: str) -> None:
    assert {name for name in MODULES if library in libraries(name)} == OWNERS[library]


def test_pure_modules_import_no_library_that_does_io() -> None:
    pure = [name for name in MODULES if name in PURE or package(name) in PURE]
    assert len(pure) > 40
    assert {name: found for name in pure if (found := libraries(name) & IMPURE_LIBRARIES)} == {}


@pytest.mark.parametrize("room", [*MAY_IMPORT, "builder.inspection", "edge.local"])
def test_a_package_docstring_says_where_to_start_reading(room: str) -> None:
    docstring = ast.get_docstring(MODULES[f"{room}.__init__"].parsed)
    assert docstring
    assert "Start with `" in docstring


def test_the_path_of_the_api_is_spelled_in_one_place() -> None:
    """`/v1/public` in `api.keys`; docstrings and comments may mention it."""
    for name, module in MODULES.items():
        docstrings = {id(node.value) for node in module.nodes if isinstance(node, ast.Expr)}
        for node in module.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                assert "/public" not in node.value or name in {"api.keys", "cli.main"}, f"{name}: {node.value}"


def test_the_clock_is_read_in_one_place() -> None:
    told = {name for name, module in MODULES.items() if "datetime.now" in module.text}
    assert {name for name in told if "datetime.now" in ast.unparse(MODULES[name].parsed)} == {"cli.command"}


def test_functions_stay_small() -> None:
    lengths = [length for module in structure.modules("generator") for _, length in module.functions()]
    assert len(lengths) > 100
    assert structure.long_functions(structure.modules("generator")) == {}
    assert statistics.median(lengths) <= 10


def test_files_stay_small() -> None:
    lengths = {str(module.path): module.lines for module in MODULES.values()}
    assert max(lengths.values()) <= 360, max(lengths.items(), key=lambda item: item[1])


def test_no_more_public_types_share_a_name_than_already_do() -> None:
    found = structure.ambiguous_types(structure.modules("generator"))
    assert len(found) <= AMBIGUOUS, f"give a new type a name of its own; several modules define {found}"


def test_no_module_has_a_name_without_meaning() -> None:
    for name in MODULES:
        words = {word for part in name.split(".") for word in part.split("_")}
        assert not {"util", "utils", "helper", "helpers", "manager", "handler", "common", "misc"} & words, name
