"""Names of the files beside `v1/` in the output folder, which are never published. Pure."""

from typing import Final

from generator.api import keys

MANIFEST: Final = "manifest.json"
#: A copy of the state of a large record, as it was last published from here.
LAST_STATE: Final = "published.state"
#: The states of large manifests lie below.
STATES: Final = keys.STATES
#: Where former programs kept parts of large manifests and records.
FORMER_STATES: Final = "shards/"
REPORT: Final = "report.json"
#: What the details were made of: digests of what the database says of each, which are not public either.
FINGERPRINTS: Final = "details.json"
#: The shards of a large one.
FINGERPRINT_SHARDS: Final = "details/"
#: Where the parts of the newest dump begin, so that the next one can copy those that did not change.
DUMP_PARTS: Final = "dumps.json"
#: What readers were last led to by a publish from here; only in a folder whose builds have a target.
LAST_PUBLISH: Final = "published.json"
#: The blocked list, which a store holds under the same name.
BLOCKED: Final = keys.BLOCKED
BLOCKED_ASIDE: Final = keys.BLOCKED_ASIDE
#: The inspection page, and beside it, where Parquet is published, the history page.
INSPECTION: Final = "index.html"
HISTORY: Final = "history.html"
#: The pages that quote markets: a takedown deletes them first.
QUOTING: Final = (INSPECTION, HISTORY)
#: Files that name what is not public, or no longer: only the user who builds may read them.
PRIVATE: Final = frozenset({MANIFEST, LAST_STATE, REPORT, *QUOTING, BLOCKED, FINGERPRINTS, DUMP_PARTS})
#: Folders of such files.
PRIVATE_FOLDERS: Final = (STATES, FORMER_STATES, FINGERPRINT_SHARDS)
_PRIVATE_NAMES: Final = (*PRIVATE_FOLDERS, BLOCKED_ASIDE)
DOCUMENTATION: Final = "api.html"
#: Third-party programs, unmodified; the README beside each in templates/vendor states its version and license.
RENDERER: Final = "vendor/rapidoc/rapidoc-min.js"
PLOTTERS: Final = ("vendor/plot/d3.min.js", "vendor/plot/plot.umd.min.js")
#: Each page for people, with the files that it loads, and their licenses.
LOADED_BY: Final = {
    HISTORY: (*PLOTTERS, *(f"vendor/plot/LICENSE-{name}.txt" for name in ("d3", "plot", "parts"))),
    INSPECTION: (),
    DOCUMENTATION: (RENDERER, f"{RENDERER}.LICENSE.txt", "vendor/rapidoc/LICENSE.txt"),
}
#: All of these files.
PAGES: Final = tuple(name for page, loaded in LOADED_BY.items() for name in (page, *loaded))


def is_private(name: str) -> bool:
    """Whether only the user who builds may read a file of the output folder."""
    return name in PRIVATE or name.startswith(_PRIVATE_NAMES)
