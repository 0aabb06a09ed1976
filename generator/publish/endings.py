"""What a withdrawal ended because it could not read it, as warnings for the operator."""

from collections.abc import Iterator
from typing import Final

from generator.api import downloads, keys
from generator.tree.manifest import Manifest

_SEARCH: Final = (
    "deleted the search index: it could not be read, or a publish was killed while it replaced lists; until you run "
    "`public-markets rebuild`, every `q` gets a 400"
)
_DUMP: Final = (
    "deleted the dump and its change feed: the dump was missing or damaged; run `public-markets rebuild` to make both "
    "again"
)
_PARQUET: Final = (
    "deleted Parquet files of the dump: they were missing or damaged, or the extra to read them is not installed; "
    "run pip install 'public-markets[parquet]', then `public-markets rebuild` to make them again"
)
_ENDING: Final = f".{downloads.PARQUET}"


def found(before: Manifest, after: Manifest) -> Iterator[str]:
    """Compare a state with what a withdrawal left of it."""
    if before.search and after.search is None:
        yield _SEARCH
    if before.downloads.keys() - after.downloads.keys():
        yield _DUMP
    elif _parquet_kinds(before) - _parquet_kinds(after):
        yield _PARQUET


def _parquet_kinds(built: Manifest) -> set[str]:
    dump = built.downloads.get(keys.DUMPS)
    return {name.partition("/")[0] for name in (dump.chunks if dump else ()) if name.endswith(_ENDING)}
