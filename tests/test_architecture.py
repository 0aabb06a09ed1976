"""The picture in RATIONALE.md, held true: who may import what, and how large things may grow."""

import ast
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

GENERATOR = Path(__file__).parent.parent / "generator"
MODULES = {path.stem: ast.parse(path.read_text("utf-8")) for path in sorted(GENERATOR.glob("*.py"))}

#: The only modules that may import each library.
OWNERS = {
    "sqlalchemy": {"database", "demo", "statements"},
    "sqlite3": {"database"},
    "psycopg": set[str](),
    "yaml": {"config"},
    "click": {"cli", "cli_build", "cli_check", "cli_job", "cli_plan", "cli_publish", "cli_serve", "cli_takedown"},
    "multiprocessing": {"workers"},
    "fcntl": {"output", "store_directory"},
    "werkzeug": {"preview", "preview_app"},
    "quickjs": {"preview_router"},
    "jinja2": {"templates"},
    "boto3": {"caches", "store_s3_connection"},
    "botocore": {"caches", "store_s3", "store_s3_connection", "store_s3_deletions", "store_s3_errors"},
    "obstore": {"store_obstore"},
}
#: What each module may import of the others. An arrow that is not here is a decision, not an accident.
MAY_IMPORT = {
    "__init__": set[str](),
    "__main__": {"cli"},
    "errors": set(),
    "contract": set(),
    "quarantine": set(),
    "relations": set(),
    "settings": set(),
    "config": {"errors", "settings"},
    "cursor": set(),
    "keys": {"contract"},
    "check": {"errors", "relations"},
    "rows": {"contract", "quarantine"},
    "slugs": {"keys", "quarantine", "rows"},
    "catalog": {"contract", "slugs"},
    "remarks": {"catalog", "config", "quarantine"},
    "columns": {"contract"},
    "fills": {"columns", "quarantine", "rows"},
    "history": {"columns", "quarantine", "rows"},
    "detail": {"columns", "config", "contract", "fills", "history", "quarantine", "rows"},
    "pages": {"contract", "cursor", "keys"},
    "chunks": {"contract", "cursor", "keys", "pages"},
    "manifest": {"contract", "keys"},
    "generations": {"chunks", "keys", "manifest", "pages"},
    "openapi_texts": {"config", "contract"},
    "openapi_schemas": {"contract", "openapi_texts"},
    "openapi_examples": {"contract"},
    "openapi": {"config", "contract", "keys", "openapi_examples", "openapi_schemas", "openapi_texts", "slugs"},
    "render": {"catalog", "config", "contract", "detail", "generations", "keys", "openapi", "openapi_schemas", "pages"},
    "answers": {"config", "contract", "keys"},
    "nginx": {"answers", "config", "contract", "keys"},
    "edge_cloudfront": {"answers", "chunks", "config", "contract", "keys"},
    "edge_cloudflare": {"answers", "config", "keys"},
    "templates": set(),
    "edge": {
        "answers", "chunks", "config", "contract", "cursor", "edge_cloudflare", "edge_cloudfront", "keys", "nginx",
        "pages", "slugs", "templates",
    },
    "readings": {"catalog", "contract", "detail", "fills", "history"},
    "inspector": {"chunks", "config", "contract", "edge", "keys", "openapi", "pages", "readings", "templates"},
    "prices": {"config", "errors", "settings"},
    "estimate": {"chunks", "contract", "manifest", "pages", "prices"},
    "progress": set(),
    "metrics": {"disk"},
    "logs": set(),
    "report": {"estimate", "generations", "manifest", "metrics", "pages", "quarantine", "relations"},
    "workers": {"errors"},
    "streams": {"errors"},
    "database": {"config", "errors"},
    "statements": {"relations"},
    "source": {
        "catalog", "config", "database", "detail", "fills", "quarantine", "relations", "rows", "slugs", "statements",
        "streams",
    },
    "demo_texts": {"contract"},
    "demo_lives": {"contract", "demo_texts"},
    "demo_markets": {"contract", "demo_lives", "demo_texts"},
    "demo": {"demo_markets", "errors"},
    "disk": set(),
    "store": set(),
    "store_directory": {"disk", "errors", "keys", "store"},
    "store_s3_errors": {"errors", "store"},
    "store_s3_connection": {"errors", "store_s3_errors"},
    "store_s3_deletions": {"errors", "store_s3_connection", "store_s3_errors"},
    "store_obstore": {"store", "store_s3_connection", "store_s3_errors"},
    "store_s3": {"keys", "store", "store_obstore", "store_s3_connection", "store_s3_deletions", "store_s3_errors"},
    "stores": {"config", "errors", "store", "store_directory", "store_s3"},
    "output": {"contract", "disk", "errors", "generations", "keys", "manifest", "pages"},
    "details": {
        "catalog", "config", "detail", "errors", "output", "quarantine", "readings", "render", "source", "staging",
    },
    "build": {
        "blocked", "catalog", "check", "config", "details", "edge", "estimate", "generations", "guards", "inspector",
        "keys", "manifest", "output", "pages", "prices", "progress", "readings", "remarks", "render", "report",
        "room", "settings", "source", "staging", "workers",
    },
    "preview": {"config", "edge", "errors", "preview_app", "preview_router"},
    "preview_app": {"answers", "config", "contract", "edge", "inspector", "keys", "preview_router"},
    "preview_router": {"config", "edge", "errors"},
    "apply": {
        "errors", "generations", "keys", "ledger", "manifest", "output", "planning", "progress", "store", "transfer",
    },
    "audit": {"contract", "generations", "manifest", "output", "planning", "record", "store", "transfer"},
    "blocked": {"errors", "manifest", "output", "record", "store", "transfer"},
    "caches": {"config", "contract", "errors"},
    "guards": {"catalog", "errors", "manifest", "quarantine"},
    "measure": {
        "blocked", "catalog", "config", "detail", "estimate", "generations", "manifest", "output", "pages",
        "progress", "quarantine", "render", "source",
    },
    "room": {"catalog", "config", "disk", "errors", "estimate", "generations", "keys", "manifest", "pages"},
    "findings": {"errors"},
    "check_build": {
        "check", "config", "disk", "errors", "findings", "guards", "measure", "prices", "progress", "quarantine",
        "room", "source",
    },
    "check_store": {
        "caches", "config", "contract", "errors", "findings", "manifest", "publish", "record", "store", "stores",
        "transfer",
    },
    "cli_job": {"config", "errors", "logs", "metrics", "rows", "slugs"},
    "cli_plan": {
        "check", "chunks", "cli_job", "config", "errors", "estimate", "measure", "pages", "prices", "quarantine",
        "refusals", "source",
    },
    "cli_check": {"check_build", "check_store", "cli_job", "config", "errors", "estimate", "findings"},
    "ledger": {"errors", "process", "record", "store", "transfer"},
    "planning": {"generations", "keys", "manifest", "record"},
    "protocol": {
        "apply", "audit", "blocked", "caches", "config", "contract", "errors", "generations", "ledger", "manifest",
        "output", "planning", "progress", "record", "store", "transfer",
    },
    "publish": {
        "apply", "blocked", "config", "errors", "estimate", "generations", "ledger", "manifest", "metrics", "output",
        "planning", "prices", "progress", "protocol", "refusals", "staging", "store", "withdraw",
    },
    "record": {"manifest"},
    "refusals": {
        "config", "errors", "estimate", "generations", "keys", "manifest", "output", "planning", "prices", "record",
    },
    "staging": {"chunks", "generations", "keys", "manifest", "output", "pages", "render"},
    "takedown": {
        "apply", "blocked", "config", "errors", "ledger", "manifest", "output", "progress", "protocol", "publish",
        "rows", "store", "withdraw",
    },
    "transfer": {"store"},
    "walks": {"chunks", "contract", "cursor", "errors", "keys", "pages"},
    "withdraw": {
        "contract", "errors", "inspector", "keys", "manifest", "openapi_schemas", "output", "pages", "record",
        "render", "staging", "store", "transfer", "walks",
    },
    "process": set(),
    "cli_build": {
        "build", "cli_job", "config", "contract", "demo", "errors", "generations", "inspector", "keys", "logs",
        "output", "report", "source",
    },
    "cli_publish": {
        "blocked", "build", "cli_build", "cli_job", "config", "errors", "logs", "output", "planning", "publish",
        "refusals", "store", "stores", "takedown",
    },
    "cli_serve": {"cli_job", "config", "preview"},
    "cli_takedown": {
        "blocked", "cli_job", "config", "logs", "manifest", "publish", "record", "stores", "takedown",
    },
    "cli": set(),  # it imports a command's module by its name, when the command is used
}  # fmt: skip
#: Modules that do no I/O, know no clock and draw no lots: what they return depends on what they are given.
PURE = {
    "answers", "catalog", "check", "columns", "contract", "cursor", "demo_texts", "detail", "edge_cloudflare",
    "edge_cloudfront", "errors", "estimate", "fills", "findings", "guards", "history", "keys", "manifest", "nginx",
    "openapi", "openapi_examples", "openapi_schemas", "openapi_texts", "pages", "planning", "quarantine",
    "readings", "record", "relations", "remarks", "render", "rows", "slugs", "streams",
}  # fmt: skip
IMPURE_LIBRARIES = {"os", "pathlib", "random", "shutil", "socket", "subprocess", "sys", "tempfile", "time", "secrets"}


def imports(module: ast.Module) -> Iterator[str]:
    """Every name a module imports, absolute: `generator.keys`, `os`, `sqlalchemy.exc`."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def internal(name: str) -> set[str]:
    found = {parts[1] for parts in (found.split(".") for found in imports(MODULES[name])) if parts[0] == "generator"}
    return found & MODULES.keys()


def libraries(name: str) -> set[str]:
    return {found.split(".")[0] for found in imports(MODULES[name])}


def functions() -> list[tuple[int, str]]:
    return sorted(
        ((node.end_lineno or 0) - node.lineno + 1, f"{name}.{node.name}")
        for name, module in MODULES.items()
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef)
    )


def test_every_module_has_its_place_in_the_picture() -> None:
    assert MODULES.keys() == MAY_IMPORT.keys()


@pytest.mark.parametrize("name", MAY_IMPORT)
def test_a_module_imports_exactly_what_the_picture_shows(name: str) -> None:
    assert internal(name) == MAY_IMPORT[name]


@pytest.mark.parametrize("library", OWNERS)
def test_a_library_is_imported_only_by_its_owner(library: str) -> None:
    assert {name for name in MODULES if library in libraries(name)} == OWNERS[library]


def test_nobody_imports_the_commands() -> None:
    assert {name for name in MODULES if "cli" in internal(name)} == {"__main__"}


def test_nothing_flows_back() -> None:
    remaining = {name: set(known) for name, known in MAY_IMPORT.items()}
    while leaves := [name for name, known in remaining.items() if not known & remaining.keys()]:
        for name in leaves:
            del remaining[name]
    assert not remaining, "these import each other in a circle"


@pytest.mark.parametrize("name", sorted(PURE))
def test_a_pure_module_imports_nothing_that_touches_the_world(name: str) -> None:
    assert not libraries(name) & IMPURE_LIBRARIES


def test_the_path_of_the_api_is_spelled_in_one_place() -> None:
    """`/v1/public` in `keys`, `v1` in `contract`; docstrings and comments may speak of them."""
    for name, module in MODULES.items():
        docstrings = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
        for node in ast.walk(module):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                assert "/public" not in node.value or name in {"keys", "cli"}, f"{name}: {node.value}"


def test_the_clock_is_read_in_one_place() -> None:
    assert {name for name, module in MODULES.items() if "datetime.now" in ast.unparse(module)} == {"cli_job"}


def test_functions_stay_small() -> None:
    lengths = functions()
    assert len(lengths) > 100
    assert lengths[-1][0] <= 50, lengths[-1]
    assert statistics.median(length for length, _ in lengths) <= 10


def test_files_stay_small() -> None:
    lengths = {path.name: len(path.read_text("utf-8").splitlines()) for path in GENERATOR.glob("*.py")}
    assert max(lengths.values()) <= 350, max(lengths.items(), key=lambda item: item[1])


def test_no_module_is_called_after_its_lack_of_a_job() -> None:
    for name in MODULES:
        assert not {"util", "utils", "helper", "helpers", "manager", "handler", "common", "misc"} & set(name.split("_"))
