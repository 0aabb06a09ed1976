"""Names of the files beside `v1/` in the output folder, which are never published. Pure."""

from typing import Final

from generator.api import keys

MANIFEST: Final = "manifest.json"
#: What a large manifest, or record, says of single markets lies below, in shards.
SHARDS: Final = keys.SHARDS
REPORT: Final = "report.json"
#: What the details were made of: digests of what the database says of each, which are not public either.
FINGERPRINTS: Final = "details.json"
#: The shards of a large one.
FINGERPRINT_SHARDS: Final = "details/"
#: Where the parts of the newest dump begin, so that the next one can copy those that did not change.
DUMP_PARTS: Final = "dumps.json"
#: The blocked list, which a store holds under the same name.
BLOCKED: Final = keys.BLOCKED
#: The inspection page and the API documentation.
INSPECTION: Final = "index.html"
#: Files that name what is not public, or no longer: only the user who builds may read them.
PRIVATE: Final = frozenset({MANIFEST, REPORT, INSPECTION, BLOCKED, FINGERPRINTS, DUMP_PARTS})
#: Folders of such files.
PRIVATE_FOLDERS: Final = (SHARDS, FINGERPRINT_SHARDS)
DOCUMENTATION: Final = "api.html"
#: A third-party program, unmodified; templates/vendor/rapidoc states its version and license.
VENDOR: Final = "vendor/rapidoc"
RENDERER: Final = f"{VENDOR}/rapidoc-min.js"
#: Every page for people, and the files these load.
PAGES: Final = (
    INSPECTION, DOCUMENTATION, RENDERER, f"{VENDOR}/rapidoc-min.js.LICENSE.txt", f"{VENDOR}/LICENSE.txt"
)  # fmt: skip


def is_private(name: str) -> bool:
    """Whether only the user who builds may read a file of the output folder."""
    return name in PRIVATE or name.startswith(PRIVATE_FOLDERS)
