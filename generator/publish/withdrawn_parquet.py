"""Withdraws markets from the Parquet files of a dump: rewrites each file that holds one of them."""

import io
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from generator.api import downloads
from generator.api.downloads import DumpFile, DumpHead
from generator.downloads import parquet
from generator.errors import ConfigError
from generator.tree.download import NewFiles
from generator.tree.list_reader import Read

File = TypeVar("File", bound=DumpFile)


@dataclass(frozen=True)
class WithdrawnParquet:
    """Stages the files of a head without some markets (ids); `read` reads the objects that readers find."""

    files: NewFiles
    read: Read
    ids: Collection[str]

    def parts(self, head: DumpHead) -> dict[str, Any]:
        """What the new head has besides its NDJSON: `markets`, and if all can be read, histories and fills.

        Without the extra, it has none: files that nobody can look into may show any market.
        """
        markets = self._without([head.parquet] if head.parquet else [])
        tables = {table: self._without(head.table(table)) for table in downloads.TABLES}
        found: dict[str, Any] = {"markets": markets or []}
        if head.history_as_of is not None and None not in tables.values():
            found |= {"history_as_of": head.history_as_of, **tables}
        return found

    def _without(self, files: Iterable[File]) -> list[File] | None:
        """The files without the markets; None if one cannot be read."""
        try:
            return [self._file(file) for file in files]
        except (ValueError, ConfigError):
            return None

    def _file(self, file: File) -> File:
        if not self.ids:
            return file
        body = self.read(file.key)
        if body is None or not downloads.is_named_by(file.name, body):
            raise ValueError(f"{file.name}: missing or damaged")
        found = io.BytesIO(body)
        draft = self.files.draft(lambda write: parquet.without(write, found, self.ids))
        return self.files.stage(draft, file.replaced_by(draft.content)) if draft.content else file
