"""The obvious script: read the rows, slice, dump, write. Imports nothing of the product.

    python tests/bench/naive.py LISTS OUTPUT

It parses the items once and dumps every page, as one does before measuring.
"""

import hashlib
import json
import sys
from pathlib import Path


def main() -> None:
    data, output = map(Path, sys.argv[1:])
    for item_list in json.loads(data.read_text("utf-8")):
        name, generation = item_list["name"], item_list["generation"]
        items = [json.loads(item) for item in item_list["items"]]
        for limit in range(1, 101):
            for start in range(0, max(len(items), 1), limit):
                end = start + limit
                cursor = None
                if end < len(items):
                    check = hashlib.sha256(f"{name}/{generation}/{end}".encode()).hexdigest()[:10]
                    cursor = f"{check}{generation}{end}"
                page = {"items": items[start:end], "nextCursor": cursor}
                path = output / name / generation / f"{limit}-{start // limit // 100}" / f"{start}.json"
                if start == 0:
                    path = output / name / "first" / f"{limit}.json"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(json.dumps(page, ensure_ascii=False, separators=(",", ":")).encode())


if __name__ == "__main__":
    main()
