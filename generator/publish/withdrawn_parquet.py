"""Withdraws markets from the Parquet files of a dump, each of which is written again if it holds one of them."""

import io
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, TypeVar

from generator.api import downloads, keys
from generator.api.downloads import DownloadFile, DumpHead
from generator.downloads import parquet
from generator.errors import ConfigError
from generator.tree.folder import Output
from generator.tree.list_reader import Read

File = TypeVar("File", bound=DownloadFile)

_ENDING: Final = f".{downloads.PARQUET}"


@dataclass(frozen=True)
class WithdrawnParquet:
    """Stages the files of a head without some markets (ids); `read` reads the objects that readers find.

    `staged` receives the names of those that differ.
    """

    folder: Output
    read: Read
    ids: Collection[str]
    staged: set[str] = field(default_factory=set)
    _scratch: Iterator[int] = field(default_factory=count)

    def parts(self, head: DumpHead) -> dict[str, Any]:
        """What the new head has besides its NDJSON: `markets`, and if all can be read, histories and fills.

        Without the extra, it has none: files that nobody can look into may show any market.
        """
        markets = self._without(file for file in head.markets if file.name.endswith(_ENDING))
        history, fills = self._without(head.history or ()), self._without(head.fills or ())
        found: dict[str, Any] = {"markets": markets or []}
        if head.history_as_of is not None and history is not None and fills is not None:
            found |= {"history_as_of": head.history_as_of, "history": history, "fills": fills}
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
        body = self.read(keys.chunk(keys.DUMPS, file.name))
        if body is None or not downloads.is_named_by(file.name, body):
            raise ValueError(f"{file.name}: missing or damaged")
        scratch = f"{downloads.PARQUET}-{next(self._scratch)}"
        with self.folder.scratch_file(scratch) as opened:
            written = parquet.without(opened.write, io.BytesIO(body), self.ids)
        if written is None:
            return file
        folder = file.name.rpartition("/")[0]
        name = downloads.name(written.sha256, downloads.PARQUET, f"{folder}/")
        if self.folder.stage_file(scratch, keys.chunk(keys.DUMPS, name)):
            self.staged.add(name)
        url = file.url.removesuffix(file.name) + name
        return file.model_copy(update={"name": name, "url": url, "sha256": written.sha256, "size": written.size})
