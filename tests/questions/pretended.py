"""A site that answers of questions what the oracle says, and else what a build without questions answers.

So the checker can be tried before, and beside, the real thing; a test changes an answer and sees it found.
"""

import gzip
import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode

import polars as pl

from tests.questions import documents
from tests.questions.asking import MARKETS, QUESTIONS, Get
from tests.questions.documents import CHANGES, DUMP, NEW
from tests.questions.oracle import DEFAULT_SORTS, Oracle
from tests.questions.refusals import NOBODY

Answered: TypeAlias = tuple[int, Mapping[str, str], bytes]
_CURSOR: Final = re.compile(r"([0-9a-z]{10})([0-9a-z]{20})(\d+)")
_FILES: Final = "/v1/dumps/questions/all"


class Pretended:
    """A `Get`. `changed` may replace any answer of questions: it gets the path and the answer."""

    def __init__(self, get: Get, oracle: Oracle, changed: Callable[[str, Answered], Answered] | None = None) -> None:
        self._get, self._oracle = get, oracle
        self._changed = changed or (lambda _, answered: answered)
        self._cursors: dict[str, tuple[tuple[str, ...], int]] = {}
        self._rows: dict[tuple[str, ...], list[str]] = {}

    def __call__(self, path: str) -> Answered:
        documents = {DUMP: self._head, CHANGES: self._head, NEW: self._feed}
        if path in documents:
            return self._changed(path, documents[path](path))
        if path == NEW.replace("json", "atom"):
            return self._changed(path, self._atom())
        if path.startswith(_FILES):
            return self._changed(path, (200, {}, self._files[path]))
        if path == QUESTIONS or path.startswith(f"{QUESTIONS}?"):
            return self._changed(path, self._list(path.partition("?")[2]))
        if path.startswith(f"{QUESTIONS}/"):
            return self._changed(path, self._detail(path.removeprefix(QUESTIONS)))
        return self._get(path)

    def _list(self, query: str) -> Answered:
        asked = parse_qs(query, keep_blank_values=True)
        if "q" in asked:
            details = [{"path": ["q"], "message": "is not offered"}]
            return 400, {}, json.dumps({"error": "no", "details": details}).encode()
        cursor = asked["cursor"][0] if asked.get("cursor", [""])[0] in self._cursors else None
        own = [pair for pair in parse_qsl(query, keep_blank_values=True) if cursor is None or pair[0] != "cursor"]
        as_market = self._get(f"{MARKETS}?{urlencode(own)}" if own else MARKETS)
        if cursor is None and "cursor" in asked and as_market[0] == 200:
            return self._refused_cursor()  # of a list of markets
        if as_market[0] != 200:
            return as_market
        return self._page(asked, cursor, as_market[1])

    def _page(self, asked: Mapping[str, list[str]], cursor: str | None, headers: Mapping[str, str]) -> Answered:
        status = asked.get("status", ["open"])[0]
        sort, limit = asked.get("sort", [DEFAULT_SORTS[status]])[0], int(asked.get("limit", ["20"])[0])
        category = asked["category"][0] if "category" in asked and self._oracle.setting.is_extended else None
        names = {slug: name for name, slug in self._oracle.setting.categories.items()}
        of = (status, sort, names.get(category or "", category or ""))
        name, start = self._cursors[cursor] if cursor else (of, 0)
        if name != of:
            return self._refused_cursor()
        if of not in self._rows:
            self._rows[of] = [row.raw for row in self._oracle.listed(status, sort, of[2] or None)]
        rows = self._rows[of]
        end = start + limit
        following = self._cursor(of, end) if end < len(rows) else None
        body = f'{{"items":[{",".join(rows[start:end])}],"nextCursor":{json.dumps(following)}}}'
        own = {name: value for name, value in headers.items() if name != "link"}
        return 200, own, body.encode()

    def _cursor(self, of: tuple[str, ...], position: int) -> str:
        """A cursor that looks like one of markets."""
        path = f"{MARKETS}?status=all&limit=1"
        cut = _CURSOR.fullmatch(str(json.loads(self._get(path)[2])["nextCursor"]))
        assert cut
        cursor = hashlib.sha256(f"{of}{position}".encode()).hexdigest()[: len(cut[1])] + cut[2] + str(position)
        self._cursors[cursor] = (of, position)
        return cursor

    def _refused_cursor(self) -> Answered:
        details = [
            {"path": ["cursor"], "message": "is not a cursor of this list, with its status and sort; start again"}
        ]
        return 400, {}, json.dumps({"error": "no", "details": details}).encode()

    def _detail(self, path: str) -> Answered:
        is_extended = self._oracle.setting.is_extended
        names = (b"marketRef", b"questionRef") if is_extended else (b"marketId", b"questionId")
        reference = unquote(path[1:]).lower()
        as_market = self._get(MARKETS + ("/some-slug" if reference == "snapshot" else path))
        if as_market[0] == 400:
            return 400, as_market[1], as_market[2].replace(*names)
        for name, found in self._oracle.questions.items():
            if reference in {name, (found.slug or "/").lower()}:
                of_market = self._get(f"{MARKETS}/{found.members[0].market_id}")
                return 200, of_market[1], found.detail.encode()
        return self._get(f"{MARKETS}/{NOBODY}")

    @cached_property
    def _files(self) -> Mapping[str, bytes]:
        """The definitions in both forms."""
        rows = [{**row, "createdAt": datetime.fromisoformat(row["createdAt"])} for row in self._oracle.table]
        table = io.BytesIO()
        schema = documents.columns(self._oracle.setting)
        pl.DataFrame(rows, schema=schema).write_parquet(table, compression="uncompressed")
        packed = gzip.compress(self._oracle.definitions, mtime=0)
        return {f"{_FILES}.ndjson.gz": packed, f"{_FILES}.parquet": table.getvalue()}

    def _head(self, path: str) -> Answered:
        status, headers, body = self._get(path)
        found = json.loads(body)
        files = [
            {
                "format": name.split(".")[1],
                "url": f"{self._oracle.setting.base_url}{name}",
                "size": len(file),
                "sha256": hashlib.sha256(file).hexdigest(),
            }
            for name, file in self._files.items()
        ]
        state = hashlib.sha256(self._oracle.definitions).hexdigest()
        about = {"asOf": found["asOf"], "count": len(self._oracle.questions), "state": state, "files": files}
        found["questions"] = about | ({"serial": 1} if path == CHANGES else {})
        return status, headers, json.dumps(found).encode()

    def _feed(self, path: str) -> Answered:
        status, headers, body = self._get(path)
        found = json.loads(body)
        found["items"] = [self._entry(row.value) for row in self._oracle.listed("all", "new")[:50]]
        return status, headers, json.dumps(found).encode()

    def _entry(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        ended = {"resolved": "Resolved. ", "cancelled": "Cancelled. "}.get(item["status"], "")
        entry = {
            "id": f"urn:uuid:{item['id']}",
            "url": f"{self._oracle.setting.base_url}{QUESTIONS}/{item['id']}",
            "title": item["title"],
            "content_text": f"{ended}Closing time: {item['closeTime'][:10]} {item['closeTime'][11:16]} UTC.",
            "date_published": item["createdAt"],
        }
        return entry | ({"tags": item["categories"]} if item.get("categories") else {})

    def _atom(self) -> Answered:
        rows = self._oracle.listed("all", "new")[:50]
        return 200, {}, "".join(f"<id>urn:uuid:{row.id}</id>" for row in rows).encode()
